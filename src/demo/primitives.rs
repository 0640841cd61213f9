//! The primitives profile's demo: a person makes a group and keys, an agent works with each type of primitive over HTTP.
//!
//! Arguments that come out of an earlier answer are taken from there, as an agent takes them.

use super::folder::Folder;
use super::over_http::{Server, program};
use super::page::{Halt, Page};
use super::show::Ends;
use crate::error::StartError;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;

/// The profile.
pub(super) const PROFILE: &str = "primitives";

const OPENING: &str = "\
The primitives profile keeps named pieces of state for AI agents, in groups, and serves them over HTTP. You are about to \
watch a person make a group and a key, and an agent work with each type of primitive. The agent's lines are scripted; \
the server is real, and so is every answer: -> is sent, <- comes back.";

/// A call and how it must end; anything else ends the demo with an error. Arguments are made of the last answer as data.
struct Step(&'static str, &'static str, fn(&Value) -> Value, Ends, usize);

/// Steps under a headline.
struct Part(&'static str, &'static [Step]);

static PARTS: &[Part] = &[
    Part(
        "KEYS AND VALUES: with versions, so that nobody overwrites what they have not seen",
        &[
            Step(
                "Make a key-value primitive.",
                "primitive_create",
                |_| json!({"type": "kv", "name": "settings"}),
                Ends::Well("settings"),
                2,
            ),
            Step(
                "Write a value.",
                "kv_set",
                |_| json!({"key": "theme", "value": "dark"}),
                Ends::Well("version"),
                2,
            ),
            Step(
                "Write it again, but only if nobody has: somebody has.",
                "kv_set",
                |_| json!({"key": "theme", "value": "light", "if_version": 0}),
                Ends::Refused("[precondition_failed]"),
                3,
            ),
        ],
    ),
    Part(
        "JOBS: leased to one worker at a time",
        &[
            Step(
                "Make a queue.",
                "primitive_create",
                |_| json!({"type": "queue", "name": "jobs"}),
                Ends::Well("jobs"),
                2,
            ),
            Step(
                "Send a job.",
                "queue_send",
                |_| json!({"queue": "mail", "body": {"to": "ann"}}),
                Ends::Well("id"),
                2,
            ),
            Step(
                "Take it. The token proves whose it is now.",
                "queue_receive",
                |_| json!({"queue": "mail"}),
                Ends::Well("lease_token"),
                4,
            ),
            Step(
                "Done.",
                "queue_ack",
                |last| json!({"queue": "mail", "id": last.pointer("/data/0/id"), "lease_token": last.pointer("/data/0/lease_token")}),
                Ends::Well("acked"),
                2,
            ),
        ],
    ),
    Part(
        "MEMORIES: remembered once, recalled by their words",
        &[
            Step(
                "Make a memory.",
                "primitive_create",
                |_| json!({"type": "memory", "name": "notes"}),
                Ends::Well("notes"),
                2,
            ),
            Step(
                "Remember a fact.",
                "memory_remember",
                |_| json!({"kind": "semantic", "text": "The deploy key rotates every Monday."}),
                Ends::Well("id"),
                2,
            ),
            Step(
                "Ask for it in other words.",
                "memory_recall",
                |_| json!({"query": "when do deploy keys rotate?"}),
                Ends::Well("Monday"),
                4,
            ),
        ],
    ),
    Part(
        "FILES AND TABLES",
        &[
            Step(
                "Make a tree of files.",
                "primitive_create",
                |_| json!({"type": "fs", "name": "work"}),
                Ends::Well("work"),
                2,
            ),
            Step(
                "Write a file; its folders are made with it.",
                "fs_write",
                |_| json!({"path": "/plan/today.md", "content": "ship it"}),
                Ends::Well("/plan/today.md"),
                2,
            ),
            Step(
                "Find it by what stands in it.",
                "fs_search",
                |_| json!({"query": "ship"}),
                Ends::Well("/plan/today.md"),
                3,
            ),
            Step(
                "Make a database of the agent's own.",
                "primitive_create",
                |_| json!({"type": "db", "name": "sales"}),
                Ends::Well("sales"),
                2,
            ),
            Step(
                "Several statements, one transaction.",
                "db_exec",
                |_| json!({"statements": [{"sql": "CREATE TABLE orders(id INTEGER PRIMARY KEY, cents INTEGER)"}, {"sql": "INSERT INTO orders(cents) VALUES (?), (?)", "params": [1200, 800]}]}),
                Ends::Well("2"),
                3,
            ),
            Step(
                "Ask.",
                "db_query",
                |_| json!({"sql": "SELECT count(*) AS orders, sum(cents) AS cents FROM orders"}),
                Ends::Well("2000"),
                3,
            ),
            Step(
                "What reads cannot write, whatever it says.",
                "db_query",
                |_| json!({"sql": "DELETE FROM orders"}),
                Ends::Refused("["),
                3,
            ),
        ],
    ),
    Part(
        "SECRETS AND COPIES",
        &[
            Step(
                "Make a vault. A person puts secrets in; the agent uses them with vault_use and never sees them.",
                "primitive_create",
                |_| json!({"type": "vault", "name": "keys"}),
                Ends::Well("keys"),
                2,
            ),
            Step(
                "Names and grants are listed, values never.",
                "vault_list",
                |_| json!({}),
                Ends::Well("data"),
                2,
            ),
            Step(
                "A copy to try something on.",
                "primitive_fork",
                |_| json!({"primitive": "settings"}),
                Ends::Well("settings-fork-"),
                2,
            ),
        ],
    ),
    Part(
        "OBJECTS: and a URL for whoever has no key",
        &[
            Step(
                "Make a storage.",
                "primitive_create",
                |_| json!({"type": "storage", "name": "files"}),
                Ends::Well("files"),
                2,
            ),
            Step(
                "Put an object.",
                "storage_write",
                |_| json!({"key": "report.txt", "content": "all is well", "content_type": "text/plain"}),
                Ends::Well("etag"),
                2,
            ),
            Step(
                "Sign a URL for it.",
                "storage_sign",
                |_| json!({"key": "report.txt"}),
                Ends::Well("signature="),
                4,
            ),
        ],
    ),
];

/// Shows it.
pub(super) fn play<W: Write>(page: &mut Page<W>) -> Result<(), Halt> {
    let folder = Folder::new()?;
    let data = folder.path().join("state");
    let person = |page: &mut Page<W>, words: &[&str]| -> Result<String, Halt> {
        page.commands(&[format!("indelible {} --data state", words.join(" "))])?;
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let output = program(&[arguments, vec!["--data".into(), data.clone().into()]].concat())?.output();
        let output =
            output.map_err(|error| StartError::failure(format!("cannot start this program: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(StartError::failure(format!("`indelible {}` failed: {said}", words.join(" "))).into())
    };
    page.paragraph(OPENING)?;
    page.headline("A GROUP AND A KEY: what a person does first")?;
    page.step("Groups keep agents apart. Each has its own path.")?;
    let made = person(page, &["groups", "create", "team"])?;
    page.answered(&made, false, 2)?;
    page.step("A key opens one group. It is shown once; only its hash is kept.")?;
    let key = person(page, &["keys", "create", "--group", "team", "--expires", "30d"])?;
    page.answered(&format!("{}...", key.get(..20).unwrap_or_default()), false, 1)?;
    page.step("The server, for every group of the folder.")?;
    page.commands(&["indelible --profile primitives --data state --http 127.0.0.1:7777"])?;
    let server = Server::start(&data)?;
    let (_, listed) = server.ask("team", &key, "tools/list", &json!({}))?;
    let tools = listed.pointer("/result/tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
    page.sent("tools/list", None)?;
    page.answered(&format!("{} tools: {}", names.len(), names.join(", ")), false, 2)?;
    let mut last = Value::Null;
    for Part(headline, steps) in PARTS {
        page.headline(headline)?;
        for Step(says, tool, arguments, ends, lines) in *steps {
            page.step(says)?;
            last = call(page, &server, &key, (tool, &arguments(&last)), *ends, *lines)?;
        }
    }
    page.step("Anybody can follow it, until it ends or the key does: curl, with no key.")?;
    let url = last.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    page.commands(&["curl URL"])?;
    let got = server.get(&url)?;
    page.answered(&got, false, 2)?;
    told(got == "all is well", "the URL")?;

    page.headline("WHO MAY WHAT: keys with fewer tools, and keys that are taken back")?;
    page.step("A key for an agent that should only look.")?;
    let reads = person(page, &["keys", "create", "--group", "team", "--read-only"])?;
    page.answered(&format!("{}...", reads.get(..20).unwrap_or_default()), false, 1)?;
    page.step("It reads, and what writes is not even listed for it.")?;
    let forbidden = json!({"key": "theme", "value": "none"});
    call(
        page,
        &server,
        &reads,
        ("kv_get", &json!({"primitive": "settings", "key": "theme"})),
        Ends::Well("dark"),
        2,
    )?;
    call(page, &server, &reads, ("kv_set", &forbidden), Ends::Refused("[forbidden_tool]"), 3)?;
    page.step("Taken back: from the next request on it opens nothing, and no URL that it signed does.")?;
    let id = key.split('_').nth(1).unwrap_or_default();
    let revoked = person(page, &["keys", "revoke", id])?;
    page.answered(&revoked, false, 1)?;
    let (status, _) = server.ask("team", &key, "tools/list", &json!({}))?;
    page.sent("tools/list", None)?;
    page.answered(&format!("HTTP {status}"), true, 1)?;
    told(status == 401, "the key that was taken back")?;
    page.sent("GET the signed URL", None)?;
    let gone = server.get(&url)?;
    page.answered(&gone, true, 2)?;
    told(gone.contains("this URL is over"), "the URL that was taken back")?;
    drop(server);
    page.headline("YOUR TURN")?;
    page.paragraph(
        "What the demo made is removed again. These make a group, a key and a server of your own:",
    )?;
    page.commands(&[
        "indelible groups create --data ~/state team",
        "indelible keys create --data ~/state --group team",
        "indelible --profile primitives --data ~/state --http 127.0.0.1:7777",
    ])?;
    page.paragraph("Give them to an agent of yours (this line is for Claude Code):")?;
    page.commands(&["claude mcp add --transport http state http://127.0.0.1:7777/mcp/team --header 'Authorization: Bearer KEY'"])
}

/// Calls a tool and shows it; its answer as data.
fn call<W: Write>(
    page: &mut Page<W>,
    server: &Server,
    key: &str,
    (tool, arguments): (&str, &Value),
    ends: Ends,
    lines: usize,
) -> Result<Value, Halt> {
    page.sent(tool, Some(arguments))?;
    let (answer, data) = server.call("team", key, tool, arguments)?;
    page.answered(&answer.text, answer.is_error, lines)?;
    let as_told = match ends {
        Ends::Well(words) => !answer.is_error && answer.text.contains(words),
        Ends::Refused(words) => answer.is_error && answer.text.contains(words),
    };
    told(as_told, tool)?;
    Ok(data)
}

/// The narration must be true.
fn told(as_told: bool, of: &str) -> Result<(), Halt> {
    if as_told {
        Ok(())
    } else {
        Err(StartError::failure(format!("the demo expected another answer of `{of}`")).into())
    }
}
