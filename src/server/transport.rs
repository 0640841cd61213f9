//! The lines as an rmcp transport: reads, refuses what is no message, admits what is, and writes answers.
//!
//! It keeps the library's loop out of trouble: what may not come before a handshake is dropped here,
//! ids under way twice are refused, batches are taken apart and put together, reading pauses
//! while too much is under way, and the end of input is passed on only when the answers are out.

use super::flight::{BatchKey, Flight};
use super::lines::{Line, Lines};
use super::message::{self, INVALID_REQUEST, Message, PARSE_ERROR, Parsed, Refusal};
use super::writer::Writer;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Reading pauses while so many requests are under way.
const MAX_REQUESTS_UNDER_WAY: usize = 512;

/// Reading pauses while so many bytes of answers wait for a client that does not read them.
const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// While requests of so many bytes are under way, no line longer than [`SHORT_LINE_BYTES`] is read: the memory
/// for one large request is there, for several it is not. Short ones, a cancellation say, still get in.
const MANY_BYTES: usize = 8 * 1024 * 1024;
/// See [`MANY_BYTES`].
const SHORT_LINE_BYTES: usize = 1024 * 1024;

/// One client's connection.
pub(super) struct LineTransport<R> {
    lines: Lines<R>,
    writer: Writer,
    flight: Arc<Flight>,
    /// Read but not yet admitted, each with the bytes it came as.
    pending: VecDeque<(Message, Option<BatchKey>, usize)>,
    /// Whether the library has left its handshake, in which any other message than a request ends it.
    opened: bool,
    /// The revision of the handshake.
    revision: Option<ProtocolVersion>,
    /// How long answers may take after the end of input.
    patience: Duration,
    /// Set at the end of input, or when the client has hung up.
    deadline: Option<Instant>,
    /// Nothing more will be read.
    input_over: bool,
    ends: Ends,
}

/// Cancelled as a connection ends.
pub(super) struct Ends {
    /// When the client has closed its end, while there may be something left to read.
    pub(super) hung_up: CancellationToken,
    /// When no more input will come.
    pub(super) input: CancellationToken,
    /// When nothing more will be received, the answers being out.
    pub(super) all: CancellationToken,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    /// A transport over these lines. It has ended at most `patience` after the end of input.
    pub(super) fn new(
        lines: Lines<R>,
        writer: Writer,
        flight: Arc<Flight>,
        patience: Duration,
        ends: Ends,
    ) -> Self {
        Self {
            lines,
            writer,
            flight,
            pending: VecDeque::new(),
            opened: false,
            revision: None,
            patience,
            deadline: None,
            input_over: false,
            ends,
        }
    }

    /// Whether every answer has been written, as far as they can be.
    fn is_drained(&self) -> bool {
        self.flight.len() == 0 && self.writer.queued_bytes() == 0
    }

    /// Answers have so long from now on.
    fn end_input(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + self.patience);
        self.ends.input.cancel();
    }

    /// Waits until a request or a write is done with, the deadline is there, or the client hangs up: while
    /// reading pauses nobody would else notice.
    async fn wait(&mut self) {
        let Some(deadline) = self.deadline else {
            tokio::select! {
                () = self.flight.changed.notified() => {}
                () = self.ends.hung_up.cancelled() => self.end_input(),
            }
            return;
        };
        let _ = tokio::time::timeout_at(deadline, self.flight.changed.notified()).await;
    }

    fn has_room(&self) -> bool {
        self.flight.len() < MAX_REQUESTS_UNDER_WAY && self.writer.queued_bytes() < MAX_QUEUED_BYTES
    }

    /// The longest line that is read now.
    fn longest_line(&self) -> usize {
        if self.flight.bytes() > MANY_BYTES { SHORT_LINE_BYTES } else { usize::MAX }
    }

    /// Puts what the line holds into `pending`.
    fn take_apart(&mut self, line: &[u8]) {
        match message::parse(line) {
            Parsed::Nothing => {}
            Parsed::One(message) => self.pending.push_back((message, None, line.len())),
            Parsed::Batch(messages) => {
                let share = line.len() / messages.len().max(1);
                self.take_batch_apart(messages, share);
            }
        }
    }

    /// Batches are part of JSON-RPC and came into MCP's own schema in 2025-03-26 only, where the answers
    /// should come in an array as well. In 2024-11-05 each is answered by itself, which its schema allows.
    fn take_batch_apart(&mut self, messages: Vec<Value>, bytes: usize) {
        let gathered = match self.revision.as_ref().map(ProtocolVersion::as_str) {
            Some("2025-03-26") => true,
            Some("2024-11-05") => false,
            _ => {
                let rule = "batches exist only in revision 2025-03-26; send one message a line";
                self.refuse(&Refusal::new(None, INVALID_REQUEST, rule), None);
                return;
            }
        };
        let messages: Vec<Message> =
            messages.into_iter().map(message::message).map(without_handshake).collect();
        let is_answered =
            |m: &&Message| matches!(m, Message::Request(..) | Message::Ping(_) | Message::Refused(_));
        let answers = messages.iter().filter(is_answered).count();
        let batch = (gathered && answers > 0).then(|| self.flight.open_batch(answers));
        self.pending.extend(messages.into_iter().map(|message| (message, batch, bytes)));
    }

    /// What the library is to see of this message.
    fn admit(
        &mut self,
        message: Message,
        batch: Option<BatchKey>,
        bytes: usize,
    ) -> Option<ClientJsonRpcMessage> {
        match message {
            Message::Ignored => None,
            Message::Refused(refusal) => {
                self.refuse(&refusal, batch);
                None
            }
            // Before the handshake the library would take either for the client's end.
            Message::Passing(_) if !self.opened => None,
            Message::Passing(message) => {
                if let JsonRpcMessage::Notification(sent) = message.as_ref()
                    && let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                    && let Some(line) = self.flight.cancelled(id)
                {
                    self.writer.line(line);
                }
                Some(*message)
            }
            // A ping asks whether anybody is there; the way through the library and back costs several times as much
            // as the answer. In the handshake and in a batch it is a request like others.
            Message::Ping(id) if self.revision.is_some() && batch.is_none() && !self.flight.knows(&id) => {
                self.writer.line(pong(&id));
                None
            }
            Message::Ping(id) => self.admit(message::ping(id), batch, bytes),
            Message::Request(id, request) => {
                if !self.flight.enter(&id, batch, bytes) {
                    let rule = "a request with this id is still under way; ids must be unique";
                    self.refuse(&Refusal::new(Some(id), INVALID_REQUEST, rule), batch);
                    return None;
                }
                self.opened = self.opened || opens(&request);
                Some(JsonRpcMessage::request(*request, id))
            }
        }
    }

    fn refuse(&self, refusal: &Refusal, batch: Option<BatchKey>) {
        if refusal.code == PARSE_ERROR || refusal.code == INVALID_REQUEST {
            tracing::info!(message = refusal.message, "refused a line");
        }
        let line = match batch {
            Some(batch) => self.flight.answered_in_batch(batch, refusal.to_bytes()),
            None => Some(refusal.to_bytes()),
        };
        if let Some(line) = line {
            self.writer.line(line);
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for LineTransport<R> {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        if let JsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(result) = &response.result
        {
            self.revision = Some(result.protocol_version.clone());
        }
        let id = answered_id(&message);
        let line = match serde_json::to_vec(&message) {
            Ok(line) => line,
            // Values from the library's own types cannot fail to serialize; were one to, the client
            // still gets an answer.
            Err(error) => Refusal::new(id.clone(), -32603, error.to_string()).to_bytes(),
        };
        let line = match &id {
            Some(id) => self.flight.answered(id, line),
            None => Some(line),
        };
        if let Some(line) = line {
            self.writer.line(line);
        }
        std::future::ready(Ok(()))
    }

    // May be dropped at every await: all state is in `self`.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            if !is_late && !self.has_room() {
                self.wait().await;
                continue;
            }
            if let Some((message, batch, bytes)) = self.pending.pop_front()
                && !is_late
            {
                if let Some(message) = self.admit(message, batch, bytes) {
                    return Some(message);
                }
                continue;
            }
            if is_late || (self.input_over && self.is_drained()) {
                self.ends.all.cancel();
                return None;
            }
            if self.input_over {
                self.wait().await;
                continue;
            }
            let most = self.longest_line();
            let line = tokio::select! {
                biased;
                () = self.writer.broken.cancelled() => Line::End,
                line = self.lines.next(most) => line,
            };
            match line {
                Line::Whole(line) => self.take_apart(&line),
                Line::Held => self.wait().await,
                Line::TooLong => {
                    let rule = format!("a line may hold {} bytes", super::MAX_LINE_BYTES);
                    self.refuse(&Refusal::new(None, INVALID_REQUEST, rule), None);
                }
                Line::End => {
                    self.input_over = true;
                    self.end_input();
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.ends.all.cancel();
        Ok(())
    }
}

/// The answer to a ping, without newline.
fn pong(id: &RequestId) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string().into_bytes()
}

fn answered_id(message: &ServerJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        _ => None,
    }
}

/// `initialize` must not be part of a batch (2025-03-26, basic/lifecycle).
fn without_handshake(message: Message) -> Message {
    match message {
        Message::Request(id, request) if matches!(*request, ClientRequest::InitializeRequest(_)) => {
            let rule = "`initialize` must not be part of a batch";
            Message::Refused(Refusal::new(Some(id), INVALID_REQUEST, rule))
        }
        message => message,
    }
}

/// Whether the library leaves its handshake at this request: `initialize`, or one that carries its own
/// revision and capabilities, as from 2026-07-28 on. ping and server/discover are answered inside it.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|v| ProtocolVersion::KNOWN_VERSIONS.contains(&v))
        }
    }
}
