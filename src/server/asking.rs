//! Questions to the person at the client, in both ways the protocol has.
//!
//! Up to 2025-11-25 the server sends `elicitation/create` while the call waits (`dialog`). From 2026-07-28 on
//! the call ends with `input_required` and a sealed state, and is made again with the answer ([`Round`];
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>). It does not know what the
//! questions are about.

use super::dialog::{Dialog, Place};
use super::handler::Wire;
use crate::confirm::{Confirmer, Question, Said};
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, RequestStateCodec,
    RequestStateError, SealOptions,
};
use rmcp::service::RequestContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The one member of the form, and the key of the one request in `inputRequests`.
const CONFIRM: &str = "confirm";

/// Questions that may be open at once; answers must still get through beside them.
const MOST_OPEN: usize = 64;

/// States that may be out at once; beyond them the oldest is forgotten.
const MOST_STATES: usize = 1024;

/// The questions of one server.
pub(super) struct Questions {
    codec: RequestStateCodec,
    patience: Duration,
    /// States that were handed out and not yet used: the id, and when it expires.
    out: Mutex<HashMap<u64, Instant>>,
    ids: AtomicU64,
    dialogs: Semaphore,
}

/// What a sealed state holds. Tool and arguments are bound to it beside, as associated data.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    id: u64,
    subject: String,
    round: u32,
}

/// Why a `requestState` is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadState(pub(super) &'static str);

impl Questions {
    /// No questions yet. The key is this process's own, so a state does not outlive it.
    pub(super) fn new(patience: Duration) -> Self {
        let key: Vec<u8> =
            [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].iter().flat_map(|id| *id.as_bytes()).collect();
        Self {
            // Longer than the 32 bytes that the checked constructor asks for.
            codec: RequestStateCodec::new_unchecked(key),
            patience,
            out: Mutex::default(),
            ids: AtomicU64::new(0),
            dialogs: Semaphore::new(MOST_OPEN),
        }
    }

    /// Opens the state that a repeated call came with. It is used up by that.
    ///
    /// # Errors
    /// A state that this server did not hand out for this call, or that was used before.
    pub(super) fn open(
        &self,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
        sealed: &str,
        responses: Option<&InputResponses>,
    ) -> Result<Round, BadState> {
        match self.codec.open_json_with::<State>(sealed, &bound_to(tool, arguments)) {
            Ok(state) => {
                if self.states().remove(&state.id).is_none() {
                    return Err(BadState("`requestState` was used before; make the call anew, without it"));
                }
                let said = responses.and_then(|responses| said_in(responses.get(CONFIRM)?));
                Ok(Round { round: state.round, subject: state.subject, said: Mutex::new(said) })
            }
            Err(RequestStateError::Expired) => {
                Ok(Round { round: 0, subject: String::new(), said: Mutex::new(Some(Said::Expired)) })
            }
            Err(_) => Err(BadState(
                "`requestState` is not the one that this server gave for this tool and these arguments",
            )),
        }
    }

    /// The result that carries a question, for a call that came in this round.
    ///
    /// # Errors
    /// What the library says when it cannot carry the question.
    pub(super) fn input_required(
        &self,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
        question: &Question,
        round: u32,
    ) -> Result<InputRequiredResult, String> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let state = State { id, subject: question.subject.clone(), round: round.saturating_add(1) };
        let bound = bound_to(tool, arguments);
        let options = SealOptions::new().associated_data(&bound).ttl(self.patience);
        let sealed = self.codec.seal_json_with(&state, &options).map_err(|error| error.to_string())?;
        let request =
            InputRequest::Elicitation(ElicitRequest::new(form(question).map_err(|e| e.to_string())?));
        let requests = [(CONFIRM.to_owned(), request)].into_iter().collect();
        self.hand_out(id);
        Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    /// How long a person may take.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The room for questions that are open while their calls wait.
    pub(super) fn dialogs(&self) -> &Semaphore {
        &self.dialogs
    }

    fn hand_out(&self, id: u64) {
        let now = Instant::now();
        let mut out = self.states();
        out.retain(|_, expires| *expires > now);
        if out.len() >= MOST_STATES
            && let Some(oldest) = out.iter().min_by_key(|(_, expires)| **expires).map(|(id, _)| *id)
        {
            out.remove(&oldest);
        }
        // A little longer than the seal, so that a late answer is called late and not used.
        out.insert(id, now + self.patience + Duration::from_secs(60));
    }

    fn states(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Instant>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's way to the person, by what its client can do.
pub(super) fn confirmer(
    questions: &Arc<Questions>,
    round: Round,
    wire: Wire,
    context: &RequestContext<RoleServer>,
    cancel: &CancellationToken,
    place: &Arc<Place>,
) -> Arc<dyn Confirmer> {
    let by_rounds = context.protocol_version().is_some_and(|version| !version.has_initialize());
    if !by_rounds && wire == Wire::Http {
        Arc::new(Nobody(
            "over HTTP, only clients of MCP 2026-07-28 can be asked, and this one speaks an older revision",
        ))
    } else if !shows_forms(context.client_capabilities()) {
        Arc::new(Nobody("this client has not declared the capability `elicitation` with forms"))
    } else if by_rounds {
        Arc::new(round)
    } else {
        Arc::new(Dialog::new(Arc::clone(questions), context.peer.clone(), cancel.clone(), Arc::clone(place)))
    }
}

/// Whether a client can show a form. One that names neither form nor URL means forms (2025-06-18 had no others).
fn shows_forms(capabilities: Option<ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// For clients that cannot show a form, and why.
struct Nobody(&'static str);

impl Confirmer for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Unsupported(self.0.to_owned())))
    }
}

/// One call's way to the person, from 2026-07-28 on.
pub(super) struct Round {
    /// Questions put so far.
    pub(super) round: u32,
    subject: String,
    said: Mutex<Option<Said>>,
}

impl Round {
    /// A call that comes without an answer.
    pub(super) fn first() -> Self {
        Self { round: 0, subject: String::new(), said: Mutex::default() }
    }
}

impl Confirmer for Round {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Later))
    }

    fn at_hand(&self, question: &Question) -> Option<Said> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // A consent holds for its question alone. Whoever did not agree to it need not be asked again.
        (said != Said::Accepted || self.subject == question.subject).then_some(said)
    }

    fn asked_before(&self) -> u32 {
        self.round
    }
}

/// The question as a form with one box to tick.
pub(super) fn form(question: &Question) -> Result<ElicitRequestParams, serde_json::Error> {
    let schema = json!({
        "type": "object",
        "properties": {CONFIRM: {
            "type": "boolean",
            "title": "Run it",
            "description": "true runs it once, exactly as shown; false does not",
        }},
        "required": [CONFIRM],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema)?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text.clone(),
        requested_schema,
    })
}

/// What a person said, by a result of `elicitation/create`; none where it is no such result.
pub(super) fn said_in(value: &Value) -> Option<Said> {
    serde_json::from_value::<ElicitResult>(value.clone()).ok().map(|result| verdict(&result))
}

pub(super) fn verdict(result: &ElicitResult) -> Said {
    match result.action {
        ElicitationAction::Accept => {
            let ticked = result.content.as_ref().and_then(|content| content.get(CONFIRM)?.as_bool());
            if ticked == Some(true) { Said::Accepted } else { Said::Declined }
        }
        ElicitationAction::Decline => Said::Declined,
        // What a later revision may add is no consent either.
        _ => Said::Cancelled,
    }
}

/// The call that a state belongs to. The order of members does not matter: a client may write them anew.
fn bound_to(tool: &str, arguments: Option<&Map<String, Value>>) -> Vec<u8> {
    let mut call = json!({"method": "tools/call", "name": tool, "arguments": arguments});
    call.sort_all_objects();
    call.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(subject: &str) -> Question {
        Question { text: "may I?".to_owned(), subject: subject.to_owned() }
    }

    fn arguments(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    fn answers(value: Value) -> InputResponses {
        [(CONFIRM.to_owned(), value)].into_iter().collect()
    }

    #[test]
    fn a_state_is_taken_once_and_for_its_own_call() {
        let questions = Questions::new(Duration::from_secs(60));
        let given = arguments(r#"{"query": "x", "params": {"a": 1, "b": 2}}"#);
        let asked = questions.input_required("t", Some(&given), &question("s"), 0).unwrap();
        let state = asked.request_state.unwrap();
        let yes = answers(json!({"action": "accept", "content": {"confirm": true}}));
        let open = |tool: &str, given: &Map<String, Value>, state: &str| {
            questions
                .open(tool, Some(given), state, Some(&yes))
                .map(|round| (round.round, round.at_hand(&question("s"))))
        };
        let other = arguments(r#"{"query": "y"}"#);
        let mut tampered = state.clone();
        tampered.replace_range(8..9, if &state[8..9] == "A" { "B" } else { "A" });
        for (tool, given, state) in [
            ("u", &given, &state),
            ("t", &other, &state),
            ("t", &given, &tampered),
            ("t", &given, &String::new()),
        ] {
            assert!(open(tool, given, state).unwrap_err().0.contains("is not the one"), "{tool} {state}");
        }
        let reordered = arguments(r#"{"params": {"b": 2, "a": 1}, "query": "x"}"#);
        assert_eq!(open("t", &reordered, &state), Ok((1, Some(Said::Accepted))));
        assert!(open("t", &given, &state).unwrap_err().0.contains("used before"));
        let elsewhere = Questions::new(Duration::from_secs(60));
        assert!(elsewhere.open("t", Some(&given), &state, None).is_err());
    }

    #[test]
    fn a_late_answer_is_called_late() {
        let questions = Questions::new(Duration::ZERO);
        let state = questions.input_required("t", None, &question("s"), 0).unwrap().request_state.unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let yes = answers(json!({"action": "accept", "content": {"confirm": true}}));
        let round = questions.open("t", None, &state, Some(&yes)).unwrap();
        assert_eq!(round.at_hand(&question("s")), Some(Said::Expired));
    }

    #[test]
    fn an_answer_means_what_the_person_ticked() {
        let rows = [
            (json!({"action": "accept", "content": {"confirm": true}}), "s", Some(Said::Accepted)),
            (json!({"action": "accept", "content": {"confirm": true}}), "other", None),
            (json!({"action": "accept", "content": {"confirm": false}}), "s", Some(Said::Declined)),
            (json!({"action": "accept", "content": {"confirm": "true"}}), "s", Some(Said::Declined)),
            (json!({"action": "accept", "content": {}}), "s", Some(Said::Declined)),
            (json!({"action": "accept"}), "s", Some(Said::Declined)),
            (json!({"action": "decline"}), "s", Some(Said::Declined)),
            (json!({"action": "decline"}), "other", Some(Said::Declined)),
            (json!({"action": "cancel"}), "s", Some(Said::Cancelled)),
            (json!({"action": "shrug"}), "s", None),
            (json!(true), "s", None),
        ];
        let questions = Questions::new(Duration::from_secs(60));
        for (answer, subject, said) in rows {
            let state =
                questions.input_required("t", None, &question("s"), 0).unwrap().request_state.unwrap();
            let round = questions.open("t", None, &state, Some(&answers(answer.clone()))).unwrap();
            assert_eq!(round.at_hand(&question(subject)), said, "{answer}");
            assert_eq!(round.at_hand(&question(subject)), None, "an answer is given once");
        }
    }

    #[test]
    fn forms_are_shown_by_clients_that_say_so() {
        let rows = [
            (json!({}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
        ];
        for (capabilities, expected) in rows {
            let read = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(shows_forms(Some(read)), expected, "{capabilities}");
        }
        assert!(!shows_forms(None));
    }
}
