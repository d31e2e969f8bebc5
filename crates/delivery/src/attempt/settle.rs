//! Settle: turns the ending of an attempt into the outcome: record, event, suppression and next attempt.

use std::sync::Arc;
use std::time::Duration;

use postroad_model::{DomainName, EventKind, Status, SuppressionReason, Timestamp};
use postroad_store::{NewDelivery, NewEvent, NewSuppression, OTHER_PROVIDER, Outcome};
use rand::Rng;

use super::connection::Peer;
use super::ending::Ending;
use super::event_data::EventData;
use super::judge::{Judgement, is_greylisting, is_unanswered, judge};
use crate::journal::FlightKey;
use crate::prepare::LoadedMessage;
use crate::retry::RetryPolicy;
use crate::schedule::{CountedSource, Entry, Greylisting, Schedule};

/// Maximum number of bytes kept of a remote server's reply.
const OUTPUT_BYTES_MAX: usize = 2_000;

/// Everything about a finished attempt, or about a message that is settled without one.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) entry: Entry,
    pub(crate) domain: DomainName,
    /// `None` if the message was never loaded.
    pub(crate) loaded_message: Option<&'a LoadedMessage>,
    pub(crate) peer: Peer,
    pub(crate) source: Option<CountedSource>,
    /// Name of the pool of the source address.
    pub(crate) ip_pool: Option<Arc<str>>,
    pub(crate) is_encrypted: bool,
    pub(crate) is_simulated: bool,
    pub(crate) started_at: Timestamp,
    /// When the attempt ended; `None` for the current time.
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) transcript: String,
    pub(crate) flight: Option<FlightKey>,
    /// Pause before the next attempt, if known: the remaining greylisting time, or the time until an obstacle ends.
    pub(crate) retry_after: Option<Duration>,
    /// Conclusion about the receiver, drawn from its reply.
    pub(crate) conclusion: Option<String>,
    /// DNS names of the DKIM keys that signed the message.
    pub(crate) dkim: Option<Arc<str>>,
}

/// An outcome to be stored, and its consequences for the schedule once it is stored.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) flight: Option<FlightKey>,
    pub(crate) source: Option<CountedSource>,
    pub(crate) retry: Option<Retry>,
}

impl Settlement {
    /// Updates the schedule after the outcome was stored. `is_settled`: the message was still this node's.
    pub(crate) fn conclude(self, schedule: &mut Schedule, is_settled: bool, now: Timestamp) {
        if let Some(source) = &self.source {
            schedule.on_settled(source, self.outcome.delivery.status == Status::Sent);
        }
        if let Some(retry) = self.retry.filter(|_| is_settled) {
            schedule.add(retry.domain, retry.require_tls, retry.entry, now);
        }
    }
}

/// A message that stays in this node's schedule.
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) domain: DomainName,
    pub(crate) require_tls: bool,
    pub(crate) entry: Entry,
}

/// The details, with the reason why TLS was not used though the host offers it, and the conclusion about the receiver.
fn describe(judgement: &Judgement, attempt: &Attempt<'_>) -> String {
    let separator = if judgement.class.is_none() { "" } else { ";" };
    let without_tls = attempt.peer.without_tls.as_ref();
    let without_tls = without_tls
        .map(|problem| format!("{separator} without TLS, which failed: {problem}"))
        .unwrap_or_default();
    let conclusion =
        attempt.conclusion.as_ref().map(|conclusion| format!("; {conclusion}")).unwrap_or_default();
    format!("{}{without_tls}{conclusion}", judgement.details)
}

/// Turns an ending into its settlement. Retries due up to `horizon_end` stay in this node's schedule.
pub(crate) fn settle(
    attempt: &Attempt<'_>,
    ending: Ending,
    policy: &RetryPolicy,
    now: Timestamp,
    horizon_end: Timestamp,
    rng: &mut impl Rng,
) -> Settlement {
    let Attempt {
        entry, domain, loaded_message, peer, source, is_encrypted, is_simulated, started_at, ..
    } = attempt;
    let transcript = Some(attempt.transcript.clone()).filter(|text| !text.is_empty());
    let is_greylisting = is_greylisting(&ending);
    let is_unanswered = is_unanswered(&ending);
    let has_waited = matches!(ending, Ending::Waited { .. });
    let never_gives_up = matches!(ending, Ending::Waited { is_ours: true, .. });
    let judgement = judge(ending, peer, *is_simulated);
    let details = describe(&judgement, attempt);
    let attempts = entry.attempts + u32::from(judgement.counts_as_attempt);
    let first_due = loaded_message.map_or(entry.due_at, LoadedMessage::first_due);
    let next_by_policy = policy
        .next_attempt(attempts, judgement.counts_as_attempt, first_due, now, rng)
        .or_else(|| never_gives_up.then(|| now.plus(policy.pause_max())));
    let delay_notice_at = next_by_policy.filter(|_| has_waited);
    let next = next_by_policy
        .map(|next| match attempt.retry_after {
            Some(pause) => now.plus(pause.mul_f64(rng.random_range(1.0..1.05))),
            None => next,
        })
        .filter(|next| entry.expires_at.is_none_or(|expiry| *next < expiry));
    let (status, kind, next_attempt_at, details) = match judgement.class {
        None => (Status::Sent, EventKind::Delivered, None, details),
        Some(_) if judgement.is_permanent && judgement.is_remote_decision => {
            (Status::HardFail, EventKind::Bounced, None, details)
        }
        Some(_) if judgement.is_permanent => (Status::HardFail, EventKind::Failed, None, details),
        Some(_) if next.is_some() => (Status::SoftFail, EventKind::Delayed, next, details),
        Some(_) => {
            let details = format!("{details}; given up after {attempts} attempts");
            (Status::HardFail, EventKind::Failed, None, details)
        }
    };
    let output = judgement.reply.as_ref().map(|reply| shorten(reply.to_string())).unwrap_or_default();
    let enhanced_code =
        judgement.reply.as_ref().and_then(|reply| reply.enhanced).map(|code| code.to_string());
    let code = judgement.reply.as_ref().map(|reply| i64::from(reply.code));
    // A record that does not count as an attempt has neither a number nor a duration.
    let attempt_number = judgement.counts_as_attempt.then_some(entry.attempts + 1);
    let ended_at = attempt.ended_at.unwrap_or(now);
    let duration_us = judgement.counts_as_attempt.then(|| ended_at.since(*started_at).as_micros() as i64);
    let class = judgement.class.map(|class| class.as_str().to_owned());
    let delivery = NewDelivery {
        at: now,
        status,
        details,
        output,
        sent_with_ssl: *is_encrypted,
        log_id: peer.log_id.clone(),
        duration_us,
        mx: (!peer.mx.is_empty()).then(|| peer.mx.clone()),
        remote_ip: peer.remote_ip.map(|ip| ip.to_string()),
        source_ip: peer.source_ip.map(|ip| ip.to_string()),
        tls: peer.tls.clone(),
        tls_policy: peer.tls_policy.as_deref().map(str::to_owned),
        dkim: attempt.dkim.as_deref().map(str::to_owned),
        code,
        enhanced_code,
        bounce_class: class,
        next_attempt_at,
        possible_duplicate: judgement.possible_duplicate,
    };
    let suppress = (judgement.is_dead_address && judgement.is_permanent && !is_simulated)
        .then_some(*loaded_message)
        .flatten()
        .map(|loaded_message| NewSuppression {
            address: loaded_message.rcpt_to.clone(),
            reason: SuppressionReason::HardBounce,
            details: delivery.output.clone(),
            origin_message_id: Some(entry.message_id),
            expires_at: None,
        });
    let source_id = source.as_ref().map(|source| source.id).filter(|id| id.0 != 0);
    let retry_source =
        if is_unanswered { entry.source } else { source_id.filter(|_| judgement.keeps_source) };
    let keep_claim = next_attempt_at.is_some_and(|at| at <= horizon_end) && status == Status::SoftFail;
    let retry = next_attempt_at.filter(|_| keep_claim).map(|due_at| Retry {
        domain: domain.clone(),
        require_tls: loaded_message
            .is_some_and(|loaded_message| loaded_message.send.info.options.require_tls),
        entry: Entry {
            due_at,
            attempts,
            source: retry_source,
            greylisting: if is_greylisting {
                Some(Greylisting::again(entry.greylisting, due_at, now))
            } else {
                entry.greylisting.filter(|_| is_unanswered).map(Greylisting::delayed)
            },
            delay_notice_at,
            was_tried_before_claim: false,
            is_begun: false,
            loaded_message: None,
            ..entry.clone()
        },
    });
    let data = EventData::of(&delivery, kind, attempt_number, attempt.ip_pool.as_deref());
    let data = serde_json::to_string(&data);
    let event = NewEvent { kind, data: data.expect("texts and numbers are JSON") };
    Settlement {
        source: source.clone(),
        retry,
        outcome: Arc::new(Outcome {
            server_id: entry.server_id,
            message_id: entry.message_id,
            claimed_due_at: Some(entry.due_at),
            counts_as_attempt: judgement.counts_as_attempt,
            hold_expiry: None,
            keep_claim,
            suppress,
            transcript,
            provider: source
                .as_ref()
                .map_or_else(|| OTHER_PROVIDER.into(), |source| Arc::clone(&source.provider)),
            // Source addresses are judged by delivered and bounced mail. Simulated mail and our own failures do not
            // count.
            source_id: source_id
                .filter(|_| !is_simulated)
                .filter(|_| matches!(kind, EventKind::Delivered | EventKind::Bounced)),
            retry_source_id: retry_source,
            delivery,
            event,
        }),
        flight: attempt.flight,
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > OUTPUT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(OUTPUT_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use postroad_model::{BounceClass, DeliveryId, MessageId, ServerId, SourceId};
    use postroad_smtp::{Phase, Reply};
    use postroad_store::Delivery;

    use super::*;
    use crate::attempt::earlier_greylisting::greylisting_after;

    const NOW: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);

    /// A retry of a greylisted message: refused from source 2, now sent from source 3.
    fn greylisted_retry() -> Attempt<'static> {
        let first_refused_at = NOW.minus(Duration::from_secs(61));
        Attempt {
            entry: Entry {
                server_id: ServerId(1),
                message_id: MessageId(1),
                due_at: NOW.minus(Duration::from_secs(1)),
                expires_at: None,
                attempts: 1,
                chosen_pool: None,
                source: Some(SourceId(2)),
                greylisting: Some(Greylisting { first_refused_at, retry_at: Some(NOW) }),
                delay_notice_at: None,
                was_tried_before_claim: false,
                was_aborted: false,
                is_begun: true,
                loaded_message: None,
            },
            domain: DomainName::parse("one.example").unwrap(),
            loaded_message: None,
            peer: Peer::default(),
            source: Some(CountedSource { id: SourceId(3), provider: "other".into() }),
            ip_pool: None,
            is_encrypted: false,
            is_simulated: false,
            started_at: NOW,
            ended_at: None,
            transcript: String::new(),
            flight: None,
            retry_after: None,
            conclusion: None,
            dkim: None,
        }
    }

    fn settle_now(attempt: &Attempt<'_>, ending: Ending) -> Settlement {
        let horizon = NOW.plus(Duration::from_hours(1));
        settle(attempt, ending, &RetryPolicy::default(), NOW, horizon, &mut rand::rng())
    }

    #[test]
    fn retry_keeps_its_source_address_and_greylisting_if_the_receiver_did_not_answer() {
        let attempt = greylisted_retry();
        let (problem, class) = (String::new(), BounceClass::Timeout);
        let unanswered = [
            Ending::Waited { cause: String::new(), class, is_ours: false },
            Ending::NoRoute { problem: problem.clone(), class: BounceClass::Dns },
            Ending::Interrupted {
                phase: Phase::Data,
                problem: problem.clone(),
                class,
                after_last_byte: false,
            },
            Ending::Unreachable { problem: problem.clone(), class, reply: None, was_tried: true },
        ];
        for ending in unanswered {
            let settlement = settle_now(&attempt, ending.clone());
            assert_eq!(settlement.outcome.retry_source_id, Some(SourceId(2)), "{ending:?}");
            let entry = settlement.retry.unwrap().entry;
            assert_eq!(entry.source, Some(SourceId(2)), "{ending:?}");
            let greylisting = entry.greylisting.unwrap();
            assert_eq!(
                greylisting.first_refused_at,
                attempt.entry.greylisting.unwrap().first_refused_at,
                "{ending:?}"
            );
            assert_eq!(greylisting.retry_at, None, "this delay says nothing about the receiver");
        }
    }

    #[test]
    fn details_name_the_tls_problem_and_the_conclusion_about_the_receiver() {
        let sent_without_tls = Attempt {
            peer: Peer { without_tls: Some("handshake failure".to_owned()), ..Peer::default() },
            conclusion: Some("one.example seems to take about 90 messages a minute".to_owned()),
            ..greylisted_retry()
        };
        let reply = Reply::new(550, vec!["5.1.1 user unknown".to_owned()]);
        let refused = settle_now(&sent_without_tls, Ending::Refused { reply, phase: Phase::RcptTo });
        let details = &refused.outcome.delivery.details;
        assert!(
            details.contains("without TLS, which failed: handshake failure; one.example seems"),
            "{details}"
        );
    }

    #[test]
    fn retry_may_use_another_source_address_if_the_receiver_did_not_greylist() {
        let attempt = greylisted_retry();
        let reply = Reply::new(451, vec!["4.7.1 Too many messages, slow down".to_owned()]);
        let refused = settle_now(&attempt, Ending::Refused { reply, phase: Phase::MailFrom });
        let entry = refused.retry.unwrap().entry;
        assert_eq!(
            (entry.source, entry.greylisting),
            (None, None),
            "the refusal was no greylisting: another address may succeed"
        );
    }

    #[test]
    fn earlier_greylisting_is_read_from_stored_deliveries() {
        let stored = |attempt: &Attempt<'_>, at: Timestamp, ending: Ending| {
            let horizon = at.plus(Duration::from_hours(1));
            let outcome =
                settle(attempt, ending, &RetryPolicy::default(), at, horizon, &mut rand::rng()).outcome;
            Delivery { id: DeliveryId(1), record: outcome.delivery.clone() }
        };
        let refused = |text: &str, phase| {
            let reply = Reply::new(450, vec![text.to_owned()]);
            Ending::Refused { reply, phase }
        };
        let attempt = Attempt {
            entry: Entry { greylisting: None, attempts: 0, ..greylisted_retry().entry },
            ..greylisted_retry()
        };
        let first = stored(&attempt, NOW, refused("4.2.0 try again later", Phase::RcptTo));
        let retry_at = first.record.next_attempt_at.unwrap();
        let known = greylisting_after(std::slice::from_ref(&first), retry_at);
        assert_eq!(known, Some(Greylisting { first_refused_at: NOW, retry_at: Some(retry_at) }));

        let late = retry_at.plus(Duration::from_mins(1));
        let known = greylisting_after(std::slice::from_ref(&first), late);
        assert_eq!(known, Some(Greylisting { first_refused_at: NOW, retry_at: None }), "late retry");

        let again = stored(&greylisted_retry(), retry_at, refused("4.2.0 Greylisted", Phase::RcptTo));
        let next = again.record.next_attempt_at.unwrap();
        let known = greylisting_after(&[first.clone(), again], next);
        assert_eq!(
            known,
            Some(Greylisting { first_refused_at: NOW, retry_at: Some(next) }),
            "the time counts from the first refusal"
        );

        let (problem, class) = (String::new(), BounceClass::Timeout);
        let silent = Ending::Unreachable { problem, class, reply: None, was_tried: true };
        let silent = stored(&greylisted_retry(), retry_at, silent);
        let known = greylisting_after(&[first.clone(), silent], next);
        assert_eq!(known, Some(Greylisting { first_refused_at: NOW, retry_at: None }));

        // The same words in reply to another command, and a refusal for another reason, are no greylisting.
        for (text, phase) in [("4.2.0 try again later", Phase::Final), ("4.7.1 slow down", Phase::RcptTo)] {
            let other = stored(&attempt, NOW, refused(text, phase));
            assert_eq!(greylisting_after(&[first.clone(), other], retry_at), None, "{text} at {phase}");
        }
    }
}
