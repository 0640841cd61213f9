//! Which requests are under way, and which answers are gathered into one batch.
//!
//! It exists because the protocol library keeps no such book: two requests under way with one id would
//! get one answer, and an id that is used again after a cancellation could be given the answer of the
//! cancelled call. It does not run or cancel anything.

use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Names a batch while its answers are gathered.
pub(super) type BatchKey = u64;

/// The book of requests under way.
#[derive(Default)]
pub(super) struct Flight {
    book: Mutex<Book>,
    /// Told whenever a request or queued answer is done with. One waiter: the transport's reader.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct Book {
    requests: HashMap<RequestId, Entry>,
    batches: HashMap<BatchKey, Batch>,
    next_batch: BatchKey,
    /// Of all requests.
    bytes: usize,
}

struct Entry {
    phase: Phase,
    bytes: usize,
    batch: Option<BatchKey>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The handler is done and its answer is on the way.
    Answering,
    /// Cancelled by the client while the handler runs; no answer will come.
    Cancelled,
}

struct Batch {
    /// Answers still to come.
    open: usize,
    answers: Vec<Vec<u8>>,
}

impl Flight {
    /// How many requests are under way.
    pub(super) fn len(&self) -> usize {
        self.book().requests.len()
    }

    /// Whether a request with this id is under way.
    pub(super) fn knows(&self, id: &RequestId) -> bool {
        self.book().requests.contains_key(id)
    }

    /// How many bytes of input the requests under way came as.
    pub(super) fn bytes(&self) -> usize {
        self.book().bytes
    }

    /// Enters a request that came as so many bytes; false when its id is under way already.
    pub(super) fn enter(&self, id: &RequestId, batch: Option<BatchKey>, bytes: usize) -> bool {
        let mut book = self.book();
        if book.requests.contains_key(id) {
            return false;
        }
        book.requests.insert(id.clone(), Entry { phase: Phase::Running, bytes, batch });
        book.bytes += bytes;
        true
    }

    /// The handler of this request is done. Comes before its answer.
    pub(super) fn finished(&self, id: &RequestId) {
        let mut book = self.book();
        match book.requests.get_mut(id) {
            Some(entry) if entry.phase == Phase::Running => entry.phase = Phase::Answering,
            Some(entry) if entry.phase == Phase::Cancelled => {
                book.remove(id);
                self.changed.notify_one();
            }
            _ => {}
        }
    }

    /// The client cancelled this request: its answer will not come. Returns the line to write where it
    /// was the last one its batch waited for.
    pub(super) fn cancelled(&self, id: &RequestId) -> Option<Vec<u8>> {
        let mut book = self.book();
        let entry = book.requests.get_mut(id)?;
        let batch = entry.batch.take();
        if entry.phase == Phase::Running {
            entry.phase = Phase::Cancelled;
        } else if entry.phase == Phase::Answering {
            book.remove(id);
            self.changed.notify_one();
        }
        book.settle(batch?, None)
    }

    /// The answer to this request, without newline. Returns the line to write: the answer itself, or the
    /// batch it completes, or nothing yet.
    pub(super) fn answered(&self, id: &RequestId, answer: Vec<u8>) -> Option<Vec<u8>> {
        let mut book = self.book();
        let batch = book.remove(id).and_then(|entry| entry.batch);
        self.changed.notify_one();
        match batch {
            Some(batch) => book.settle(batch, Some(answer)),
            None => Some(answer),
        }
    }

    /// Opens a batch that waits for so many answers; at least one.
    pub(super) fn open_batch(&self, answers: usize) -> BatchKey {
        let mut book = self.book();
        book.next_batch += 1;
        let key = book.next_batch;
        book.batches.insert(key, Batch { open: answers, answers: Vec::new() });
        key
    }

    /// An answer for a batch that belongs to no request under way.
    pub(super) fn answered_in_batch(&self, batch: BatchKey, answer: Vec<u8>) -> Option<Vec<u8>> {
        self.book().settle(batch, Some(answer))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing that could panic runs under the lock, so a poisoned book is still a right one.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn remove(&mut self, id: &RequestId) -> Option<Entry> {
        let entry = self.requests.remove(id)?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry)
    }

    fn settle(&mut self, key: BatchKey, answer: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let batch = self.batches.get_mut(&key)?;
        batch.open = batch.open.saturating_sub(1);
        batch.answers.extend(answer);
        if batch.open > 0 {
            return None;
        }
        let answers = self.batches.remove(&key)?.answers;
        if answers.is_empty() {
            return None;
        }
        let mut line = vec![b'['];
        line.extend(answers.join(&b','));
        line.push(b']');
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn an_id_is_free_again_after_its_answer() {
        let flight = Flight::default();
        assert!(flight.enter(&id(1), None, 10));
        assert!(!flight.enter(&id(1), None, 10));
        flight.finished(&id(1));
        assert!(!flight.enter(&id(1), None, 10));
        assert_eq!(flight.answered(&id(1), b"x".to_vec()), Some(b"x".to_vec()));
        assert!(flight.enter(&id(1), None, 10));
    }

    #[test]
    fn a_cancelled_id_stays_taken_until_its_handler_is_done() {
        let flight = Flight::default();
        assert!(flight.enter(&id(1), None, 10));
        assert_eq!(flight.cancelled(&id(1)), None);
        assert!(!flight.enter(&id(1), None, 10));
        flight.finished(&id(1));
        assert!(flight.enter(&id(1), None, 10));
        flight.finished(&id(1));
        flight.cancelled(&id(1));
        assert_eq!(flight.len(), 0);
    }

    #[test]
    fn a_batch_is_written_once_when_its_last_answer_is_in_or_cancelled() {
        let flight = Flight::default();
        let batch = flight.open_batch(4);
        for number in 1..=3 {
            assert!(flight.enter(&id(number), Some(batch), 10));
        }
        assert_eq!(flight.answered_in_batch(batch, b"e".to_vec()), None);
        assert_eq!(flight.answered(&id(2), b"2".to_vec()), None);
        assert_eq!(flight.cancelled(&id(1)), None);
        assert_eq!(flight.answered(&id(3), b"3".to_vec()), Some(b"[e,2,3]".to_vec()));
        let batch = flight.open_batch(1);
        assert!(flight.enter(&id(9), Some(batch), 10));
        assert_eq!(flight.cancelled(&id(9)), None);
    }
}
