//! What is counted of requests and calls, in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Labels are names of tools and codes of errors, which the manifest gives: nothing that a client or an agent says
//! becomes one. It keeps sums alone.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Upper ends of the classes of durations, in seconds.
const CLASSES: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// What a call to a tool that there is not is counted under.
const UNKNOWN: &str = "unknown";

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    calls: Mutex<BTreeMap<String, Tool>>,
    requests: Mutex<BTreeMap<u16, u64>>,
    calls_now: AtomicU64,
    requests_now: AtomicU64,
}

/// Calls of one tool.
#[derive(Debug, Default)]
struct Tool {
    /// By what they came to.
    outcomes: BTreeMap<&'static str, u64>,
    classes: [u64; CLASSES.len()],
    seconds: f64,
}

/// Something under way; it is counted as such until this is dropped, also where the client goes away.
#[derive(Debug)]
pub(super) struct UnderWay<'m> {
    now: &'m AtomicU64,
    began: Instant,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A call begins.
    pub(super) fn call(&self) -> UnderWay<'_> {
        under_way(&self.calls_now)
    }

    /// A request begins.
    pub(super) fn request(&self) -> UnderWay<'_> {
        under_way(&self.requests_now)
    }

    /// The call came to this: a code of an error, or none. Without a tool, there is none of that name.
    pub(super) fn called(&self, call: &UnderWay<'_>, tool: Option<&str>, error: Option<&'static str>) {
        self.add(tool.unwrap_or(UNKNOWN), error.unwrap_or("OK"), call.began.elapsed());
    }

    /// The request was answered with this status.
    pub(super) fn answered(&self, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(status).or_default() += 1;
    }

    fn add(&self, tool: &str, outcome: &'static str, took: Duration) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = calls.entry(tool.to_owned()).or_default();
        *tool.outcomes.entry(outcome).or_default() += 1;
        tool.seconds += took.as_secs_f64();
        for (count, end) in tool.classes.iter_mut().zip(CLASSES) {
            *count += u64::from(took.as_secs_f64() <= end);
        }
    }

    /// All of it as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP indelible_{name} {help}\n# TYPE indelible_{name} {kind}");
        };
        head(&mut text, "requests_total", "counter", "Requests answered, by status.");
        for (status, count) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(text, "indelible_requests_total{{status=\"{status}\"}} {count}");
        }
        head(&mut text, "requests_in_flight", "gauge", "Requests whose answer has not begun.");
        let _ = writeln!(text, "indelible_requests_in_flight {}", self.requests_now.load(Ordering::Relaxed));
        head(&mut text, "calls_in_flight", "gauge", "Calls of tools under way, those that wait included.");
        let _ = writeln!(text, "indelible_calls_in_flight {}", self.calls_now.load(Ordering::Relaxed));
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        head(&mut text, "calls_total", "counter", "Calls of tools, by what they came to.");
        for (name, tool) in calls.iter() {
            for (outcome, count) in &tool.outcomes {
                let code = outcome.to_ascii_lowercase();
                let _ = writeln!(text, "indelible_calls_total{{tool=\"{name}\",code=\"{code}\"}} {count}");
            }
        }
        head(&mut text, "call_duration_seconds", "histogram", "How long calls took.");
        for (name, tool) in calls.iter() {
            let series = "indelible_call_duration_seconds";
            let all: u64 = tool.outcomes.values().sum();
            for (count, end) in tool.classes.iter().zip(CLASSES) {
                let _ = writeln!(text, "{series}_bucket{{tool=\"{name}\",le=\"{end}\"}} {count}");
            }
            let _ = writeln!(text, "{series}_bucket{{tool=\"{name}\",le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "{series}_sum{{tool=\"{name}\"}} {}", tool.seconds);
            let _ = writeln!(text, "{series}_count{{tool=\"{name}\"}} {all}");
        }
        text
    }
}

fn under_way(now: &AtomicU64) -> UnderWay<'_> {
    now.fetch_add(1, Ordering::Relaxed);
    UnderWay { now, began: Instant::now() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_requests_are_counted_and_their_times_put_into_classes() {
        let metrics = Metrics::default();
        metrics.add("kv_get", "OK", Duration::from_millis(2));
        metrics.add("kv_get", "OK", Duration::from_millis(300));
        metrics.add("kv_get", "NOT_FOUND", Duration::from_secs(60));
        metrics.answered(200);
        metrics.answered(200);
        metrics.answered(401);
        let under_way = metrics.call();
        let text = metrics.text();
        for line in [
            "indelible_requests_total{status=\"200\"} 2",
            "indelible_requests_total{status=\"401\"} 1",
            "indelible_calls_in_flight 1",
            "indelible_calls_total{tool=\"kv_get\",code=\"ok\"} 2",
            "indelible_calls_total{tool=\"kv_get\",code=\"not_found\"} 1",
            "indelible_call_duration_seconds_bucket{tool=\"kv_get\",le=\"0.001\"} 0",
            "indelible_call_duration_seconds_bucket{tool=\"kv_get\",le=\"0.0025\"} 1",
            "indelible_call_duration_seconds_bucket{tool=\"kv_get\",le=\"0.5\"} 2",
            "indelible_call_duration_seconds_bucket{tool=\"kv_get\",le=\"30\"} 2",
            "indelible_call_duration_seconds_bucket{tool=\"kv_get\",le=\"+Inf\"} 3",
            "indelible_call_duration_seconds_sum{tool=\"kv_get\"} 60.302",
            "indelible_call_duration_seconds_count{tool=\"kv_get\"} 3",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        drop(under_way);
        assert!(metrics.text().contains("indelible_calls_in_flight 0"));
    }
}
