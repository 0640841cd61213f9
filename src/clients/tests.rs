//! Tables: what a client's file becomes.

use super::*;

/// The database that the launch of these tests serves.
const DATABASE: &str = "/data/\u{17e}lu\u{165} \"x\" \\ $y's.db";

fn launch() -> Launch {
    Launch {
        name: "indelible".to_owned(),
        program: "/opt/in del/indelible".to_owned(),
        arguments: vec!["--db".to_owned(), DATABASE.to_owned()],
    }
}

fn folders(macos: bool) -> Folders {
    Folders {
        current: "/work".into(),
        home: Some("/home/me".into()),
        config_home: None,
        codex_home: None,
        macos,
    }
}

fn jsonc(text: &str) -> Value {
    let root = jsonc_parser::cst::CstRootNode::parse(text, &Default::default()).unwrap();
    root.to_serde_value().unwrap()
}

/// Parsed whatever its format, comments aside.
fn parsed(client: &Client, text: &str) -> Value {
    match client.format {
        Format::Json => jsonc(text),
        Format::Toml => {
            let document: toml_edit::DocumentMut = text.parse().unwrap();
            let servers = document["mcp_servers"].as_table().unwrap();
            let entry = |item: &toml_edit::Item| {
                let words = item["args"].as_array().unwrap().iter().map(|word| json!(word.as_str()));
                json!({"command": item["command"].as_str(), "args": words.collect::<Vec<_>>()})
            };
            let entries = servers.iter().map(|(name, item)| (name.to_owned(), entry(item)));
            json!({"mcp_servers": entries.collect::<Map<_, _>>()})
        }
    }
}

#[test]
fn a_snippet_starts_the_program_with_the_very_words() {
    let plain = json!({"command": "/opt/in del/indelible", "args": ["--db", DATABASE]});
    let stdio = json!({"type": "stdio", "command": "/opt/in del/indelible", "args": ["--db", DATABASE]});
    let rows = [
        ("claude-code", json!({"mcpServers": {"indelible": stdio}})),
        ("claude-desktop", json!({"mcpServers": {"indelible": plain}})),
        ("cursor", json!({"mcpServers": {"indelible": stdio}})),
        ("vscode", json!({"servers": {"indelible": stdio}})),
        ("codex", json!({"mcp_servers": {"indelible": plain}})),
        ("gemini-cli", json!({"mcpServers": {"indelible": plain}})),
        ("zed", json!({"context_servers": {"indelible": plain}})),
    ];
    assert_eq!(rows.len(), CLIENTS.len());
    for (id, expected) in rows {
        let client = client(id).unwrap();
        let snippet = client.snippet(&launch()).unwrap();
        assert_eq!(parsed(client, &snippet), expected, "{id}");
        assert!(snippet.ends_with("}\n") || snippet.ends_with("]\n"), "{id}: {snippet:?}");
        if client.format == Format::Json {
            assert_eq!(serde_json::from_str::<Value>(&snippet).unwrap(), expected, "{id}: strict JSON");
        }
        assert_eq!(
            client.merged(&snippet, &launch()).unwrap(),
            snippet,
            "{id}: a second time changes nothing"
        );
    }
}

#[test]
fn snippets_are_laid_out_as_a_person_would() {
    let launch =
        Launch { name: "notes".to_owned(), program: "/p".to_owned(), arguments: vec!["-v".to_owned()] };
    let json = "{\n  \"context_servers\": {\n    \"notes\": {\n      \"command\": \"/p\",\n      \"args\": [\"-v\"]\n    }\n  }\n}\n";
    assert_eq!(client("zed").unwrap().snippet(&launch).unwrap(), json);
    let toml = "[mcp_servers.notes]\ncommand = \"/p\"\nargs = [\"-v\"]\n";
    assert_eq!(client("codex").unwrap().snippet(&launch).unwrap(), toml);
    assert_eq!(launch.claude_mcp_add().unwrap(), "claude mcp add notes -- /p -v");
}

#[test]
fn a_command_line_comes_back_from_a_shell_as_it_went_in() {
    let line = launch().claude_mcp_add().unwrap();
    let words = shlex::split(&line).unwrap();
    let expected = ["claude", "mcp", "add", "indelible", "--", "/opt/in del/indelible", "--db", DATABASE];
    assert_eq!(words, expected);
}

#[test]
fn what_stands_in_a_file_stays() {
    let simple =
        Launch { name: "indelible".to_owned(), program: "/p".to_owned(), arguments: vec!["--db".to_owned()] };
    // client, before, after
    let rows = [
        (
            "zed",
            "// Zed settings\n{\n  \"theme\": \"One\", // mine\n  \"context_servers\": {\n    \"other\": {\"command\": \"x\"},\n  },\n  /* last */\n  \"vim_mode\": true,\n}\n",
            "// Zed settings\n{\n  \"theme\": \"One\", // mine\n  \"context_servers\": {\n    \"other\": {\"command\": \"x\"},\n    \"indelible\": {\n      \"command\": \"/p\",\n      \"args\": [\"--db\"],\n    },\n  },\n  /* last */\n  \"vim_mode\": true,\n}\n",
        ),
        (
            "vscode",
            "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"indelible\": {\n\t\t\t// kept\n\t\t\t\"env\": {\"A\": \"1\"},\n\t\t\t\"args\": [\"old\"],\n\t\t\t\"command\": \"/p\"\n\t\t}\n\t}\n}",
            "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"indelible\": {\n\t\t\t// kept\n\t\t\t\"env\": {\"A\": \"1\"},\n\t\t\t\"args\": [\"--db\"],\n\t\t\t\"command\": \"/p\",\n\t\t\t\"type\": \"stdio\"\n\t\t}\n\t}\n}",
        ),
        (
            "gemini-cli",
            "{\n    \"z\": 1,\n    \"a\": 2\n}\n",
            "{\n    \"z\": 1,\n    \"a\": 2,\n    \"mcpServers\": {\n        \"indelible\": {\n            \"command\": \"/p\",\n            \"args\": [\"--db\"]\n        }\n    }\n}\n",
        ),
        (
            "codex",
            "# mine\nmodel = \"m\" # this one\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\nx = 1\n",
            "# mine\nmodel = \"m\" # this one\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[mcp_servers.indelible]\ncommand = \"/p\"\nargs = [\"--db\"]\n\n[tui]\nx = 1\n",
        ),
        (
            "codex",
            "[mcp_servers.indelible]\nargs = [\"old\"] # the file\ncommand = '/p' # the program\nstartup_timeout_sec = 20\n",
            "[mcp_servers.indelible]\nargs = [\"--db\"] # the file\ncommand = '/p' # the program\nstartup_timeout_sec = 20\n",
        ),
        (
            "codex",
            "mcp_servers.other = {command = \"x\"}\n",
            "mcp_servers.other = {command = \"x\"}\n\n[mcp_servers.indelible]\ncommand = \"/p\"\nargs = [\"--db\"]\n",
        ),
    ];
    for (id, before, after) in rows {
        let client = client(id).unwrap();
        let merged = client.merged(before, &simple).unwrap();
        assert_eq!(merged, after, "{id}");
        assert_eq!(client.merged(&merged, &simple).unwrap(), merged, "{id}: a second time");
    }
}

#[test]
fn what_cannot_be_edited_is_refused_with_the_reason() {
    let rows = [
        ("zed", "{", "it is not JSON: "),
        ("zed", "{'a': 1}", "it is not JSON: "),
        ("zed", "{} {}", "it is not JSON: "),
        ("zed", "[]", "it is not a JSON object"),
        ("zed", "{\"context_servers\": []}", "`context_servers` is there and is not an object"),
        ("zed", "{\"context_servers\": {}, \"context_servers\": {}}", "`context_servers` is there twice"),
        ("zed", "{\"context_servers\": {\"indelible\": null}}", "`indelible` is there and is not an object"),
        ("codex", "a = ", "it is not TOML: "),
        ("codex", "mcp_servers = 1", "`mcp_servers` is there and is not a table"),
        ("codex", "[[mcp_servers]]", "`mcp_servers` is there and is not a table"),
    ];
    for (id, text, expected) in rows {
        let why = client(id).unwrap().merged(text, &launch()).unwrap_err();
        assert!(why.starts_with(expected) && why.lines().count() == 1, "{text}: {why}");
    }
}

#[test]
fn each_client_has_its_file() {
    let rows = [
        ("claude-code", "/work/.mcp.json", "/work/.mcp.json"),
        (
            "claude-desktop",
            "/home/me/.config/Claude/claude_desktop_config.json",
            "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("cursor", "/work/.cursor/mcp.json", "/work/.cursor/mcp.json"),
        ("vscode", "/work/.vscode/mcp.json", "/work/.vscode/mcp.json"),
        ("codex", "/home/me/.codex/config.toml", "/home/me/.codex/config.toml"),
        ("gemini-cli", "/home/me/.gemini/settings.json", "/home/me/.gemini/settings.json"),
        ("zed", "/home/me/.config/zed/settings.json", "/home/me/.config/zed/settings.json"),
    ];
    for (id, linux, macos) in rows {
        let client = client(id).unwrap();
        assert_eq!(client.file(&folders(false)).unwrap(), Path::new(linux), "{id}");
        assert_eq!(client.file(&folders(true)).unwrap(), Path::new(macos), "{id}");
    }
    let elsewhere = Folders {
        config_home: Some("/x".into()),
        codex_home: Some("/c".into()),
        home: None,
        ..folders(false)
    };
    assert_eq!(client("zed").unwrap().file(&elsewhere).unwrap(), Path::new("/x/zed/settings.json"));
    assert_eq!(client("codex").unwrap().file(&elsewhere).unwrap(), Path::new("/c/config.toml"));
    let error = client("gemini-cli").unwrap().file(&elsewhere).unwrap_err();
    assert_eq!(error.message, "Gemini CLI's file needs HOME to be set; name it with --file");
}

#[test]
fn a_path_that_a_client_takes_for_a_variable_is_found() {
    let rows = [
        ("gemini-cli", "/a$b", true),
        ("gemini-cli", "/ab", false),
        ("cursor", "/a$b", false),
        ("cursor", "/a${b}", true),
        ("zed", "/${b}", false),
    ];
    for (id, path, expected) in rows {
        let launch =
            Launch { name: "x".to_owned(), program: "/p".to_owned(), arguments: vec![path.to_owned()] };
        assert_eq!(client(id).unwrap().misread(&launch), expected.then_some(path), "{id} {path}");
    }
}

#[test]
fn hooks_go_beside_those_that_are_there_and_are_renewed_in_place() {
    let simple = Launch {
        name: "indelible".to_owned(),
        program: "/p".to_owned(),
        arguments: vec!["--db".to_owned(), "/d".to_owned()],
    };
    let before = "{\n  // mine\n  \"permissions\": {\"allow\": []},\n  \"hooks\": {\n    \"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"date\"}]}]\n  }\n}\n";
    let all = hooks::hooks(&simple, true, true).unwrap();
    let merged = hooks::merged(before, &all, "/d").unwrap();
    assert!(merged.starts_with("{\n  // mine\n  \"permissions\": {\"allow\": []},\n"), "{merged}");
    assert_eq!(hooks::merged(&merged, &all, "/d").unwrap(), merged, "a second time changes nothing");
    let json: Value = jsonc(&merged);
    let commands = |event: &str| -> Vec<String> {
        let groups = json["hooks"][event].as_array().unwrap().iter();
        groups.map(|group| group["hooks"][0]["command"].as_str().unwrap().to_owned()).collect()
    };
    let resume = "/p call get_resume_context 'exclude_kinds=[\"prompt\"]' --db /d || exit 1";
    assert_eq!(commands("SessionStart"), ["date", resume]);
    assert_eq!(json["hooks"]["SessionStart"][1]["matcher"], "startup|clear|compact");
    let prompt = "/p call append_event 'kind=prompt' 'content=@-.prompt' --db /d > /dev/null || exit 1";
    assert_eq!(commands("UserPromptSubmit"), [prompt]);
    assert!(
        commands("PreCompact")[0].starts_with("/p call append_event 'kind=compaction' 'content=The "),
        "{merged}"
    );

    // The program has moved: the lines for this database change, and nothing is added.
    let moved = Launch { program: "/q".to_owned(), ..simple.clone() };
    let renewed = hooks::merged(&merged, &hooks::hooks(&moved, true, true).unwrap(), "/d").unwrap();
    assert_eq!(renewed, merged.replace("/p call", "/q call"));
    // Another database gets lines of its own.
    let other = Launch { arguments: vec!["--db".to_owned(), "/e".to_owned()], ..simple };
    let both = hooks::merged(&merged, &hooks::hooks(&other, true, false).unwrap(), "/e").unwrap();
    assert_eq!((both.matches("--db /d").count(), both.matches("--db /e").count()), (3, 2));
}

#[test]
fn a_profile_that_only_reads_gets_the_reading_hook() {
    let events = |appends, prompts| -> Vec<&str> {
        hooks::hooks(&launch(), appends, prompts).unwrap().iter().map(|hook| hook.event).collect()
    };
    assert_eq!(events(false, true), ["SessionStart"]);
    assert_eq!(events(true, false), ["SessionStart", "PreCompact"]);
    assert_eq!(events(true, true), ["SessionStart", "PreCompact", "UserPromptSubmit"]);
}
