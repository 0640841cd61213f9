//! The protocol over HTTP with the fixed tools, resources and prompts that the official conformance suite asks for,
//! for `tests/conformance.sh`.
//!
//! Everything below the fixtures is the real thing: HTTP, both families of revisions, questions by rounds. It opens no
//! database. What is not text is not here, since no service of this program has any.

use indelible::config::HttpSettings;
use indelible::confirm::{Question, Said};
use indelible::error::{ErrorCode, StartError, ToolError};
use indelible::outcome::{
    CallContext, CompletionOf, Completions, Offers, Outcome, RequestError, ResourceEntry, ResourcePage,
    ResourceText,
};
use indelible::server::{Service, http};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance_server: {}", error.message);
            ExitCode::from(error.exit)
        }
    }
}

/// Serves at a free port until SIGTERM.
async fn run() -> Result<(), StartError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings = HttpSettings {
        address,
        hosts: Vec::new(),
        origins: Vec::new(),
        public_url: None,
        oauth: None,
        token: None,
        no_auth: true,
    };
    let listening = http::listen(&settings).await?;
    let stop = CancellationToken::new();
    let mut signals =
        signal(SignalKind::terminate()).map_err(|error| StartError::failure(error.to_string()))?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        signals.recv().await;
        stopping.cancel();
    });
    eprintln!("serving fixtures on http://{}{}, for the conformance suite", listening.address, http::PATH);
    http::serve(Arc::new(Fixtures), listening, &settings, stop).await.map(|_| ())
}

struct Fixtures;

/// Tools that ask a person.
const ASKING: [&str; 3] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
];

const TEMPLATE: &str = "test://template/{id}/data";

impl Service for Fixtures {
    fn instructions(&self) -> String {
        "fixtures of the conformance suite".to_owned()
    }

    fn descriptors(&self) -> Vec<Value> {
        let plain = json!({"type": "object", "properties": {}});
        let tool = |name: &str, schema: &Value| json!({"name": name, "description": "A fixture.", "inputSchema": schema});
        let names = ["test_simple_text", "test_error_handling", "test_tool_with_progress"];
        let mut tools: Vec<Value> = names.iter().chain(&ASKING).map(|name| tool(name, &plain)).collect();
        let region = json!({"type": "string", "description": "A region.", "x-mcp-header": "Region"});
        tools.push(tool(
            "test_custom_header",
            &json!({"type": "object", "properties": {"region": region}, "required": ["region"]}),
        ));
        tools.push(tool("json_schema_2020_12_tool", &every_keyword()));
        tools
    }

    async fn call(
        &self,
        tool: String,
        _: Option<Map<String, Value>>,
        context: CallContext,
    ) -> Option<Outcome> {
        Some(match tool.as_str() {
            "test_simple_text" => Outcome::success("This is a simple text response for testing."),
            "test_error_handling" => {
                Outcome::failure(ErrorCode::Refused, "This tool intentionally returns an error for testing")
            }
            "test_tool_with_progress" => {
                for step in [0.0, 50.0, 100.0] {
                    if let Some(report) = &context.progress {
                        report(step, Some(100.0), format!("{step} of 100"));
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Outcome::success("done")
            }
            "test_custom_header" | "json_schema_2020_12_tool" => Outcome::success("taken"),
            tool if ASKING.contains(&tool) => asked(&context).await,
            _ => return None,
        })
    }

    fn asks(&self, tool: &str) -> bool {
        ASKING.contains(&tool)
    }

    fn offers(&self) -> Offers {
        Offers { resources: true, prompts: true, completions: true }
    }

    fn resource_templates(&self) -> Vec<Value> {
        vec![json!({"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"})]
    }

    fn prompts(&self) -> Vec<Value> {
        let argument = |name: &str| json!({"name": name, "description": "An argument.", "required": true});
        vec![
            json!({"name": "test_simple_prompt", "description": "A fixture."}),
            json!({"name": "test_prompt_with_arguments", "description": "A fixture.",
                "arguments": [argument("arg1"), argument("arg2")]}),
        ]
    }

    fn resource_changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    async fn resources(&self, _: Option<String>, _: CallContext) -> Result<ResourcePage, RequestError> {
        let entry = ResourceEntry {
            uri: "test://static-text".to_owned(),
            name: "static-text".to_owned(),
            title: "Static text".to_owned(),
            description: "A fixture.".to_owned(),
            mime_type: "text/plain".to_owned(),
            size: None,
        };
        Ok(ResourcePage { resources: vec![entry], next_cursor: None })
    }

    async fn read_resource(&self, uri: String, _: CallContext) -> Result<ResourceText, RequestError> {
        if uri == "test://static-text" {
            let text = "This is the content of the static text resource.".to_owned();
            return Ok(ResourceText { mime_type: "text/plain".to_owned(), text });
        }
        let id = TEMPLATE
            .split_once("{id}")
            .and_then(|(before, behind)| uri.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind)));
        let Some(id) = id else {
            return Err(RequestError::NotFound(ToolError::new(ErrorCode::UnknownTable, "no such resource")));
        };
        let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
        Ok(ResourceText { mime_type: "application/json".to_owned(), text: text.to_string() })
    }

    async fn prompt(
        &self,
        name: String,
        arguments: Map<String, Value>,
        _: CallContext,
    ) -> Result<String, RequestError> {
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        match name.as_str() {
            "test_simple_prompt" => Ok("This is a simple prompt for testing.".to_owned()),
            "test_prompt_with_arguments" => {
                Ok(format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2")))
            }
            _ => Err(RequestError::Invalid(ToolError::arguments("unknown prompt"))),
        }
    }

    async fn complete(
        &self,
        _: CompletionOf,
        _: String,
        begun: String,
        _: CallContext,
    ) -> Result<Completions, RequestError> {
        let values = ["paris", "park", "party"].iter().filter(|value| value.starts_with(&begun));
        let values: Vec<String> = values.map(|value| (*value).to_owned()).collect();
        Ok(Completions { total: values.len(), values })
    }

    async fn shutdown(&self, _: std::time::Instant) {}
}

/// What a person said, whatever it was; the question where nobody was asked yet.
async fn asked(context: &CallContext) -> Outcome {
    let question = Question { text: "Please confirm".to_owned(), subject: "fixture".to_owned() };
    let Some(confirmer) = &context.confirm else { return Outcome::success("nobody can be asked") };
    let said = match confirmer.at_hand(&question) {
        Some(said) => said,
        None => confirmer.ask(&question).await,
    };
    match said {
        Said::Later => Outcome { question: Some(question), ..Outcome::success("a question is open") },
        said => Outcome::success(format!("state-ok, {said:?}")),
    }
}

/// A schema with the keywords of JSON Schema 2020-12 that must arrive as they are.
fn every_keyword() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
