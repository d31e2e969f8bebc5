//! Finds the SMTP command that was refused, if a notice names it.

use crate::classify::Phase;

/// Words of various mail systems before the name of the command.
const LEADS: [&str; 7] = [
    "in reply to ",
    "in response to ",
    "after ",
    "did not like our ",
    "smtp command ",
    "error following ",
    "while sending ",
];

/// Names of the command after one of `LEADS`.
const COMMANDS: [(&str, Phase); 10] = [
    ("ehlo", Phase::Greeting),
    ("helo", Phase::Greeting),
    ("lhlo", Phase::Greeting),
    ("initial connection", Phase::Greeting),
    ("mail from", Phase::MailFrom),
    ("rcpt", Phase::Recipient),
    ("end of data", Phase::Data),
    ("final data", Phase::Data),
    ("end-of-data", Phase::Data),
    ("data", Phase::Data),
];

/// Phrases of various mail systems that show the command without one of `LEADS`.
const PHRASES: [(&str, Phase); 13] = [
    ("refused to talk to me", Phase::Greeting),
    ("but my name was rejected", Phase::Greeting),
    ("but greeting failed", Phase::Greeting),
    ("recipient: [smtp:", Phase::Recipient),
    ("server rejected recipient", Phase::Recipient),
    ("[mail_from]", Phase::MailFrom),
    ("[rcpt_to]", Phase::Recipient),
    ("remote smtp server has rejected address", Phase::Recipient),
    ("but sender was rejected", Phase::MailFrom),
    ("does not like recipient", Phase::Recipient),
    ("failed after i sent the message", Phase::Data),
    ("rejected recipient <", Phase::Recipient),
    ("unknown address error", Phase::Recipient),
];

pub(super) fn find_phase(text: &str) -> Option<Phase> {
    // Mail systems break lines anywhere.
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let after_lead = |lead: &str| {
        let rests =
            text.match_indices(lead).map(|(at, _)| text[at + lead.len()..].trim_start_matches("the "));
        rests.into_iter().find_map(phase_at)
    };
    let by_phrase = || PHRASES.iter().find(|(word, _)| text.contains(word)).map(|(_, phase)| *phase);
    LEADS
        .iter()
        .find_map(|lead| after_lead(lead))
        .or_else(by_phrase)
        .or_else(|| from_state(&text))
        .or_else(|| from_transcript(&text))
        .or_else(|| from_mention(&text))
        // Courier names the command that a remote host refused. If it names none, Courier itself refused a local
        // recipient.
        .or_else(|| text.contains("running the courier mail server").then_some(Phase::Recipient))
}

fn phase_at(rest: &str) -> Option<Phase> {
    let is_there = |word: &str| {
        rest.strip_prefix(word).is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    COMMANDS.iter().find(|(word, _)| is_there(word)).map(|(_, phase)| *phase)
}

/// Finds the command in a transcript: `>>> RCPT To:<…>` and, below it, `<<< 550 …`; MDaemon writes `-->` and `<--`. A
/// refusal below `while talking to …` without a command between them is about the connection itself (`Greeting`).
fn from_transcript(text: &str) -> Option<Phase> {
    let refusals = ["<<< 5", "<<< 4", "<-- 5", "<-- 4"];
    let refused = refusals.into_iter().filter_map(|mark| text.find(mark)).min()?;
    let before = &text[..refused];
    let conversation = before.rfind("while talking to").map_or(before, |at| &before[at..]);
    match conversation.rfind(">>> ").max(conversation.rfind("--> ")) {
        Some(at) => phase_at(&conversation[at + 4..]),
        None => (conversation.len() < before.len()).then_some(Phase::Greeting),
    }
}

/// Finds the command by Gmail's `(state N)`: 13 is MAIL, 14 is RCPT, lower numbers come before MAIL, higher ones after
/// RCPT.
fn from_state(text: &str) -> Option<Phase> {
    let state = text.split_once("(state ")?.1.split_once(')')?.0;
    match state.parse::<u8>().ok()? {
        0..13 => Some(Phase::Greeting),
        13 => Some(Phase::MailFrom),
        14 => Some(Phase::Recipient),
        _ => Some(Phase::Data),
    }
}

/// Finds a mention such as `SMTP:RCPT host …` or `… in RCPT TO`, which means that the session reached the command.
/// Ignores `503 Need RCPT`, and notices that list the whole envelope.
fn from_mention(text: &str) -> Option<Phase> {
    if text.contains("mail from:") {
        return None;
    }
    let mentions = text.match_indices("rcpt").filter(|(at, _)| {
        let before = &text[..*at];
        let after = &text[at + 4..];
        !["need ", "needs ", "valid "].iter().any(|word| before.ends_with(word))
            && ![" first", " before", " (recipient)", "hosts"].iter().any(|word| after.starts_with(word))
    });
    mentions.map(|_| Phase::Recipient).next()
}

#[cfg(test)]
mod tests {
    use super::{Phase, find_phase};

    #[test]
    fn the_refused_command_is_found_in_every_form() {
        for (text, phase) in [
            ("550 no (in reply to end of DATA command)", Phase::Data),
            ("SMTP error from remote mail server after end of data:\n550 no", Phase::Data),
            ("SMTP error from remote mail server after MAIL FROM:<a@b.c> SIZE=1:", Phase::MailFrom),
            ("mx did not like our RCPT TO:\n550 no", Phase::Recipient),
            ("-------SMTP command\nDATA\n", Phase::Data),
            (">>> RCPT To:<a@b.c>\n<<< 250 ok\n>>> DATA\n<<< 550 no", Phase::Data),
            ("SMTP error from remote mail server after EHLO mx.example.net:\n550 no", Phase::Greeting),
            ("host mx.example.com[192.0.2.1] refused to talk\n    to me: 554 no", Phase::Greeting),
            ("501 5.1.8 Sender address rejected  [MAIL_FROM]", Phase::MailFrom),
        ] {
            assert_eq!(find_phase(text), Some(phase), "{text}");
        }
        assert_eq!(find_phase("550 no\n\n MAIL FROM: a@b.c\n RCPT TO: d@e.f\n"), None);
        assert_eq!(find_phase("550 no such user after database lookup"), None);
    }
}
