//! list_tables, describe_table, get_schema: what the database looks like.

use crate::support::{Bench, Server};
use serde_json::json;

#[test]
fn tables_and_views_are_listed_with_owner_and_count() {
    let bench = Bench::notes();
    bench.sql(
        "CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES ('x');
         CREATE TABLE f_datalike(a); CREATE TABLE sqlitelike(a); CREATE VIEW v AS SELECT 1; CREATE TABLE \"odd, \"\"name\"(a); CREATE TABLE w(k PRIMARY KEY) WITHOUT ROWID",
    );
    let mut client = Server::on(&bench).start();
    let system = "memory_checkpoints,table,1,0\nmemory_events,table,1,0\n";
    let rows = client.call("list_tables", json!({}));
    rows.ok()
        .starts("name,type,system,rows\nf,table,0,1\nf_datalike,table,0,0\nnotes,table,0,3\n\"odd, \"\"name\",table,0,0\nsqlitelike,table,0,0\ntags,table,0,0\nv,view,0,\nw,table,0,0\n")
        .has(system)
        .has("query_errors,view,1,\n")
        .ends("# 12 rows")
        .lacks("sqlite_sequence")
        .lacks("f_data,");
    client
        .call("list_tables", json!({"include_row_counts": false}))
        .ok()
        .has("notes,table,0,\n")
        .has("memory_events,table,1,\n");
}

#[test]
fn counts_that_take_too_long_stay_empty() {
    let bench = Bench::with(
        "CREATE TABLE small(a); INSERT INTO small VALUES (1);
         CREATE TABLE zlarge(a); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) INSERT INTO zlarge SELECT printf('%.*c', 200, 'x') FROM c;",
    );
    let mut client = Server::on(&bench).flags(&["--query-timeout", "0.000001"]).start();
    client.call("list_tables", json!({})).ok().has("zlarge,table,0,\n");
}

#[test]
fn a_table_is_described_in_sections() {
    let bench = Bench::notes();
    bench.sql(
        "CREATE TABLE p(a INTEGER, b TEXT, PRIMARY KEY (a, b));
         CREATE TABLE c(x INTEGER NOT NULL DEFAULT 5, y TEXT DEFAULT 'a,b', z AS (x * 2), s AS (x + 1) STORED,
            FOREIGN KEY (x, y) REFERENCES p(a, b) ON DELETE CASCADE, UNIQUE (y));
         CREATE INDEX c_part ON c(lower(y), x) WHERE x > 1;
         CREATE VIEW v AS SELECT id, title FROM notes",
    );
    let mut client = Server::on(&bench).start();
    client.call("describe_table", json!({"table": "tags"})).is(
        "# columns\ncid,name,type,notnull,default,pk\n0,id,INTEGER,0,,1\n1,note_id,INTEGER,0,,0\n2,tag,TEXT,0,,0\n\n\
         # foreign_keys\nfrom,to_table,to_column\nnote_id,notes,id\n\n\
         # indexes\nname,unique,origin,columns\ntags_note,0,c,note_id",
    );
    client.call("describe_table", json!({"table": "C"})).is(
        "# columns\ncid,name,type,notnull,default,pk,hidden\n0,x,INTEGER,1,5,0,0\n1,y,TEXT,0,\"'a,b'\",0,0\n2,z,,0,,0,generated virtual\n3,s,,0,,0,generated stored\n\n\
         # foreign_keys\nfrom,to_table,to_column,on_update,on_delete\n\"x,y\",p,\"a,b\",NO ACTION,CASCADE\n\n\
         # indexes\nname,unique,origin,columns,partial\nc_part,0,c,\"<expr>,x\",1\nsqlite_autoindex_c_1,1,u,y,0",
    );
    client
        .call("describe_table", json!({"table": "v"}))
        .ok()
        .starts("# columns\ncid,name,type,notnull,default,pk\n0,id,INTEGER,0,,0\n1,title,TEXT,0,,0\n");
    client.call("describe_table", json!({"table": "memory_events"})).ok().has("prev_hash");
    for (table, words) in [
        ("nope", &["`nope`", "list_tables"] as &[&str]),
        ("note", &["`note`", "`notes`"]),
        ("", &[]),
        ("notes; DROP TABLE notes", &[]),
        ("a\0b", &[]),
    ] {
        client.call("describe_table", json!({"table": table})).fails_as("UNKNOWN_TABLE", words);
    }
}

#[test]
fn the_schema_is_shown_as_stored_without_the_server_s_own() {
    let bench = Bench::notes();
    bench.sql("CREATE VIRTUAL TABLE f USING fts5(a); CREATE TRIGGER tr AFTER INSERT ON notes BEGIN SELECT 1; END; CREATE VIEW v AS SELECT 1 -- ends in a comment");
    let mut client = Server::on(&bench).start();
    let text = client.call("get_schema", json!({}));
    text.ok()
        .has("CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, score REAL);\n\n")
        .has("CREATE INDEX tags_note ON tags(note_id);\n\n")
        .has("CREATE VIRTUAL TABLE f USING fts5(a);\n\n")
        .has("CREATE TRIGGER tr AFTER INSERT ON notes BEGIN SELECT 1; END;\n\n")
        .has("-- ends in a comment\n;\n\n")
        .has("hidden (include_system: true shows them)")
        .lacks("memory_events")
        .lacks("f_data");
    client
        .call("get_schema", json!({"include_system": true}))
        .ok()
        .has("memory_events")
        .has("-- description:")
        .lacks("f_data")
        .lacks("hidden");
}
