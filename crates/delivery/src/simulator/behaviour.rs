//! Behaviour of the simulator's recipients, by local part. Everything from a `+` on is ignored, so that
//! `missing+order-7@…` and `missing+order-8@…` are two recipients with the same behaviour.

use postroad_smtp::server::StandardReply;
use postroad_smtp::{EnhancedCode, Reply};

use super::visit::Visit;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Gives this reply every time.
    Say(Reply),
    /// Gives this reply the first `times` times; then accepts the recipient.
    SayFirst { times: u32, reply: Reply },
    /// Never answers.
    Silent,
}

/// Action after a message was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowUp {
    Nothing,
    Bounce,
    Complaint,
    Visit(Visit),
}

impl FollowUp {
    pub(super) fn of(local_part: &str) -> Self {
        match plain_name(local_part).as_str() {
            "bounce-later" => Self::Bounce,
            "complaint" => Self::Complaint,
            "open" => Self::Visit(Visit::Open),
            "click" => Self::Visit(Visit::Click),
            _ => Self::Nothing,
        }
    }
}

/// Behaviour of a recipient in the table `RECIPIENTS`.
enum Effect {
    Accept,
    Refuse(u16, &'static str),
    RefuseFirst(u32, u16, &'static str),
    Silent,
}

/// Replies in the words of real servers, to exercise classification. Actions after acceptance are in `FollowUp`.
const RECIPIENTS: &[(&str, Effect)] = &[
    ("delivered", Effect::Accept),
    ("defer", Effect::RefuseFirst(2, 451, "4.7.1 Service unavailable, please try again later")),
    (
        "greylist",
        Effect::RefuseFirst(1, 450, "4.2.0 Recipient address rejected: Greylisted, try again in 1 second"),
    ),
    (
        "missing",
        Effect::Refuse(550, "5.1.1 Recipient address rejected: User unknown in virtual mailbox table"),
    ),
    ("full", Effect::Refuse(552, "5.2.2 The recipient's mailbox is full and cannot take messages now")),
    (
        "blocked",
        Effect::Refuse(550, "5.7.1 Message rejected: it looks like spam and was blocked by our filter"),
    ),
    ("timeout", Effect::Silent),
    ("bounce-later", Effect::Accept),
    ("complaint", Effect::Accept),
    ("open", Effect::Accept),
    ("click", Effect::Accept),
];
const CHOSEN_REPLY: &str = "smtp-<code>-<x.y.z>";

impl Behaviour {
    pub(super) fn of(local_part: &str) -> Self {
        let name = plain_name(local_part);
        if let Some((_, effect)) = RECIPIENTS.iter().find(|(known, _)| *known == name) {
            return Self::from(effect);
        }
        Self::Say(parse_chosen_reply(&name).unwrap_or_else(unknown_recipient_reply))
    }
}

/// The local part in lower case, without its `+` tag.
fn plain_name(local_part: &str) -> String {
    local_part.split('+').next().unwrap_or_default().to_ascii_lowercase()
}

impl From<&Effect> for Behaviour {
    fn from(effect: &Effect) -> Self {
        match effect {
            Effect::Accept => Self::Say(StandardReply::RecipientOk.into()),
            Effect::Refuse(code, text) => Self::Say(reply(*code, text)),
            Effect::RefuseFirst(times, code, text) => {
                Self::SayFirst { times: *times, reply: reply(*code, text) }
            }
            Effect::Silent => Self::Silent,
        }
    }
}

/// Reply of a name such as `smtp-550-5.1.1`. Of the positive codes, only 250 to 252 are accepted (RFC 5321 4.3.2 lists
/// 250 and 251 for RCPT). The enhanced code need not match: hosts that reply `550 4.7.1` exist.
fn parse_chosen_reply(name: &str) -> Option<Reply> {
    let (code, enhanced) = name.strip_prefix("smtp-")?.split_once('-')?;
    let is_number = code.len() == 3 && code.bytes().all(|b| b.is_ascii_digit());
    let code: u16 = if is_number { code.parse().ok()? } else { return None };
    let enhanced = EnhancedCode::find(enhanced)?;
    match code {
        250..=252 | 400..=599 => Some(reply(code, &format!("{enhanced} Simulated reply"))),
        _ => None,
    }
}

fn unknown_recipient_reply() -> Reply {
    let known: Vec<&str> = RECIPIENTS.iter().map(|(name, _)| *name).chain([CHOSEN_REPLY]).collect();
    reply(550, &format!("5.1.1 Unknown simulator recipient; known are {}", known.join(", ")))
}

fn reply(code: u16, text: &str) -> Reply {
    Reply::new(code, vec![text.to_owned()])
}

#[cfg(test)]
mod tests {
    use postroad_mail::classify;
    use postroad_model::BounceClass;

    use super::*;

    fn reply_text(local_part: &str) -> String {
        match Behaviour::of(local_part) {
            Behaviour::Say(reply) => reply.to_string(),
            Behaviour::SayFirst { times, reply } => format!("{times} x {reply}"),
            Behaviour::Silent => "nothing".to_owned(),
        }
    }

    #[test]
    fn recipients_are_known_in_any_case_and_with_a_tag() {
        assert!(reply_text("Missing+order-7").starts_with("550 5.1.1 Recipient"));
        assert!(reply_text("DEFER").starts_with("2 x 451 4.7.1 "));
        assert!(reply_text("greylist").starts_with("1 x 450 4.2.0 "));
        assert_eq!(reply_text("timeout"), "nothing");
        for accepted in ["delivered", "bounce-later", "complaint", "open", "click"] {
            assert_eq!(reply_text(accepted), "250 2.1.5 Recipient OK");
        }
    }

    #[test]
    fn local_part_may_choose_the_reply() {
        assert_eq!(reply_text("smtp-554-5.7.511"), "554 5.7.511 Simulated reply");
        assert_eq!(reply_text("smtp-421-4.3.2+x"), "421 4.3.2 Simulated reply");
        assert_eq!(reply_text("smtp-250-2.1.5"), "250 2.1.5 Simulated reply");
        for unknown in [
            "smtp-354-2.0.0",
            "smtp-999-5.1.1",
            "smtp-+50-5.1.1",
            "smtp-55-5.1.1",
            "smtp-550",
            "smtp-550-5.1",
            "smtp-550-9.1.1",
            "smtp-550-5.1.1-x",
            "nobody",
            "",
        ] {
            assert!(
                reply_text(unknown)
                    .starts_with("550 5.1.1 Unknown simulator recipient; known are delivered, "),
                "{unknown}"
            );
        }
        assert!(reply_text("nobody").len() < 400, "a reply is one line");
    }

    #[test]
    fn refusals_have_the_class_of_their_name() {
        let class = |local_part| {
            let (Behaviour::Say(reply) | Behaviour::SayFirst { reply, .. }) = Behaviour::of(local_part)
            else {
                panic!("{local_part} says nothing");
            };
            classify(&classify::Reply::new(reply.code, &reply.text()).unwrap()).class
        };
        assert_eq!(class("missing"), BounceClass::BadMailbox);
        assert_eq!(class("nobody"), BounceClass::BadMailbox);
        assert_eq!(class("full"), BounceClass::Full);
        assert_eq!(class("blocked"), BounceClass::SpamBlock);
    }
}
