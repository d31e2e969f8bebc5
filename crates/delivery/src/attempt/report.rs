//! Reports to the schedule how an attempt ended, and decides whether its message simply waits again. Without I/O, so
//! that the simulated receivers of `schedule/receivers` get the same decisions.

use postroad_mail::{ReplyPhase, Signal};
use postroad_model::{BounceClass, Timestamp};
use postroad_smtp::{Phase, Reply};

use super::ending::Ending;
use super::judge::{is_put_back, reply_phase, signal_of, signal_of_greeting};
use crate::pacing::Reason;
use crate::schedule::{Job, Reaction, RefusalReply, Schedule};

/// Whether the connection task continues when its message waits again without a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsAgain {
    /// The task continues, with another connection.
    TaskContinues,
    /// The task ends: the receiver refused the connection as one too many.
    TaskEnds,
}

/// Reports how a host replied to a message, or that it did not reply in time.
pub(crate) fn report_ending(
    schedule: &mut Schedule,
    path: usize,
    job: &Job,
    ending: &Ending,
    now: Timestamp,
) -> Reaction {
    match ending {
        Ending::Accepted(_) => {
            if let Some(greylisting) = job.entry.greylisting {
                schedule.on_greylisting_over(path, greylisting, now);
            }
            schedule.on_accepted(path, &job.lane, job.entry.server_id, now);
            Reaction::default()
        }
        Ending::Refused { reply, phase } => {
            let reason = Reason::of_message(&reply.to_string(), job.entry.server_id);
            let refusal = refusal_reply(job, reply_phase(*phase), signal_of(reply, *phase), &reason);
            schedule.on_refused(path, refusal, now)
        }
        Ending::Interrupted { class: BounceClass::Timeout, .. } => {
            schedule.note_silence(path, now);
            Reaction::default()
        }
        _ => Reaction::default(),
    }
}

/// Facts about a failed connection that matter to the schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedConnection<'a> {
    pub(crate) problem: &'a str,
    pub(crate) class: BounceClass,
    /// Reply of the host that refused the connection.
    pub(crate) reply: Option<&'a Reply>,
    /// Whether any remote host was tried.
    pub(crate) was_tried: bool,
    pub(crate) was_dns_busy: bool,
    /// Whether the task has, or had, a connection.
    pub(crate) was_connected: bool,
}

/// Reports that no host accepts messages. Returns whether the message only waits, because the receiver accepts no
/// (further) connection now, or because DNS look-ups were busy; otherwise it has a failed attempt.
pub(crate) fn report_failed_connection(
    schedule: &mut Schedule,
    path: usize,
    job: &Job,
    failed: FailedConnection<'_>,
    now: Timestamp,
) -> bool {
    if let Some(reply) = failed.reply {
        let reason = Reason::of_connection(&reply.to_string());
        let refusal = refusal_reply(job, ReplyPhase::Greeting, signal_of_greeting(reply), &reason);
        if schedule.on_connection_refused(path, refusal, now) {
            return true;
        }
    }
    if failed.was_dns_busy {
        schedule.on_lookups_busy(path, failed.problem.to_owned(), now);
        return true;
    }
    let is_unanswered = failed.was_tried && failed.reply.is_none();
    if is_unanswered && schedule.limit_to_open_connections(path, failed.was_connected, now) {
        return true;
    }
    // Only a host that lets the connection time out is silent; a host that refuses frees the connection at once.
    if failed.was_tried && failed.class == BounceClass::Timeout {
        schedule.note_silence(path, now);
    }
    schedule.on_connect_failed(path, failed.problem.to_owned(), now);
    false
}

fn refusal_reply<'a>(
    job: &'a Job,
    phase: ReplyPhase,
    signal: Option<Signal>,
    reason: &'a Reason,
) -> RefusalReply<'a> {
    let (server, greylisting) = (job.entry.server_id, job.entry.greylisting);
    RefusalReply { lane: &job.lane, server, greylisting, phase, signal, reason }
}

/// Whether the message waits again without a failed attempt: the connection was one too many, or it carried other
/// messages before and takes no more. `is_marked`: the journal has the mark that precedes the message's last bytes.
pub(crate) fn waits_again(ending: &Ending, was_used: bool, is_marked: bool) -> Option<WaitsAgain> {
    match ending {
        Ending::Refused { reply, phase } if !matches!(phase, Phase::Body | Phase::Final) => {
            let signal = signal_of(reply, *phase);
            let is_closing = reply.code == 421 && *phase == Phase::MailFrom;
            let is_too_many = signal == Some(Signal::TooManyConnections);
            let next = if is_too_many { WaitsAgain::TaskEnds } else { WaitsAgain::TaskContinues };
            is_put_back(signal, was_used, is_closing).then_some(next)
        }
        Ending::Interrupted { phase: Phase::MailFrom, after_last_byte: false, .. } => {
            (was_used && !is_marked).then_some(WaitsAgain::TaskContinues)
        }
        _ => None,
    }
}
