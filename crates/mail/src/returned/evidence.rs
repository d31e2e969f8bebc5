//! Weighs everything that a notice says about one recipient: first the reply in the status fields, then the text about
//! the recipient, then the notice as a whole.

use postroad_model::BounceClass;

use crate::classify::{EnhancedCode, Phase, Reply, Signal, Verdict, built_in, classify};

use super::phase::find_phase;
use super::quoted::{QuotedReply, find_enhanced, find_hash_marked, find_reply};
use super::{ReturnedKind, ReturnedRecipient, shorten};

/// Phrases of mail systems that gave up after their retry time.
const EXPIRY_PHRASES: [&str; 5] = [
    "retry timeout exceeded",
    "will be deleted from queue",
    "in the queue too long",
    "message expired",
    "cannot send message for",
];

/// Everything that a returned message says about one recipient.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// Whether the reporting host has given up the message.
    pub(super) is_final: bool,
    /// Code in the Status field.
    pub(super) status: Option<EnhancedCode>,
    /// Text of the Diagnostic-Code field.
    pub(super) diagnostic: &'a str,
    /// Whether the diagnostic is the exit status of a program on the reporting host (`X-Unix; 77`).
    pub(super) is_local_program: bool,
    /// The reporting host's own classification.
    pub(super) category: Option<BounceClass>,
    /// The notice's text about this recipient.
    pub(super) section: &'a str,
    /// The notice as a whole.
    pub(super) notice: &'a str,
    /// Whether the notice is about this recipient only.
    pub(super) is_only_recipient: bool,
}

/// Facts about a refusal in addition to its text.
#[derive(Clone, Copy)]
struct Facts {
    /// Whether the message was retried until the retry time was over.
    is_expired: bool,
    /// The best available enhanced code, possibly from the Status field.
    enhanced: Option<EnhancedCode>,
    /// The best enhanced code of a reply or of the Status field. A code that only the text for people has (`#5.1.1`)
    /// does not count: it proves nothing about a recipient.
    protocol_code: Option<EnhancedCode>,
}

/// A text with the reply parsed from it, and its classification.
struct ClassifiedText {
    reply: Reply,
    verdict: Verdict<'static>,
}

impl Evidence<'_> {
    /// Decides the class, and whether the address is dead.
    pub(super) fn judge(mut self, kind: ReturnedKind, recipient: Option<String>) -> ReturnedRecipient {
        let section = refusals_only(self.section);
        let notice = if self.notice_applies() { refusals_only(self.notice) } else { String::new() };
        let status_field = self.status;
        self.status =
            self.status.or_else(|| find_hash_marked(&section)).or_else(|| find_hash_marked(&notice));
        // The quoted reply of the most reliable text counts.
        let reply_in_diagnostic = find_reply(self.diagnostic);
        let reply_in_section = find_reply(&section);
        let reply_in_notice = find_reply(&notice).filter(|_| reply_in_section.is_none());
        let quoted = reply_in_diagnostic.or(reply_in_section).or(reply_in_notice);
        let code = quoted.map(|quoted| quoted.code);
        let text_of = |quoted: Option<QuotedReply<'_>>| quoted.map_or("", |quoted| quoted.text).to_owned();
        let from_diagnostic = if reply_in_diagnostic.is_some() {
            text_of(reply_in_diagnostic)
        } else {
            self.diagnostic.to_owned()
        };
        let texts = [from_diagnostic, text_of(reply_in_section), section.clone(), text_of(reply_in_notice)];
        let reply_to_rcpt = quoted.filter(|quoted| names_recipient(quoted.text, recipient.as_deref()));
        let phase = self.phase(recipient.as_deref()).or(reply_to_rcpt.map(|_| Phase::Recipient));
        let classified = self.first_clear_text(code, phase, &texts, &notice);
        let code_in_reply = || quoted.and_then(|quoted| find_enhanced(quoted.text));
        let enhanced = classified
            .reply
            .enhanced()
            .or_else(|| find_enhanced(self.diagnostic))
            .or_else(code_in_reply)
            .or(self.status);
        let protocol_code = find_enhanced(self.diagnostic).or_else(code_in_reply).or(status_field);
        let facts = Facts { enhanced, protocol_code, is_expired: self.is_expired() };
        let (class, hard) = weigh(kind, &classified, code, facts, phase);
        let class = self.category.filter(|_| classified.verdict.vague).unwrap_or(class);
        // A local program can judge the mailbox and the message. But its permission errors are about the program
        // itself, not about the receiver's policy.
        let class =
            if self.is_local_program && class == BounceClass::Policy { BounceClass::Other } else { class };
        let diagnostic = [self.diagnostic, quoted.map_or("", |quoted| quoted.text), &section, &notice];
        ReturnedRecipient {
            status: enhanced,
            code,
            class: Some(class),
            permanent: self.is_final,
            hard: hard && self.is_final,
            diagnostic: diagnostic.into_iter().map(shorten).find(|text| !text.is_empty()).unwrap_or_default(),
            rule: Some(classified.verdict.rule),
            ..ReturnedRecipient::without_refusal(kind, recipient)
        }
    }

    /// Whether the text of the whole notice applies to this recipient.
    fn notice_applies(&self) -> bool {
        self.is_only_recipient || self.section.trim().is_empty()
    }

    /// Whether the message was given up after the retry time, whatever the last reply was. The reporting host's own
    /// words count too, even in a transcript.
    fn is_expired(&self) -> bool {
        let has_expiry_code = self.status.is_some_and(|status| (status.subject, status.detail) == (4, 7));
        let notice = if self.notice_applies() { self.notice } else { "" };
        let texts = [self.diagnostic, self.section, notice].map(str::to_lowercase);
        let says = |phrase: &str| texts.iter().any(|text| text.contains(phrase));
        self.is_final && (has_expiry_code || EXPIRY_PHRASES.into_iter().any(says))
    }

    /// The phase of the refused command, if a text names the command.
    fn phase(&self, recipient: Option<&str>) -> Option<Phase> {
        let command = recipient.map(|recipient| format!("rcpt to:<{}>", recipient.to_lowercase()));
        let quotes_rcpt = || command.is_some_and(|command| self.notice.to_lowercase().contains(&command));
        find_phase(self.diagnostic)
            .or_else(|| find_phase(self.section))
            .or_else(|| quotes_rcpt().then_some(Phase::Recipient))
            .or_else(|| find_phase(if self.notice_applies() { self.notice } else { "" }))
    }

    /// The first text with a clear statement; else the first with any statement; else only the codes.
    fn first_clear_text(
        &self,
        code: Option<u16>,
        phase: Option<Phase>,
        texts: &[String],
        notice: &str,
    ) -> ClassifiedText {
        let mut best: Option<ClassifiedText> = None;
        let says_nothing = |best: &Option<ClassifiedText>| {
            best.as_ref().is_none_or(|best| best.verdict.class == BounceClass::Other)
        };
        for text in texts.iter().filter(|text| !text.trim().is_empty()) {
            let classified = self.classify(code, phase, text);
            if !classified.verdict.vague {
                return classified;
            }
            if says_nothing(&best) {
                best = Some(classified);
            }
        }
        // A whole notice is full of irrelevant words: it is the last resort, and only for clear statements.
        if says_nothing(&best) {
            let classified = self.classify(code, phase, notice);
            if !classified.verdict.vague {
                return classified;
            }
        }
        best.unwrap_or_else(|| self.classify(code, phase, ""))
    }

    fn classify(&self, code: Option<u16>, phase: Option<Phase>, text: &str) -> ClassifiedText {
        // An uninformative status (`4.0.0`) does not prove that a final failure is temporary.
        let informative = self.status.filter(|status| (status.subject, status.detail) != (0, 0));
        let is_permanent = informative.map_or(self.is_final, |status| status.class == 5);
        let code = code.unwrap_or(if is_permanent { 550 } else { 450 });
        let make = |text: &str| Reply::new(code, text).expect("a quoted code is from 400 to 599");
        let mut reply = make(text);
        // The remote host's own reply takes precedence over the reporting host's interpretation.
        if let (None, Some(status)) = (reply.enhanced(), self.status) {
            reply = make(&format!("{status} {text}"));
        }
        ClassifiedText { verdict: built_in().judge(&reply, phase), reply }
    }
}

/// Applies facts that the text lacks: the phase of the refused command, and codes that contradict the text. Returns the
/// class, and whether the address is dead.
fn weigh(
    kind: ReturnedKind,
    classified: &ClassifiedText,
    code: Option<u16>,
    Facts { enhanced, protocol_code, is_expired }: Facts,
    phase: Option<Phase>,
) -> (BounceClass, bool) {
    let verdict = classified.verdict;
    let says_dead = matches!(verdict.class, BounceClass::BadMailbox | BounceClass::BadDomain);
    // If Exim itself reports an unroutable address, the domain has no route. If a remote host reports one, the user
    // is unknown.
    if code.is_none() && verdict.class == BounceClass::BadMailbox && is_unroutable(classified.reply.text()) {
        return (BounceClass::BadDomain, verdict.hard);
    }
    let in_phase = phase.map(|phase| verdict.for_phase(phase, enhanced));
    let is_doubtful = says_dead && in_phase.is_some_and(|other| other.class != verdict.class);
    // x.7.0 and x.7.1 are policies of the receiver; a host without the user would reply x.1.1.
    let is_contradicted = says_dead && enhanced.is_some_and(|code| code.subject == 7 && code.detail <= 1);
    if is_doubtful || is_contradicted {
        return (BounceClass::Policy, false);
    }
    // A host that only asked for a later attempt, until the retry time was over, gives no reason in its last reply.
    let says_nothing = verdict.vague && verdict.class == BounceClass::Other;
    let asks_to_try_later = says_nothing || verdict.signal == Some(Signal::Greylisted);
    if kind == ReturnedKind::Delay && says_nothing || is_expired && asks_to_try_later {
        return (BounceClass::Timeout, false);
    }
    // A remote host's "unknown user" makes an address dead in three cases: filters never use the text as a pretext,
    // the host refused the recipient, or an enhanced code other than x.0.x comes with the text. Otherwise the reply
    // is treated as a refusal after DATA, where filters hide behind these words.
    let has_specific_code = protocol_code.is_some_and(|code| code.subject != 0);
    let is_proven = verdict.sure || phase.is_some() || code.is_none() || has_specific_code;
    if verdict.class == BounceClass::BadMailbox && !is_proven {
        return (BounceClass::Policy, false);
    }
    let hard = match phase {
        Some(Phase::Recipient) => verdict.hard_at_rcpt || is_unknown_for_long(&classified.reply),
        _ => verdict.hard,
    };
    (verdict.class, hard)
}

fn is_unroutable(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["unrouteable address", "unroutable address"].iter().any(|phrase| text.contains(phrase))
}

/// Whether a reply begins with the recipient, as Postfix (`<jo@example.com>: …`) and Sendmail (`<jo@example.com>... …`)
/// begin their replies to RCPT. After DATA they name the command, the client or nobody.
fn names_recipient(reply: &str, recipient: Option<&str>) -> bool {
    let Some(recipient) = recipient else { return false };
    let text = reply.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit() || c.is_whitespace());
    let named = text.strip_prefix('<').and_then(|text| text.split_once('>'));
    named.is_some_and(|(address, rest)| {
        address.eq_ignore_ascii_case(recipient) && (rest.starts_with(':') || rest.starts_with("..."))
    })
}

/// Whether a refusal of the recipient is temporary only by its basic code, while enhanced code and text say that there
/// is no such user. Some receivers are configured to reply so. A sender that has given up got this reply during its
/// whole retry time.
fn is_unknown_for_long(reply: &Reply) -> bool {
    let is_unknown = |reply: &Reply| {
        let verdict = classify(reply);
        verdict.class == BounceClass::BadMailbox && verdict.hard && !verdict.vague
    };
    reply.code() < 500
        && reply.enhanced().is_some_and(|code| (code.subject, code.detail) == (1, 1))
        && Reply::new(550, reply.text()).is_ok_and(|permanent| is_unknown(&permanent))
}

/// The refusals of a session transcript in the text; the whole text if there are none. In a transcript the reporting
/// host's own remarks are guesses, and extensions such as `250-STARTTLS` refuse nothing.
fn refusals_only<'a>(section: &'a str) -> String {
    // Postfix's report to its postmaster begins replies with `Out: `; MDaemon puts a time and ` <-- ` before them.
    let reply = |line| ["<<< ", "Out: "].into_iter().find_map(|mark| str::strip_prefix(line, mark));
    let timed_reply = |line: &'a str| line.split_once(" <-- ").map(|(_, reply)| reply);
    let replies =
        section.lines().map(str::trim_start).filter_map(|line| reply(line).or_else(|| timed_reply(line)));
    // 503 (bad sequence of commands) only follows an earlier refusal.
    let is_refusal = |line: &&str| line.starts_with(['4', '5']) && !line.starts_with("503");
    let refusals: Vec<&str> = replies.filter(is_refusal).collect();
    if refusals.is_empty() { section.to_owned() } else { refusals.join("\n") }
}
