//! FTS5, FTS4, FTS3 and rtree tables: usable by every tool, before and after a restart.

use crate::support::{Bench, Client, Server};

struct Module {
    create: &'static str,
    insert: &'static str,
    find: &'static str,
    found: &'static str,
    update: &'static str,
    updated: &'static str,
    delete: &'static str,
}

const MODULES: &[Module] = &[
    Module {
        create: "CREATE VIRTUAL TABLE f5 USING fts5(title, body)",
        insert: "INSERT INTO f5(rowid, title, body) VALUES (1, 'one', 'an apple a day'), (2, 'two', 'pears')",
        find: "SELECT rowid, highlight(f5, 1, '[', ']') AS h, bm25(f5) < 0 AS r FROM f5 WHERE f5 MATCH 'apple OR plum' ORDER BY rank",
        found: "rowid,h,r\n1,an [apple] a day,1\n# 1 rows",
        update: "UPDATE f5 SET body = 'two plums and a plum' WHERE rowid = 2",
        updated: "rowid,h,r\n2,two plums and a [plum],1\n# 1 rows",
        delete: "DELETE FROM f5 WHERE rowid = 1",
    },
    Module {
        create: "CREATE VIRTUAL TABLE f5t USING fts5(body, tokenize = 'trigram', prefix = '2 3', content_rowid = 'id')",
        insert: "INSERT INTO f5t(rowid, body) VALUES (1, 'an apple a day'), (2, 'pears')",
        find: "SELECT rowid, body FROM f5t WHERE f5t MATCH 'ppl' OR body LIKE '%plum%'",
        found: "rowid,body\n1,an apple a day\n# 1 rows",
        update: "UPDATE f5t SET body = 'plums' WHERE rowid = 2",
        updated: "rowid,body\n2,plums\n# 1 rows",
        delete: "DELETE FROM f5t WHERE rowid = 1",
    },
    Module {
        create: "CREATE VIRTUAL TABLE f4 USING fts4(title, body, tokenize=porter)",
        insert: "INSERT INTO f4(docid, title, body) VALUES (1, 'one', 'an apple a day'), (2, 'two', 'pears')",
        find: "SELECT docid, snippet(f4, '[', ']') AS s FROM f4 WHERE f4 MATCH 'apples OR plum'",
        found: "docid,s\n1,an [apple] a day\n# 1 rows",
        update: "UPDATE f4 SET body = 'two plums' WHERE docid = 2",
        updated: "docid,s\n2,two [plums]\n# 1 rows",
        delete: "DELETE FROM f4 WHERE docid = 1",
    },
    Module {
        create: "CREATE VIRTUAL TABLE f3 USING fts3(body)",
        insert: "INSERT INTO f3(docid, body) VALUES (1, 'an apple a day'), (2, 'pears')",
        find: "SELECT docid, offsets(f3) AS o FROM f3 WHERE body MATCH 'apple OR plum'",
        found: "docid,o\n1,0 0 3 5\n# 1 rows",
        update: "UPDATE f3 SET body = 'plum' WHERE docid = 2",
        updated: "docid,o\n2,0 1 0 4\n# 1 rows",
        delete: "DELETE FROM f3 WHERE docid = 1",
    },
    Module {
        create: "CREATE VIRTUAL TABLE r USING rtree(id, x1, x2, y1, y2, +name TEXT)",
        insert: "INSERT INTO r VALUES (1, 0, 1, 0, 1, 'near'), (2, 50, 51, 50, 51, 'far')",
        find: "SELECT id, name FROM r WHERE x2 < 10 AND y2 < 10",
        found: "id,name\n1,near\n# 1 rows",
        update: "UPDATE r SET x1 = 2, x2 = 3, y1 = 2, y2 = 3 WHERE id = 2",
        updated: "id,name\n2,far\n# 1 rows",
        delete: "DELETE FROM r WHERE id = 1",
    },
];

#[test]
fn every_module_works_in_every_tool_before_and_after_a_restart() {
    for restarts in [false, true] {
        for module in MODULES {
            let bench = Bench::empty();
            let mut client = Server::on(&bench).start();
            let again = |client: &mut Client| {
                if restarts {
                    *client = Server::on(&bench).start();
                }
            };
            client.write(module.create).ok().starts("ok: CREATE VIRTUAL TABLE ");
            again(&mut client);
            client.write(module.insert).ok().starts("ok: 2 rows affected");
            again(&mut client);
            client.read(module.find).is(module.found);
            again(&mut client);
            client.write(module.update).is("ok: 1 rows affected");
            again(&mut client);
            client.destroy(module.delete).ok().starts("ok: 1 rows affected; snapshot: ");
            again(&mut client);
            client.read(module.find).is(module.updated);
            again(&mut client);
            let table = module.create.split_whitespace().nth(3).unwrap();
            client
                .call("list_tables", serde_json::json!({}))
                .ok()
                .has(&format!("{table},table,0,1\n"))
                .lacks(&format!("{table}_"));
            client.destroy(&format!("DROP TABLE {table}")).ok().starts("ok: DROP TABLE");
            assert_eq!(bench.query("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'f5%' OR name LIKE 'f4%' OR name LIKE 'f3%' OR name LIKE 'r\\_%' ESCAPE '\\'"), "0");
            assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
        }
    }
}

/// An index over a table that keeps the text, kept up by triggers, as SQLite's documentation has it.
const EXTERNAL: &str = "
    CREATE TABLE docs(id INTEGER PRIMARY KEY, body TEXT);
    CREATE VIRTUAL TABLE docs_fts USING fts5(body, content = 'docs', content_rowid = 'id');
    CREATE TRIGGER docs_ai AFTER INSERT ON docs BEGIN
        INSERT INTO docs_fts(rowid, body) VALUES (new.id, new.body); END;
    CREATE TRIGGER docs_ad AFTER DELETE ON docs BEGIN
        INSERT INTO docs_fts(docs_fts, rowid, body) VALUES ('delete', old.id, old.body); END;
    CREATE TRIGGER docs_au AFTER UPDATE ON docs BEGIN
        INSERT INTO docs_fts(docs_fts, rowid, body) VALUES ('delete', old.id, old.body);
        INSERT INTO docs_fts(rowid, body) VALUES (new.id, new.body); END;
";

fn use_external(bench: &Bench, client: &mut Client) {
    client
        .write("INSERT INTO docs(body) VALUES ('an apple'), ('a pear'), ('a plum')")
        .ok()
        .starts("ok: 3 rows affected");
    client.write("UPDATE docs SET body = 'an apricot' WHERE id = 2").is("ok: 1 rows affected");
    let found = "SELECT rowid, body FROM docs_fts WHERE docs_fts MATCH 'apple OR pear OR apricot'";
    client.read(found).is("rowid,body\n1,an apple\n2,an apricot\n# 2 rows");
    client.write("DELETE FROM docs WHERE id = 1").fails(&["destructive_query"]);
    client.destroy("DELETE FROM docs WHERE id = 1").ok().starts("ok: 1 rows affected; snapshot: ");
    client.destroy("UPDATE docs SET body = body || ' tree'").ok().starts("ok: 2 rows affected; snapshot: ");
    client.read("SELECT count(*) AS n FROM docs_fts WHERE docs_fts MATCH 'tree'").is("n\n2\n# 1 rows");
    client.write("INSERT INTO docs_fts(docs_fts) VALUES ('integrity-check')").ok();
    assert_eq!(bench.query("PRAGMA integrity_check"), "ok");
}

#[test]
fn an_external_content_index_is_kept_up_by_its_triggers() {
    let bench = Bench::with(EXTERNAL);
    let mut client = Server::on(&bench).start();
    use_external(&bench, &mut client);
}

#[test]
fn an_agent_can_make_an_external_content_index_itself() {
    let bench = Bench::empty();
    let mut client = Server::on(&bench).start();
    let statements =
        EXTERNAL.split_inclusive("END;").flat_map(|part| match part.split_once("CREATE TRIGGER") {
            Some((before, trigger)) => {
                let mut parts: Vec<String> = before.split(';').map(str::to_owned).collect();
                parts.push(format!("CREATE TRIGGER{trigger}"));
                parts
            }
            None => vec![part.to_owned()],
        });
    for sql in statements.filter(|sql| !sql.trim().is_empty()) {
        if sql.contains("TRIGGER") {
            client.destroy(&sql).ok().starts("ok: CREATE TRIGGER docs_a");
        } else {
            client.write(&sql).ok();
        }
    }
    drop(client);
    use_external(&bench, &mut Server::on(&bench).start());
}

#[test]
fn the_guard_counts_rows_of_virtual_tables() {
    let bench = Bench::with(
        "CREATE VIRTUAL TABLE f USING fts5(body);
         WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 30) INSERT INTO f(rowid, body) SELECT x, 'word ' || x FROM c;",
    );
    bench.sql(EXTERNAL);
    bench.sql("INSERT INTO docs(body) SELECT body FROM f");
    let mut client = Server::on(&bench).flags(&["--max-update-rows", "5"]).start();
    client.write("UPDATE f SET body = 'x'").fails(&["would overwrite 30 existing rows", "rolled back"]);
    client.write("UPDATE f SET body = 'x' WHERE rowid <= 5").is("ok: 5 rows affected");
    client.write("INSERT INTO f(body) SELECT body FROM f").ok().starts("ok: 30 rows affected");
    client.write("UPDATE docs SET body = 'x'").fails(&["would overwrite 30 existing rows", "rolled back"]);
    client.write("UPDATE docs SET body = 'x' WHERE id <= 5").is("ok: 5 rows affected");
    client.write("INSERT INTO docs(body) SELECT body FROM f").ok().starts("ok: 60 rows affected");
    client.read("SELECT count(*) AS n FROM docs_fts WHERE docs_fts MATCH 'x'").is("n\n15\n# 1 rows");
}

#[test]
fn commands_that_drop_index_content_are_destructive() {
    let bench = Bench::with(EXTERNAL);
    bench.sql("INSERT INTO docs(body) VALUES ('an apple'); CREATE VIRTUAL TABLE f4 USING fts4(body); INSERT INTO f4 VALUES ('x')");
    let mut client = Server::on(&bench).start();
    for sql in [
        "INSERT INTO docs_fts(docs_fts) VALUES ('delete-all')",
        "INSERT INTO docs_fts(docs_fts) VALUES ('DELETE-all')",
        "INSERT INTO docs_fts(docs_fts) SELECT 'delete-all'",
        "INSERT INTO docs_fts(docs_fts) SELECT lower('DELETE-ALL')",
        "INSERT INTO docs_fts(docs_fts) VALUES ('delete' || '-all')",
        "INSERT INTO docs_fts(docs_fts, rowid, body) VALUES ('delete', 1, 'an apple')",
        "INSERT INTO docs_fts(rowid, body, docs_fts) SELECT id, body, 'delete' FROM docs",
        "INSERT INTO docs_fts(docs_fts) VALUES ((SELECT 'delete-all'))",
        "WITH c(x) AS (VALUES ('delete-all')) INSERT INTO docs_fts(docs_fts) SELECT x FROM c",
    ] {
        client.write(sql).fails_as("REFUSED", &["docs_fts", "destructive_query"]);
        client.read("SELECT count(*) AS n FROM docs_fts WHERE docs_fts MATCH 'apple'").is("n\n1\n# 1 rows");
    }
    client
        .call("write_query", serde_json::json!({"query": "INSERT INTO docs_fts(docs_fts) VALUES (?)", "params": ["delete-all"]}))
        .fails_as("REFUSED", &["not a constant", "destructive_query"]);
    for sql in [
        "INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')",
        "INSERT INTO docs_fts(docs_fts) VALUES ('optimize')",
        "INSERT INTO docs_fts(docs_fts, rank) VALUES ('merge', 4)",
        "INSERT INTO docs_fts(docs_fts, rank) VALUES ('automerge', 8)",
        "INSERT INTO f4(f4) VALUES ('optimize')",
        "INSERT INTO f4(f4) VALUES ('rebuild')",
    ] {
        client.write(sql).ok();
    }
    client.destroy("INSERT INTO docs_fts(docs_fts) VALUES ('delete-all')").ok().has("snapshot: ");
    client.read("SELECT count(*) AS n FROM docs_fts WHERE docs_fts MATCH 'apple'").is("n\n0\n# 1 rows");
}

#[test]
fn shadow_tables_are_read_and_never_written() {
    let bench = Bench::with(EXTERNAL);
    bench.sql(
        "CREATE VIRTUAL TABLE f4 USING fts4(body); CREATE VIRTUAL TABLE r USING rtree(id, a, b);
        CREATE TABLE plain_data(id INTEGER PRIMARY KEY, v); CREATE TABLE docs_fts_notes(v)",
    );
    let mut client = Server::on(&bench).start();
    client.is_alive();
    let before = bench.content();
    for table in [
        "docs_fts_data",
        "docs_fts_idx",
        "docs_fts_docsize",
        "docs_fts_config",
        "f4_segments",
        "f4_segdir",
        "f4_content",
        "r_node",
        "r_rowid",
    ] {
        client.read(&format!("SELECT * FROM {table}")).ok();
        for (tool, sql) in [
            ("write_query", format!("INSERT INTO {table} DEFAULT VALUES")),
            ("write_query", format!("REPLACE INTO {table} SELECT * FROM {table}")),
            ("destructive_query", format!("DELETE FROM {table}")),
            ("destructive_query", format!("DROP TABLE {table}")),
            ("destructive_query", format!("ALTER TABLE {table} ADD COLUMN x")),
            ("destructive_query", format!("CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END")),
            ("write_query", format!("CREATE INDEX i ON {table}(rowid)")),
        ] {
            let answer = if tool == "write_query" { client.write(&sql) } else { client.destroy(&sql) };
            answer.fails(&[]);
        }
    }
    assert_eq!(bench.content(), before);
    // Tables whose names merely look alike are anybody's.
    client.write("INSERT INTO plain_data(v) VALUES (1)").ok();
    client.write("INSERT INTO docs_fts_notes VALUES (1)").ok();
    client
        .call("list_tables", serde_json::json!({}))
        .ok()
        .has("plain_data,table,0,1\n")
        .has("docs_fts_notes,table,0,1\n");
}
