//! queue_send, queue_receive, queue_ack.

use super::{Call, Reply};
use crate::error::{ErrorCode, ToolError};
use crate::results::{QueueAcked, QueueJob, QueueReceived, QueueSent};
use crate::state::catalog::{Kind, Primitive};
use crate::state::queue::{
    LARGEST_BODY, LONGEST_LEASE, LONGEST_WAIT, Leased, NewJob, Queue, Settle, State, check_queue,
};
use crate::state::{clock, duration};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The longest error text that is kept, in characters.
const LONGEST_ERROR: usize = 1_000;
/// How often whoever waits looks whether the primitive and the key that it came in with still stand.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest dedupe_key, in bytes.
const LONGEST_DEDUPE_KEY: usize = 256;

/// Arguments of [`send`].
pub struct SendInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The queue.
    pub queue: String,
    /// Any JSON.
    pub body: Value,
    /// Not before this time has passed.
    pub delay: Option<String>,
    /// One job for one key.
    pub dedupe_key: Option<String>,
    /// 0 to 9.
    pub priority: u64,
}

/// Arguments of [`receive`].
pub struct ReceiveInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The queue.
    pub queue: String,
    /// How long the jobs are the caller's.
    pub lease: String,
    /// How long to wait for one.
    pub wait: Option<String>,
    /// Jobs at most.
    pub max: u64,
}

/// Arguments of [`ack`].
pub struct AckInput {
    /// Id or name.
    pub primitive: Option<String>,
    /// The queue.
    pub queue: String,
    /// The job.
    pub id: String,
    /// The lease.
    pub lease_token: String,
    /// "ack", "retry", "fail", "dead" or "heartbeat".
    pub action: String,
    /// With retry: not before this time has passed.
    pub pause: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Sends a job.
///
/// # Errors
/// As the primitive says.
pub async fn send(call: &Call<'_>, input: SendInput) -> Result<Reply, ToolError> {
    let (_, queue) = queue(call, input.primitive.as_deref(), &input.queue, true).await?;
    let delay = input.delay.as_deref().map(|delay| duration::milliseconds("delay", delay, 0, None));
    let body = input.body.to_string();
    if body.len() > LARGEST_BODY {
        return Err(ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "`body` has {} bytes, and a job at most {LARGEST_BODY}; put the data into a storage primitive and send its key",
                body.len()
            ),
        ));
    }
    if input.dedupe_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > LONGEST_DEDUPE_KEY) {
        return Err(ToolError::arguments(format!("`dedupe_key` must have 1 to {LONGEST_DEDUPE_KEY} bytes")));
    }
    let visible_at = call.now() + delay.transpose()?.unwrap_or_default();
    let priority = u8::try_from(input.priority).unwrap_or_default();
    let job = NewJob { queue: input.queue, body, visible_at, priority, dedupe_key: input.dedupe_key };
    let sent = queue.send(job).await?;
    Reply::of(&QueueSent { id: sent.id, deduplicated: sent.deduplicated })
}

/// Leases jobs, and waits for the first.
///
/// # Errors
/// As the primitive says.
pub async fn receive(call: &Call<'_>, input: ReceiveInput) -> Result<Reply, ToolError> {
    let (primitive, queue) = queue(call, input.primitive.as_deref(), &input.queue, false).await?;
    let lease = duration::milliseconds("lease", &input.lease, 1_000, Some(LONGEST_LEASE))?;
    let wait = input.wait.as_deref().map(|wait| duration::milliseconds("wait", wait, 0, Some(LONGEST_WAIT)));
    let wait = u64::try_from(wait.transpose()?.unwrap_or_default()).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_millis(wait);
    let mut changes = queue.changes();
    let mut waited = false;
    loop {
        changes.borrow_and_update();
        // Who is gone gets no job.
        if call.cancel.is_cancelled() {
            return Err(ToolError::new(
                ErrorCode::Cancelled,
                "the client cancelled the call; no job was leased",
            ));
        }
        if waited {
            call.still_stands(&primitive).await?;
        }
        waited = true;
        let jobs = queue.claim(input.queue.clone(), input.max, lease).await?;
        if !jobs.is_empty() || Instant::now() >= deadline {
            let data = jobs.into_iter().map(shown).collect::<Result<Vec<_>, _>>()?;
            call.note("jobs", data.len());
            return Reply::of(&QueueReceived { data });
        }
        let next = queue.next_visible(input.queue.clone()).await?.map(|at| at - call.now());
        let next = next.and_then(|left| u64::try_from(left.max(1)).ok()).map_or(deadline, |left| {
            Instant::now().checked_add(Duration::from_millis(left)).map_or(deadline, |at| at.min(deadline))
        });
        // A person pauses and revokes in another process, which wakes nobody here. It is looked at without a place.
        let mut stands = Ok(());
        let change = async {
            loop {
                tokio::select! {
                    _ = changes.changed() => break,
                    () = tokio::time::sleep_until(next) => break,
                    () = tokio::time::sleep(LOOK_EVERY) => stands = call.still_stands(&primitive).await,
                }
                if stands.is_err() {
                    break;
                }
            }
        };
        call.wait(change).await;
        stands?;
    }
}

/// Settles a job.
///
/// # Errors
/// As the primitive says.
pub async fn ack(call: &Call<'_>, input: AckInput) -> Result<Reply, ToolError> {
    let (_, queue) = queue(call, input.primitive.as_deref(), &input.queue, false).await?;
    call.note("id", input.id.as_str());
    call.note("action", input.action.as_str());
    let pause =
        input.pause.as_deref().map(|pause| duration::milliseconds("in", pause, 0, None)).transpose()?;
    let how = match input.action.as_str() {
        "ack" => Settle::Ack,
        "retry" => Settle::Retry(pause.unwrap_or_default()),
        "fail" => Settle::Fail,
        "dead" => Settle::Dead,
        _ => Settle::Heartbeat,
    };
    if pause.is_some() && !matches!(how, Settle::Retry(_)) {
        return Err(ToolError::arguments("`in` goes with the action retry alone"));
    }
    let error = input.error.map(|error| crate::render::one_line(&error, LONGEST_ERROR));
    let settled = queue.settle(input.queue, input.id.clone(), input.lease_token, how, error).await?;
    let at = settled.at.map(clock::shown);
    let leased = settled.state == State::Leased;
    Reply::of(&QueueAcked {
        id: input.id,
        state: settled.state.name().to_owned(),
        lease_expires_at: at.clone().filter(|_| leased),
        ready_at: at.filter(|_| !leased),
        lease_expired: settled.late,
    })
}

async fn queue(
    call: &Call<'_>,
    wanted: Option<&str>,
    name: &str,
    sending: bool,
) -> Result<(Primitive, Arc<dyn Queue>), ToolError> {
    call.note("queue", crate::render::one_line(name, 128));
    check_queue(name, sending)?;
    let primitive = call.primitive(wanted, Some(Kind::Queue)).await?;
    let queue = call.server.store.queue(&primitive).await?;
    Ok((primitive, queue))
}

fn shown(job: Leased) -> Result<QueueJob, ToolError> {
    let body = serde_json::from_str(&job.body).map_err(|error| {
        ToolError::new(ErrorCode::Corrupt, format!("the body of job `{}` is damaged: {error}", job.id))
    })?;
    Ok(QueueJob {
        id: job.id,
        body,
        attempts: job.attempts,
        priority: job.priority.into(),
        lease_token: job.token,
        lease_expires_at: clock::shown(job.expires_at),
        errors: job.errors,
    })
}
