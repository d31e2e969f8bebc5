//! Deadline for the client's next step. Bytes of an incomplete command are no progress, and a message must arrive at a
//! minimum rate, on average.

use tokio::time::{Duration, Instant};

use crate::TimeLimits;

#[derive(Debug)]
pub(crate) struct SessionDeadlines {
    times: TimeLimits,
    began: Instant,
    /// Time of the last reply, or of the last piece of a message.
    last_step: Instant,
    content: Option<Content>,
}

#[derive(Debug)]
struct Content {
    since: Instant,
    bytes: u64,
}

impl SessionDeadlines {
    pub(crate) fn new(times: TimeLimits) -> Self {
        let now = Instant::now();
        Self { times, began: now, last_step: now, content: None }
    }

    /// Records that the client got a reply.
    pub(crate) fn on_reply(&mut self) {
        self.last_step = Instant::now();
    }

    pub(crate) fn on_content_begin(&mut self) {
        self.content = Some(Content { since: Instant::now(), bytes: 0 });
    }

    /// Records bytes that arrived. Bytes of a message are progress; bytes of an incomplete command are not.
    pub(crate) fn on_read(&mut self, bytes: usize) {
        if let Some(content) = &mut self.content {
            content.bytes += bytes as u64;
            self.last_step = Instant::now();
        }
    }

    pub(crate) fn on_content_end(&mut self) {
        self.content = None;
    }

    pub(crate) fn is_in_content(&self) -> bool {
        self.content.is_some()
    }

    /// Earliest of three deadlines: for the next step, for the session, and for the message. During a transaction, a
    /// session may last twice as long.
    pub(crate) fn deadline(&self, is_in_transaction: bool) -> Instant {
        let idle = self.last_step + self.times.idle;
        let session =
            self.began + if is_in_transaction { self.times.session * 2 } else { self.times.session };
        let content = self.content.as_ref().map(|content| {
            let rate = u64::from(self.times.content_bytes_per_second_min.max(1));
            content.since + self.times.content_grace + Duration::from_millis(content.bytes * 1_000 / rate)
        });
        content.into_iter().fold(idle.min(session), Instant::min)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn seconds_left(deadlines: &SessionDeadlines, is_in_transaction: bool) -> u64 {
        (deadlines.deadline(is_in_transaction) - Instant::now()).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_gives_new_time_until_the_session_is_too_old() {
        let mut deadlines = SessionDeadlines::new(TimeLimits::default());
        assert_eq!(seconds_left(&deadlines, false), 300);
        advance(Duration::from_secs(200)).await;
        assert_eq!(seconds_left(&deadlines, false), 100);
        deadlines.on_reply();
        assert_eq!(seconds_left(&deadlines, false), 300);
        advance(Duration::from_mins(56)).await;
        deadlines.on_reply();
        assert_eq!(seconds_left(&deadlines, false), 40);
        assert_eq!(seconds_left(&deadlines, true), 300, "a begun message may be finished");
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_must_arrive_at_the_minimum_rate() {
        let mut deadlines = SessionDeadlines::new(TimeLimits::default());
        deadlines.on_content_begin();
        assert_eq!(seconds_left(&deadlines, true), 120);
        advance(Duration::from_mins(1)).await;
        deadlines.on_read(1);
        assert_eq!(seconds_left(&deadlines, true), 60, "a byte buys no time");
        deadlines.on_read(100 << 10);
        assert_eq!(seconds_left(&deadlines, true), 160);
        deadlines.on_read(1 << 20);
        assert_eq!(seconds_left(&deadlines, true), 300, "but not more than for any step");
        deadlines.on_content_end();
        advance(Duration::from_mins(1)).await;
        assert_eq!(seconds_left(&deadlines, true), 240);
    }
}
