//! The explorer profile's demo: an agent looks at a file, tries to change it, and the file stays as it was.
//!
//! What it says about the store's data is held true by a test in `tests/demo.rs` and by [`Ends`].

use super::show::{Act, Ends, Part, Scene, Show};
use serde_json::json;

/// The demo.
pub(super) static SHOW: Show = Show {
    profile: "explorer",
    wal: false,
    opening: "\
The explorer profile lets an AI agent look into a SQLite file and change nothing. \
You are about to watch an agent explore a small music store. The agent's lines are \
scripted; the server is real, and so is every answer: -> is sent, <- comes back. \
Beside the text shown here, clients get each result as data.",
    parts: &[
        Part {
            headline: "LOOKING AROUND: from no idea to an answer",
            scenes: &[
                Scene {
                    says: "Before anybody looks: the SHA-256 of the file, to compare at the end.",
                    act: Act::Fingerprint,
                },
                Scene {
                    says: "The agent's program starts the server and asks which tools there are.",
                    act: Act::Start,
                },
                Scene {
                    says: "What is in it?",
                    act: Act::Call {
                        tool: "list_tables",
                        arguments: || json!({}),
                        ends: Ends::Well("| tracks | table | 6 |"),
                        lines: 12,
                    },
                },
                Scene {
                    says: "Look closer at one table: columns, keys, indexes, and how many rows.",
                    act: Act::Call {
                        tool: "describe_table",
                        arguments: || json!({"table": "invoices"}),
                        ends: Ends::Well("invoices_customer"),
                        lines: 21,
                    },
                },
                Scene {
                    says: "What do values look like? The first rows here; `random` would pick some.",
                    act: Act::Call {
                        tool: "sample_rows",
                        arguments: || json!({"table": "track_list", "columns": ["track", "artist", "genre"], "limit": 3, "random": false}),
                        ends: Ends::Well("3 rows"),
                        lines: 8,
                    },
                },
                Scene {
                    says: "Ask in SQL: which countries bought most in 2025? The date is bound, not pasted in.",
                    act: Act::Call {
                        tool: "run_query",
                        arguments: || {
                            json!({
                                "sql": "SELECT country, count(*) AS invoices, sum(total_cents) / 100.0 AS revenue \
                                    FROM invoices JOIN customers USING (customer_id) \
                                    WHERE invoice_date >= :since GROUP BY country ORDER BY revenue DESC",
                                "params": {"since": "2025-01-01"},
                                "max_rows": 3
                            })
                        },
                        ends: Ends::Well("3 rows; more rows exist"),
                        lines: 8,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "HANDS OFF: what would change the file is refused",
            scenes: &[
                Scene {
                    says: "A DELETE. Errors begin with a stable code and say what to do.",
                    act: Act::Call {
                        tool: "run_query",
                        arguments: || json!({"sql": "DELETE FROM invoices WHERE invoice_date < '2024-01-01'"}),
                        ends: Ends::Refused("[NOT_SELECT]"),
                        lines: 3,
                    },
                },
                Scene {
                    says: "The same behind a WITH: what counts is what SQLite compiled, not how it is spelled.",
                    act: Act::Call {
                        tool: "run_query",
                        arguments: || {
                            json!({
                                "sql": "WITH new(id, name, country) AS (VALUES (99, 'Nobody', 'XX')) \
                                    INSERT INTO artists SELECT * FROM new"
                            })
                        },
                        ends: Ends::Refused("[NOT_READ_ONLY]"),
                        lines: 3,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "BEFORE A LARGE QUERY: the plan, without running it",
            scenes: &[
                Scene {
                    says: "No index fits this one: the whole table would be read, and it says so.",
                    act: Act::Call {
                        tool: "explain_query",
                        arguments: || json!({"sql": "SELECT title FROM tracks WHERE seconds > 600"}),
                        ends: Ends::Well("Read from end to end: tracks."),
                        lines: 7,
                    },
                },
                Scene {
                    says: "This one has an index.",
                    act: Act::Call {
                        tool: "explain_query",
                        arguments: || json!({"sql": "SELECT * FROM invoices WHERE customer_id = ?", "params": [7]}),
                        ends: Ends::Well("USING INDEX invoices_customer"),
                        lines: 7,
                    },
                },
                Scene {
                    says: "A client can hand the agent a table's structure without a call: as a resource.",
                    act: Act::Read {
                        uri: "sqlite://table/artists",
                        contains: "\"name\":\"artists\"",
                        lines: 3,
                    },
                },
            ],
            moral: "",
        },
        Part {
            headline: "THE PROOF",
            scenes: &[Scene {
                says: "After all that, the SHA-256 of the file again.",
                act: Act::Fingerprint,
            }],
            moral: "\
The same: not one byte of the file has changed. The server opened it to read only, \
and every statement went past SQLite's authorizer.",
        },
    ],
    connect: "claude mcp add music -- indelible --db ~/music.db --profile explorer",
    again: "indelible demo --profile explorer --db music.db",
    kept: "The database is kept as it was made; the agent changed nothing. Look into it:",
    look: &[
        "indelible call list_tables --profile explorer --db {db}",
        "indelible call run_query --profile explorer --db {db} sql='SELECT * FROM track_list'",
    ],
};
