//! A client of the explorer that believes nothing: each answer is held against schemas and codes.

use crate::support::{Answer, Bench, Client, Server, violation};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Tools that give rows.
const ROWS: [&str; 2] = ["run_query", "sample_rows"];

pub(crate) struct Desk {
    pub(crate) client: Client,
    schemas: HashMap<String, Value>,
}

impl Desk {
    pub(crate) fn on(bench: &Bench) -> Self {
        Self::with(bench, &[])
    }

    pub(crate) fn with(bench: &Bench, flags: &[&str]) -> Self {
        Self::of(Server::on(bench).flags(flags))
    }

    #[track_caller]
    pub(crate) fn of(server: Server) -> Self {
        let mut client = server.flags(&["--profile", "explorer"]).start();
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let schema = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), tool["outputSchema"].clone());
        let schemas = list.as_array().unwrap().iter().map(schema).collect();
        Self { client, schemas }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.client.call(tool, arguments);
        self.check(tool, &answer);
        answer
    }

    #[track_caller]
    pub(crate) fn send_query(&mut self, sql: &str) -> i64 {
        self.client.send_call("run_query", json!({"sql": sql}))
    }

    /// Waits for the answer to a query that was sent.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: i64) -> Answer {
        let answer = self.client.answer(id);
        self.check("run_query", &answer);
        answer
    }

    #[track_caller]
    pub(crate) fn query(&mut self, sql: &str) -> Answer {
        self.call("run_query", json!({"sql": sql}))
    }

    /// The rows that a query gives.
    #[track_caller]
    pub(crate) fn rows(&mut self, sql: &str) -> Value {
        self.query(sql).ok().structured["rows"].clone()
    }

    #[track_caller]
    pub(crate) fn data(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).ok().structured.clone()
    }

    #[track_caller]
    pub(crate) fn is_alive(&mut self) {
        assert_eq!(self.rows("SELECT 1"), json!([[1]]));
    }

    #[track_caller]
    fn check(&self, tool: &str, answer: &Answer) {
        if answer.failed {
            assert!(
                answer.text.starts_with(&format!("[{}] ", answer.code)),
                "{}: {}",
                answer.code,
                answer.text
            );
            assert_eq!(answer.structured, Value::Null, "an error carries no data");
            assert!(!answer.text.ends_with('.') && !answer.text.contains("panicked"), "{}", answer.text);
            return;
        }
        let data = &answer.structured;
        assert_eq!(violation(&self.schemas[tool], data), None, "{tool}: {data}");
        if ROWS.contains(&tool) {
            let (columns, rows) = (data["columns"].as_array().unwrap(), data["rows"].as_array().unwrap());
            assert_eq!(data["row_count"], rows.len());
            assert!(rows.iter().all(|row| row.as_array().unwrap().len() == columns.len()), "{data}");
            // Header, rule, one line for each row, an empty line, the last line.
            assert_eq!(answer.text.lines().count(), rows.len() + 4, "{}", answer.text);
        }
    }
}
