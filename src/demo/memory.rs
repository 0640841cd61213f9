//! The memory profile's demo: an agent works, is kept from harm, is gone, and comes back.
//!
//! What it says about the store's data is held true by a test in `tests/demo.rs` and by [`Ends`].

use super::show::{Act, Ends, Part, Scene, Show};
use serde_json::json;

/// The demo.
pub(super) static SHOW: Show = Show {
    profile: "memory",
    wal: true,
    opening: "\
Indelible gives an AI agent one SQLite file to work in and to remember with. You \
are about to watch an agent use it on a small music store. The agent's lines are \
scripted; the server is real, and so is every answer: -> is sent, <- comes back.",
    parts: &[
        Part {
            headline: "FIRST SESSION: the agent gets to work",
            scenes: &[
                Scene {
                    says: "The agent's program starts the server and asks which tools there are.",
                    act: Act::Start,
                },
                Scene {
                    says: "Resume first: did an earlier session leave anything? No, this is the first.",
                    act: Act::Call {
                        tool: "get_resume_context",
                        arguments: || json!({}),
                        ends: Ends::Well("# no checkpoint yet"),
                        lines: 6,
                    },
                },
                Scene {
                    says: "Look around. Tables marked system 1 are the server's own: memory and log.",
                    act: Act::Call {
                        tool: "list_tables",
                        arguments: || json!({}),
                        ends: Ends::Well("tracks,table,0,"),
                        lines: 15,
                    },
                },
                Scene {
                    says: "Look closer at one table.",
                    act: Act::Call {
                        tool: "describe_table",
                        arguments: || json!({"table": "invoice_lines"}),
                        ends: Ends::Well("# foreign_keys"),
                        lines: 20,
                    },
                },
                Scene {
                    says: "Ask in SQL: what sold best in 2025? The date is bound, not pasted in.",
                    act: Act::Call {
                        tool: "read_query",
                        arguments: || {
                            json!({
                                "query": "SELECT genre, count(*) AS sold, sum(l.price_cents) / 100.0 AS revenue \
                                    FROM invoice_lines l JOIN invoices USING (invoice_id) \
                                    JOIN track_list USING (track_id) \
                                    WHERE invoice_date >= ? GROUP BY genre ORDER BY revenue DESC",
                                "params": ["2025-01-01"],
                                "limit": 3
                            })
                        },
                        ends: Ends::Well("genre,sold,revenue\nRock,"),
                        lines: 8,
                    },
                },
                Scene {
                    says: "A good query is worth keeping: as a view, later sessions find it and use it.",
                    act: Act::Call {
                        tool: "create_view",
                        arguments: || {
                            json!({
                                "name": "genre_sales",
                                "select_sql": "SELECT substr(invoice_date, 1, 4) AS year, genre, \
                                    count(*) AS sold, sum(l.price_cents) / 100.0 AS revenue \
                                    FROM invoice_lines l JOIN invoices USING (invoice_id) \
                                    JOIN track_list USING (track_id) GROUP BY year, genre",
                                "description": "tracks sold and revenue by year and genre"
                            })
                        },
                        ends: Ends::Well("ok: view genre_sales created"),
                        lines: 2,
                    },
                },
                Scene {
                    says: "A finding is worth remembering; no tool can ever change or delete it.",
                    act: Act::Call {
                        tool: "append_event",
                        arguments: || json!({"kind": "finding", "content": "Rock earned most in 2025."}),
                        ends: Ends::Well("ok: event 1 appended"),
                        lines: 2,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "GUARD RAILS: a mistake ends in an error, not in damage",
            scenes: &[
                Scene {
                    says: "Customers who never bought anything are to go. The agent takes the reading tool: \
                        refused, and told which tool is right.",
                    act: Act::Call {
                        tool: "read_query",
                        arguments: || {
                            json!({
                                "query": "DELETE FROM customers \
                                    WHERE customer_id NOT IN (SELECT customer_id FROM invoices)"
                            })
                        },
                        ends: Ends::Refused("use destructive_query"),
                        lines: 3,
                    },
                },
                Scene {
                    says: "The right tool wants a reason, and first makes a snapshot to go back to.",
                    act: Act::Call {
                        tool: "destructive_query",
                        arguments: || {
                            json!({
                                "query": "DELETE FROM customers \
                                    WHERE customer_id NOT IN (SELECT customer_id FROM invoices)",
                                "reason": "the shop asked to remove customers without a purchase"
                            })
                        },
                        ends: Ends::Well("; snapshot: "),
                        lines: 3,
                    },
                },
                Scene {
                    says: "One album is to cost 1.49 a track, but the agent forgets the WHERE. That would \
                        overwrite every track; it is rolled back, and nothing has changed.",
                    act: Act::Call {
                        tool: "write_query",
                        arguments: || json!({"query": "UPDATE tracks SET price_cents = 149"}),
                        ends: Ends::Refused("and was rolled back"),
                        lines: 3,
                    },
                },
                Scene {
                    says: "With the WHERE it is a correction, and goes through.",
                    act: Act::Call {
                        tool: "write_query",
                        arguments: || {
                            json!({
                                "query": "UPDATE tracks SET price_cents = 149 WHERE album_id = :album",
                                "params": {"album": 12}
                            })
                        },
                        ends: Ends::Well("rows affected"),
                        lines: 2,
                    },
                },
                Scene {
                    says: "What was decided goes into the memory as well.",
                    act: Act::Call {
                        tool: "append_event",
                        arguments: || {
                            json!({
                                "kind": "decision",
                                "content": "Album 12 costs 1.49 a track from now on; the label asked for it."
                            })
                        },
                        ends: Ends::Well("ok: event 2 appended"),
                        lines: 2,
                    },
                },
                Scene {
                    says: "Could the agent rewrite its memory later? Not even with its strongest tool.",
                    act: Act::Call {
                        tool: "destructive_query",
                        arguments: || {
                            json!({
                                "query": "UPDATE memory_events SET content = 'Nobody asked.' WHERE id = 2",
                                "reason": "it would look better"
                            })
                        },
                        ends: Ends::Refused("cannot be changed by any tool"),
                        lines: 3,
                    },
                },
                Scene {
                    says: "Before it stops, the agent writes down where the work stands.",
                    act: Act::Call {
                        tool: "checkpoint",
                        arguments: || {
                            json!({
                                "summary": "Done: sales by genre (view genre_sales), customers without a \
                                    purchase removed, album 12 repriced. Next: the same report for 2024."
                            })
                        },
                        ends: Ends::Well("ok: checkpoint 1 written"),
                        lines: 2,
                    },
                },
                Scene {
                    says: "One last thing comes up.",
                    act: Act::Call {
                        tool: "append_event",
                        arguments: || json!({"kind": "todo", "content": "Tell the shop which customers were removed."}),
                        ends: Ends::Well("ok: event 3 appended"),
                        lines: 2,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "SECOND SESSION: picking up the thread",
            scenes: &[
                Scene {
                    says: "The server is stopped. A new one starts, for an agent that knows nothing.",
                    act: Act::Restart,
                },
                Scene {
                    says: "One call tells it where the work stands, and that nobody touched the record.",
                    act: Act::Call {
                        tool: "get_resume_context",
                        arguments: || json!({}),
                        ends: Ends::Well("chain ok (3 events)"),
                        lines: 10,
                    },
                },
                Scene {
                    says: "The next task is 2024. The earlier session's view makes it one short query.",
                    act: Act::Call {
                        tool: "read_query",
                        arguments: || {
                            json!({
                                "query": "SELECT genre, sold, revenue FROM genre_sales WHERE year = '2024' \
                                    ORDER BY revenue DESC",
                                "limit": 3
                            })
                        },
                        ends: Ends::Well("genre,sold,revenue\n"),
                        lines: 6,
                    },
                },
                Scene {
                    says: "Every call was logged. The failed ones are there to learn from.",
                    act: Act::Call {
                        tool: "read_query",
                        arguments: || json!({"query": "SELECT id, tool, error FROM query_errors ORDER BY id"}),
                        ends: Ends::Well("# 3 rows"),
                        lines: 6,
                    },
                },
                Scene {
                    says: "The memory can be checked any time: every hash covers the event before it.",
                    act: Act::Call {
                        tool: "verify_chain",
                        arguments: || json!({}),
                        ends: Ends::Well("\"ok\":true"),
                        lines: 4,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "AN OUTSIDER: somebody edits the file itself",
            scenes: &[
                Scene {
                    says: "Whoever has the file needs no server. On a copy, somebody now opens it with plain \
                        SQLite (!!), removes the trigger that protects events, and changes one. Then a server is \
                        started on it.",
                    act: Act::Tamper(&[
                        "DROP TRIGGER memory_events_no_update",
                        "UPDATE memory_events SET content = replace(content, '1.49', '0.49') WHERE id = 2",
                    ]),
                },
                Scene {
                    says: "The next session is warned by its first call.",
                    act: Act::Call {
                        tool: "get_resume_context",
                        arguments: || json!({}),
                        ends: Ends::Well("BROKEN"),
                        lines: 10,
                    },
                },
                Scene {
                    says: "And verify_chain says which event it was.",
                    act: Act::Call {
                        tool: "verify_chain",
                        arguments: || json!({}),
                        ends: Ends::Well("\"break_at_id\":2"),
                        lines: 6,
                    },
                },
            ],
            moral: "\
To go unnoticed, one would have to recompute every hash from there on. Keep the \
head hash elsewhere, and `indelible verify --expect-head HASH` finds even that.",
        },
    ],
    connect: "claude mcp add indelible -- indelible --db ~/agent.db",
    again: "indelible demo --db music.db",
    kept: "The database is kept as the agent left it; only a copy was edited. Look into it:",
    look: &[
        "indelible verify --db {db}",
        "indelible call get_resume_context --db {db}",
        "indelible call read_query --db {db} query='SELECT * FROM genre_sales'",
    ],
};
