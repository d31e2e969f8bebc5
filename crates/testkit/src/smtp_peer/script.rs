//! Extensions and answers of the peer: a plain server by default, with exceptions.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::answer::{Answer, RuleContext, Stage};
use super::limited::LimitedReceiver;
use super::tls::PeerTls;
use crate::hidden_receiver::HiddenLimits;

type Rule = Arc<dyn Fn(&RuleContext) -> Option<Answer> + Send + Sync>;

/// Clones share the counters of `first` and the receiver of `with_limits`.
#[derive(Clone, Default)]
pub struct Script {
    pub(super) extensions: Vec<String>,
    pub(super) tls: Option<PeerTls>,
    pub(super) is_tls_implicit: bool,
    pub(super) close_after_received_bytes: Option<u64>,
    pub(super) close_after_sent_bytes: Option<u64>,
    rules: Vec<Rule>,
    pub(super) limited: Option<Arc<LimitedReceiver>>,
}

impl Script {
    /// Accepts everything and offers nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lines of the EHLO reply, such as `SIZE 1000`. `PIPELINING`, `CHUNKING` and `AUTH` work; others are only
    /// announced.
    #[must_use]
    pub fn offering(mut self, extensions: &[&str]) -> Self {
        self.extensions.extend(extensions.iter().map(ToString::to_string));
        self
    }

    /// Offers STARTTLS.
    #[must_use]
    pub fn with_tls(mut self, tls: PeerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// TLS before the banner, as on port 465.
    #[must_use]
    pub fn with_implicit_tls(mut self, tls: PeerTls) -> Self {
        self.is_tls_implicit = true;
        self.with_tls(tls)
    }

    /// The first rule that answers wins; without one the peer replies as usual.
    #[must_use]
    pub fn when(mut self, rule: impl Fn(&RuleContext) -> Option<Answer> + Send + Sync + 'static) -> Self {
        self.rules.push(Arc::new(rule));
        self
    }

    #[must_use]
    pub fn on(self, stage: Stage, answer: Answer) -> Self {
        self.when(move |context| (context.stage == stage).then(|| answer.clone()))
    }

    /// Gives this answer the first `times` times, counted over all connections.
    #[must_use]
    pub fn first(self, times: u32, stage: Stage, answer: Answer) -> Self {
        let count = AtomicU32::new(0);
        self.when(move |context| {
            let is_due = context.stage == stage && count.fetch_add(1, Ordering::SeqCst) < times;
            is_due.then(|| answer.clone())
        })
    }

    /// Closes each connection once this many bytes arrived from the client; inside TLS the plaintext counts.
    #[must_use]
    pub fn close_after_received(mut self, bytes: u64) -> Self {
        self.close_after_received_bytes = Some(bytes);
        self
    }

    /// Closes each connection once this many bytes were sent, even in the middle of a reply.
    #[must_use]
    pub fn close_after_sent(mut self, bytes: u64) -> Self {
        self.close_after_sent_bytes = Some(bytes);
        self
    }

    /// Accepts mail within these limits. Rules are asked before the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: HiddenLimits) -> Self {
        self.limited = Some(Arc::new(LimitedReceiver::new(limits)));
        self
    }

    pub(super) fn answer(&self, context: &RuleContext, default: &str) -> Option<Answer> {
        let by_rule = self.rules.iter().find_map(|rule| rule(context));
        by_rule.or_else(|| self.limited.as_ref()?.answer(context, default))
    }

    pub(super) fn offers(&self, keyword: &str) -> bool {
        self.extensions.iter().any(|line| line.split(' ').next() == Some(keyword))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("extensions", &self.extensions)
            .field("tls", &self.tls)
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}
