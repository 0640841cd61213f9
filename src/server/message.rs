//! A line to messages, or to the JSON-RPC error it deserves.
//!
//! Pure: it neither answers nor keeps state. Members that JSON-RPC does not know are passed over.
//! Sources: JSON-RPC 2.0 (<https://www.jsonrpc.org/specification>), MCP's base protocol
//! (<https://modelcontextprotocol.io/specification/2025-11-25/basic>).

use super::whole::Whole;
use crate::surface::values;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    JsonRpcMessage, RequestId, RequestMetaObject,
};
use serde_json::{Map, Value, json};

/// The line is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// The JSON is no message.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// The method's parameters are wrong.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// The most messages one batch may hold. Their answers are gathered before they are sent.
pub(super) const MAX_BATCH_MESSAGES: usize = 1000;

/// The most bytes of a message other than tools/call: the library reads those by trial and error over all
/// methods, and copies them each time.
const MAX_OTHER_BYTES: usize = 1 << 20;

/// An error answer that the transport gives itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// The request's id where it could be read; sent as null otherwise.
    pub(super) id: Option<RequestId>,
    pub(super) code: i64,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(id: Option<RequestId>, code: i64, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    /// The answer as sent, without newline.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let error = json!({"code": self.code, "message": self.message});
        json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string().into_bytes()
    }
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Parsed {
    /// Nothing but white space.
    Nothing,
    /// One message.
    One(Message),
    /// An array of so far unread messages; not empty.
    Batch(Vec<Value>),
}

/// One message.
#[derive(Debug)]
pub(super) enum Message {
    /// A request to be answered.
    Request(RequestId, Box<ClientRequest>),
    /// A ping that asks for nothing else.
    Ping(RequestId),
    /// A notification, or an answer to a request of the server's: neither is answered.
    Passing(Box<ClientJsonRpcMessage>),
    /// Something that is answered with an error.
    Refused(Refusal),
    /// Something that is neither answered nor passed on.
    Ignored,
}

/// Reads a line.
pub(super) fn parse(line: &[u8]) -> Parsed {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Parsed::Nothing;
    }
    let refused = |code, message: &str| Parsed::One(Message::Refused(Refusal::new(None, code, message)));
    if values::too_many(line) {
        let rule = format!("a line may hold {} values; bind large data as one value", values::MAX_VALUES);
        return Parsed::One(Message::Refused(Refusal::new(id_alone(line), INVALID_REQUEST, rule)));
    }
    let whole = serde_json::from_slice::<Whole>(line);
    if let Ok(Whole { twice: false, twice_below: true, .. }) = &whole {
        let rule = "a member of an object in `params` stands twice; send each once";
        return Parsed::One(Message::Refused(Refusal::new(id_alone(line), INVALID_REQUEST, rule)));
    }
    match whole.map(|whole| if whole.twice { None } else { Some(whole.value) }) {
        // The library's own words name the place and never quote the line.
        Err(error) => refused(PARSE_ERROR, &format!("the line is not valid JSON: {error}")),
        // Readers differ in which one they take, and here the next one takes none.
        Ok(None) => refused(INVALID_REQUEST, "a member of the message stands twice; send each once"),
        Ok(Some(Value::Array(messages))) if messages.is_empty() => {
            refused(INVALID_REQUEST, "an empty batch asks for nothing")
        }
        Ok(Some(Value::Array(messages))) if messages.len() > MAX_BATCH_MESSAGES => {
            let rule = format!("a batch may hold {MAX_BATCH_MESSAGES} messages, not {}", messages.len());
            refused(INVALID_REQUEST, &rule)
        }
        Ok(Some(Value::Array(messages))) => Parsed::Batch(messages),
        Ok(Some(value)) if line.len() > MAX_OTHER_BYTES && !is_tool_call(&value) => {
            Parsed::One(too_long_for_its_method(&value))
        }
        Ok(Some(value)) => Parsed::One(message(value)),
    }
}

/// The id of a message of which nothing else is to be read.
fn id_alone(line: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Id,
    }
    serde_json::from_slice::<Head>(line).ok().and_then(|head| head.id.0)
}

/// A string or a whole number; anything else is passed over.
struct Id(Option<RequestId>);

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Id;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an id")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Id, E> {
                Ok(Id(Some(RequestId::Number(number))))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
                Ok(Id(i64::try_from(number).ok().map(RequestId::Number)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Id, E> {
                Ok(Id(Some(RequestId::String(text.into()))))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn is_tool_call(value: &Value) -> bool {
    value.get("method").and_then(Value::as_str) == Some("tools/call")
}

fn too_long_for_its_method(value: &Value) -> Message {
    if value.get("id").is_none() || value.get("method").is_none() {
        return Message::Ignored;
    }
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let rule = format!("only tools/call may have more than {MAX_OTHER_BYTES} bytes");
    Message::Refused(Refusal::new(id, INVALID_REQUEST, rule))
}

/// Reads one message.
pub(super) fn message(value: Value) -> Message {
    let Value::Object(mut object) = value else {
        return refused(None, INVALID_REQUEST, "a message must be a JSON object");
    };
    let id = object.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
    }
    match object.remove("method") {
        Some(Value::String(method)) if object.contains_key("id") => match id {
            None => refused(None, INVALID_REQUEST, "`id` must be a string or a whole number"),
            Some(id) => request(id, method, object.remove("params")),
        },
        Some(Value::String(method)) => notification(method, object.remove("params")),
        Some(_) => refused(id, INVALID_REQUEST, "`method` must be a string"),
        None if object.contains_key("result") || object.contains_key("error") => answer(object),
        None => refused(id, INVALID_REQUEST, "a message must have a `method`, a `result` or an `error`"),
    }
}

/// A ping as any other request.
pub(super) fn ping(id: RequestId) -> Message {
    match serde_json::from_value(json!({"method": "ping"})) {
        Ok(request) => Message::Request(id, Box::new(request)),
        Err(_) => refused(Some(id), INVALID_REQUEST, "`ping` is not known here"),
    }
}

fn refused(id: Option<RequestId>, code: i64, message: &str) -> Message {
    Message::Refused(Refusal::new(id, code, message))
}

fn request(id: RequestId, method: String, params: Option<Value>) -> Message {
    let params = match params {
        None | Some(Value::Null) => None,
        Some(Value::Object(params)) => Some(params),
        Some(_) => return refused(Some(id), INVALID_PARAMS, "`params` must be an object"),
    };
    if method == "ping" && params.as_ref().is_none_or(Map::is_empty) {
        return Message::Ping(id);
    }
    // The library drops optional parameters that do not fit, and would send the first page again.
    let cursor = params.as_ref().and_then(|params| params.get("cursor"));
    if method.ends_with("/list") && cursor.is_some_and(|cursor| !cursor.is_string() && !cursor.is_null()) {
        return refused(Some(id), INVALID_PARAMS, "`params.cursor` must be a string");
    }
    let request = if method == "tools/call" {
        tool_call(params.unwrap_or_default())
    } else {
        // Known methods with parameters of the wrong shape come out as custom requests; the handler
        // tells those from unknown methods.
        let whole = match params {
            Some(params) => json!({"method": method, "params": params}),
            None => json!({"method": method}),
        };
        serde_json::from_value(whole).map_err(|_| "`params` do not fit the method")
    };
    match request {
        Ok(request) => Message::Request(id, Box::new(request)),
        Err(rule) => refused(Some(id), INVALID_PARAMS, rule),
    }
}

/// A tools/call, put together by hand: the statement in it may be many megabytes, which the library's
/// trial and error over all methods would copy several times.
fn tool_call(mut params: Map<String, Value>) -> Result<ClientRequest, &'static str> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err("`params.name` must be a string, the name of a tool");
    };
    let mut call = CallToolRequestParams::new(name);
    call.arguments = match params.remove("arguments") {
        None | Some(Value::Null) => None,
        Some(Value::Object(arguments)) => Some(arguments),
        Some(_) => return Err("`params.arguments` must be an object"),
    };
    if let Some(responses) = params.remove("inputResponses") {
        let responses = serde_json::from_value(responses);
        call.input_responses = Some(responses.map_err(|_| "`params.inputResponses` is malformed")?);
    }
    match params.remove("requestState") {
        None | Some(Value::Null) => {}
        Some(Value::String(state)) => call.request_state = Some(state),
        Some(_) => return Err("`params.requestState` must be a string"),
    }
    let meta = match params.remove("_meta") {
        None | Some(Value::Null) => None,
        Some(Value::Object(meta)) => Some(RequestMetaObject::from(meta)),
        Some(_) => return Err("`params._meta` must be an object"),
    };
    let mut request = CallToolRequest::new(call);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Ok(ClientRequest::CallToolRequest(request))
}

fn notification(method: String, params: Option<Value>) -> Message {
    let whole = match params {
        Some(params @ Value::Object(_)) => json!({"method": method, "params": params}),
        _ => json!({"method": method}),
    };
    match serde_json::from_value::<ClientNotification>(whole) {
        Ok(notification) => Message::Passing(Box::new(JsonRpcMessage::notification(notification))),
        Err(_) => Message::Ignored,
    }
}

/// An answer is never answered, however malformed it is: two ends that did so would never stop.
fn answer(object: Map<String, Value>) -> Message {
    match serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(object)) {
        Ok(message) => Message::Passing(Box::new(message)),
        Err(_) => Message::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line comes to, in a word or two.
    fn summary(line: &[u8]) -> String {
        match parse(line) {
            Parsed::Nothing => "nothing".to_owned(),
            Parsed::Batch(messages) => format!("batch of {}", messages.len()),
            Parsed::One(Message::Request(id, request)) => format!("request {id} {}", request.method()),
            Parsed::One(Message::Ping(id)) => format!("request {id} ping"),
            Parsed::One(Message::Passing(message)) => match *message {
                JsonRpcMessage::Notification(_) => "notification".to_owned(),
                _ => "answer".to_owned(),
            },
            Parsed::One(Message::Refused(refusal)) => {
                let id = refusal.id.map_or("-".to_owned(), |id| id.to_string());
                format!("refused {} {id}", refusal.code)
            }
            Parsed::One(Message::Ignored) => "ignored".to_owned(),
        }
    }

    #[test]
    fn every_line_comes_to_a_message_or_to_its_error() {
        let deep = "[".repeat(100_000);
        let many = "0,".repeat(values::MAX_VALUES);
        let many_values =
            format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"a":[{many}0]}},"id":7}}"#);
        let many_in_a_batch = format!("[{many}0]");
        let long = "x".repeat(MAX_OTHER_BYTES);
        let message = |rest: &str| format!(r#"{{"jsonrpc":"2.0",{rest}}}"#);
        let long_call = message(&format!(
            r#""id":8,"method":"tools/call","params":{{"name":"t","arguments":{{"a":"{long}"}}}}"#
        ));
        let long_other = message(&format!(r#""id":"a","method":"prompts/get","params":{{"name":"{long}"}}"#));
        let long_answer = message(&format!(r#""id":1,"result":{{"a":"{long}"}}"#));
        let deep_params = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        let rows: &[(&[u8], &str)] = &[
            (b"", "nothing"),
            (b"  \t\r", "nothing"),
            (b"\xEF\xBB\xBF", "nothing"),
            (b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", "request 1 ping"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"ping","extra":{"x":1},"result":2}"#, "request a ping"),
            (br#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, "request 1 ping"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#, "request 1 nope"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#, "request 1 tools/list"),
            (br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification"),
            (br#"{"jsonrpc":"2.0","method":"x/y","params":[1]}"#, "notification"),
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "answer"),
            (br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, "answer"),
            (br#"{"jsonrpc":"2.0","id":1,"error":5}"#, "ignored"),
            (b"not json", "refused -32700 -"),
            (many_values.as_bytes(), "refused -32600 7"),
            (many_in_a_batch.as_bytes(), "refused -32600 -"),
            (long_call.as_bytes(), "request 8 tools/call"),
            (long_other.as_bytes(), "refused -32600 a"),
            (long_answer.as_bytes(), "ignored"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "refused -32700 -"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "refused -32700 -"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, "refused -32700 -"),
            (deep.as_bytes(), "refused -32700 -"),
            (deep_params.as_bytes(), "refused -32700 -"),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "refused -32600 -"),
            (
                br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
                "refused -32600 1",
            ),
            (
                br#"[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[{"b":1,"b":1}]}}]"#,
                "refused -32600 -",
            ),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#, "refused -32600 -"),
            (br#"[{"jsonrpc":"2.0","method":"a/b","method":"a/b"}]"#, "refused -32600 -"),
            (b"5", "refused -32600 -"),
            (b"null", "refused -32600 -"),
            (b"[]", "refused -32600 -"),
            (b"[1,2]", "batch of 2"),
            (br#"{"id":7,"method":"ping"}"#, "refused -32600 7"),
            (br#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, "refused -32600 7"),
            (br#"{"jsonrpc":"2.0","id":7,"method":5}"#, "refused -32600 7"),
            (br#"{"jsonrpc":"2.0","id":7}"#, "refused -32600 7"),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "refused -32600 -"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "refused -32600 -"),
            (br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, "refused -32600 -"),
            (br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#, "refused -32602 7"),
            (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#, "refused -32602 7"),
            (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}"#, "refused -32602 7"),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":[]}}"#,
                "refused -32602 7",
            ),
            (
                br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":null}}"#,
                "request 7 tools/call",
            ),
        ];
        for (line, expected) in rows {
            let shown = String::from_utf8_lossy(line.get(..80).unwrap_or(line));
            assert_eq!(&summary(line), expected, "{shown}");
        }
    }

    #[test]
    fn a_batch_is_bounded() {
        let line = format!("[{}1]", "1,".repeat(MAX_BATCH_MESSAGES));
        assert_eq!(summary(line.as_bytes()), "refused -32600 -");
    }

    #[test]
    fn an_error_without_a_readable_id_has_a_null_id() {
        let bytes = Refusal::new(None, PARSE_ERROR, "no").to_bytes();
        let expected = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
