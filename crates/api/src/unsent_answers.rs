//! Answers of one connection that are not sent yet. hyper keeps a piece of an HTTP/2 answer until the client has room
//! for the piece, without a time limit, so a connection with a stalled answer must end. hyper cannot end one stream
//! alone; the other streams get time to finish first.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::permit_body;

/// The unsent answers of a connection.
#[derive(Debug, Default)]
pub(crate) struct UnsentAnswers {
    answers: Mutex<AnswerTimes>,
}

/// When each unsent answer last made progress.
#[derive(Debug, Default)]
struct AnswerTimes {
    /// Number of the latest answer.
    last_number: u64,
    /// When hyper last asked for a piece of each answer, by the number of the answer.
    taken_at: HashMap<u64, Instant>,
}

impl UnsentAnswers {
    /// Returns the same body, watched until the body and the last of its pieces are dropped.
    pub(crate) fn watch(self: &Arc<Self>, body: Body) -> Body {
        let number = self.with(|answers| {
            answers.last_number += 1;
            answers.taken_at.insert(answers.last_number, Instant::now());
            answers.last_number
        });
        Body::new(WatchedBody { body, entry: Arc::new(Entry { unsent: Arc::clone(self), number }) })
    }

    /// Whether the client took nothing of some answer for longer than `stall_max`.
    pub(crate) fn has_stalled(&self, stall_max: Duration) -> bool {
        self.with(|answers| answers.taken_at.values().any(|taken_at| taken_at.elapsed() > stall_max))
    }

    /// Whether all remaining answers have stalled.
    pub(crate) fn has_only_stalled(&self, stall_max: Duration) -> bool {
        self.with(|answers| answers.taken_at.values().all(|taken_at| taken_at.elapsed() > stall_max))
    }

    fn with<T>(&self, change: impl FnOnce(&mut AnswerTimes) -> T) -> T {
        change(&mut self.answers.lock())
    }
}

struct WatchedBody {
    body: Body,
    entry: Arc<Entry>,
}

/// Entry of a watched answer in `UnsentAnswers`; dropping it with the last piece of the answer removes it there.
struct Entry {
    unsent: Arc<UnsentAnswers>,
    number: u64,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.entry.unsent.with(|answers| answers.taken_at.insert(self.entry.number, Instant::now()));
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let attach_entry = |frame: Frame<Bytes>| {
            frame.map_data(|data| permit_body::attach_to_bytes(data, Arc::clone(&self.entry)))
        };
        Poll::Ready(frame.map(|frame| frame.map(attach_entry)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.unsent.with(|answers| answers.taken_at.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_stalls_when_nothing_of_it_is_taken() {
        let stall = Duration::from_secs(20);
        let unsent = Arc::new(UnsentAnswers::default());
        let mut body = unsent.watch(Body::from("x"));
        tokio::time::sleep(stall).await;
        assert!(!unsent.has_stalled(stall));
        let piece = body.frame().await;
        tokio::time::sleep(stall).await;
        assert!(!unsent.has_stalled(stall));
        tokio::time::sleep(stall).await;
        assert!(unsent.has_stalled(stall));
        // A client window of one byte: hyper has dropped the body, and the piece is not sent.
        drop(body);
        assert!(unsent.has_stalled(stall));
        drop(piece);
        assert!(!unsent.has_stalled(stall));
    }
}
