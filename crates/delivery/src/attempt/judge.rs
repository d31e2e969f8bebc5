//! Judge: what the ending of an attempt means for its message, and what a reply means for other messages.

use postroad_mail::{ReplyPhase, Signal, classify_in};
use postroad_model::BounceClass;
use postroad_smtp::{Phase, Reply};
use postroad_store::NewDelivery;

use super::connection::Peer;
use super::ending::Ending;

/// Effect of an ending on the message.
pub(super) struct Judgement {
    /// `None` for a success.
    pub(super) class: Option<BounceClass>,
    pub(super) is_permanent: bool,
    /// Whether the remote host refused the message. `false` for a success and for failures that Postroad finds itself.
    pub(super) is_remote_decision: bool,
    pub(super) is_dead_address: bool,
    /// Whether the ending counts as an attempt.
    pub(super) counts_as_attempt: bool,
    pub(super) possible_duplicate: bool,
    /// Whether the next attempt should use the same source address.
    pub(super) keeps_source: bool,
    pub(super) details: String,
    pub(super) reply: Option<Reply>,
}

impl Judgement {
    fn temporary(class: BounceClass, details: String) -> Self {
        Self {
            class: Some(class),
            is_permanent: false,
            is_remote_decision: false,
            is_dead_address: false,
            counts_as_attempt: true,
            possible_duplicate: false,
            keeps_source: false,
            details,
            reply: None,
        }
    }

    fn permanent(class: BounceClass, details: String) -> Self {
        Self { is_permanent: true, ..Self::temporary(class, details) }
    }
}

/// Effect of a reply in this phase on other messages.
pub(super) fn signal_of(reply: &Reply, phase: Phase) -> Option<Signal> {
    classify_in(reply_phase(phase), &mail_reply(reply)?).signal
}

/// Like `signal_of`, for a greeting that refused the connection.
pub(super) fn signal_of_greeting(reply: &Reply) -> Option<Signal> {
    classify_in(ReplyPhase::Greeting, &mail_reply(reply)?).signal
}

/// Whether a message that was refused before the end of its data simply waits again, without a failed attempt, because
/// the refusal was about its connection. `was_used`: the connection had carried other messages. A fresh connection
/// cannot be used up: a host that calls it used up refuses the message. `is_closing`: the host closes the connection.
pub(super) fn is_put_back(signal: Option<Signal>, was_used: bool, is_closing: bool) -> bool {
    match signal {
        Some(Signal::TooManyConnections) => true,
        Some(Signal::ConnectionUsedUp) => was_used,
        _ => was_used && is_closing,
    }
}

fn mail_reply(reply: &Reply) -> Option<postroad_mail::Reply> {
    postroad_mail::Reply::new(reply.code, &reply.lines.join("\n")).ok()
}

/// Converts a phase of the session into the phase that the classification of replies distinguishes.
pub(super) fn reply_phase(phase: Phase) -> ReplyPhase {
    match phase {
        Phase::MailFrom => ReplyPhase::MailFrom,
        Phase::RcptTo => ReplyPhase::Recipient,
        Phase::Data | Phase::Body | Phase::Final => ReplyPhase::Data,
        _ => ReplyPhase::Greeting,
    }
}

pub(super) fn judge(ending: Ending, peer: &Peer, is_simulated: bool) -> Judgement {
    let host = if peer.mx.is_empty() { "the remote server" } else { &peer.mx };
    match ending {
        Ending::Accepted(reply) => Judgement {
            class: None,
            reply: Some(reply),
            ..Judgement::temporary(BounceClass::Other, format!("Accepted by {host}"))
        },
        Ending::Refused { reply, phase } => judge_refusal(reply, host, phase, is_simulated),
        Ending::TooLarge { size, size_max } => Judgement::permanent(
            BounceClass::TooLarge,
            format!("The message has {size} bytes and {host} takes at most {size_max}"),
        ),
        Ending::Utf8NotOffered => Judgement::permanent(
            BounceClass::Protocol,
            format!("The message needs SMTPUTF8, which {host} does not offer"),
        ),
        Ending::Interrupted { phase, problem, class, after_last_byte } => Judgement {
            possible_duplicate: after_last_byte,
            ..Judgement::temporary(
                class,
                format!("The conversation with {host} broke off at {phase}: {problem}"),
            )
        },
        Ending::Unreachable { problem, class, reply, was_tried } => {
            let parsed_reply = reply.as_ref().and_then(mail_reply);
            let reply_class = parsed_reply.map(|reply| classify_in(ReplyPhase::Greeting, &reply).class);
            Judgement {
                counts_as_attempt: was_tried,
                reply,
                ..Judgement::temporary(reply_class.unwrap_or(class), format!("No connection: {problem}"))
            }
        }
        Ending::NoRoute { problem, class } => {
            let is_permanent = class != BounceClass::Dns;
            Judgement { is_permanent, counts_as_attempt: false, ..Judgement::temporary(class, problem) }
        }
        Ending::Waited { cause, class, .. } => Judgement {
            counts_as_attempt: false,
            ..Judgement::temporary(class, format!("It was not offered to a receiver yet: {cause}"))
        },
        Ending::Expired => Judgement {
            counts_as_attempt: false,
            ..Judgement::permanent(BounceClass::Other, "Its `expires_at` has passed".to_owned())
        },
        Ending::Broken(problem) => {
            Judgement { counts_as_attempt: false, ..Judgement::permanent(BounceClass::Other, problem) }
        }
        Ending::NoReply => Judgement {
            possible_duplicate: true,
            ..Judgement::temporary(
                BounceClass::Other,
                "The service ended while it sent the end of the message or waited for the reply".to_owned(),
            )
        },
        Ending::Abandoned => Judgement {
            possible_duplicate: true,
            // It is unknown whether a host was reached.
            counts_as_attempt: false,
            ..Judgement::temporary(
                BounceClass::Other,
                "The node that was sending it is gone, and nobody knows whether it arrived".to_owned(),
            )
        },
    }
}

/// Whether the next attempt should use the same source address: a receiver that greylists by address remembers only
/// that address. After a refusal for any other known reason, another address may succeed.
fn keeps_source(code: u16, signal: Option<Signal>) -> bool {
    code < 500 && matches!(signal, None | Some(Signal::Greylisted))
}

fn judge_refusal(reply: Reply, host: &str, phase: Phase, is_simulated: bool) -> Judgement {
    let verdict = mail_reply(&reply).map(|reply| classify_in(reply_phase(phase), &reply));
    let class = verdict.as_ref().map_or(BounceClass::Other, |verdict| verdict.class);
    // The simulator's permanent refusals are final at once, except for full mailboxes.
    let is_final_at_once = is_simulated && reply.code >= 500 && class != BounceClass::Full;
    let is_permanent =
        verdict.as_ref().map_or(reply.code >= 500, |verdict| verdict.permanent) || is_final_at_once;
    let how = if is_permanent { "refused it" } else { "refused it for now" };
    Judgement {
        class: Some(class),
        is_permanent,
        is_remote_decision: true,
        is_dead_address: verdict.as_ref().is_some_and(|verdict| verdict.hard),
        counts_as_attempt: true,
        possible_duplicate: false,
        keeps_source: keeps_source(reply.code, verdict.and_then(|verdict| verdict.signal)),
        details: format!("{host} {how} {}", refused_command(phase, class)),
        reply: Some(reply),
    }
}

/// The command that was refused, and why, as deliveries show it.
fn refused_command(phase: Phase, class: BounceClass) -> String {
    format!("({phase}, {class})")
}

/// Effect on other messages of a refusal that was stored as this delivery; `None` also if the delivery is no refusal.
pub(super) fn stored_signal(delivery: &NewDelivery) -> Option<Signal> {
    let class = BounceClass::parse(delivery.bounce_class.as_deref()?)?;
    let phase = Phase::all().find(|phase| delivery.details.contains(&refused_command(*phase, class)))?;
    let reply = postroad_mail::Reply::parse(&delivery.output).ok()?;
    classify_in(reply_phase(phase), &reply).signal
}

pub(super) fn is_greylisting(ending: &Ending) -> bool {
    matches!(ending, Ending::Refused { reply, phase } if signal_of(reply, *phase) == Some(Signal::Greylisted))
}

/// Whether the receiver has not replied about this message, so that its greylisting of the message is unchanged.
pub(super) fn is_unanswered(ending: &Ending) -> bool {
    match ending {
        Ending::Waited { .. } | Ending::NoRoute { .. } | Ending::Interrupted { .. } => true,
        // If no host was tried, this machine may be unable to send from the source address: the next attempt may then
        // use another one.
        Ending::Unreachable { was_tried, .. } => *was_tried,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_keeps_its_source_address_only_after_greylisting_or_an_unexplained_temporary_refusal() {
        assert!(keeps_source(450, Some(Signal::Greylisted)));
        assert!(keeps_source(451, None));
        assert!(!keeps_source(552, None));
        for signal in [Signal::Reputation, Signal::TooFast, Signal::Content, Signal::RecipientPolicy] {
            assert!(!keeps_source(421, Some(signal)), "{signal:?}");
        }
    }
}
