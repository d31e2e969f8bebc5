//! Everything that is said about one recipient, weighed: the reply in the status fields first, then what the notice
//! says of the recipient, then the notice as a whole.

use postroad_model::BounceClass;

use crate::classify::{EnhancedCode, Reply, Verdict, classify};

use super::phase::{Phase, find_phase};
use super::quoted::{Quoted, find_enhanced, find_reply};
use super::{ReturnedKind, ReturnedRecipient, shorten};

#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// The other side has given up.
    pub(super) is_final: bool,
    /// From the Status field.
    pub(super) status: Option<EnhancedCode>,
    /// From the Diagnostic-Code field.
    pub(super) diagnostic: &'a str,
    /// What the notice says of this recipient.
    pub(super) section: &'a str,
    /// What the notice says of nobody in particular.
    pub(super) notice: &'a str,
}

/// A text with the reply that was made of it, and what `classify` says.
struct Judged {
    reply: Reply,
    verdict: Verdict<'static>,
}

impl Evidence<'_> {
    pub(super) fn judge(&self, kind: ReturnedKind, recipient: Option<String>) -> ReturnedRecipient {
        let section = refusals_only(self.section);
        let in_diagnostic = find_reply(self.diagnostic);
        let in_section = find_reply(&section);
        let quoted = in_diagnostic.or(in_section);
        let code = quoted.map(|quoted| quoted.code);
        let words =
            |quoted: Option<Quoted<'_>>, text: &str| quoted.map_or(text, |quoted| quoted.text).to_owned();
        let texts = [
            words(in_diagnostic, self.diagnostic),
            words(in_section, ""),
            section.clone(),
            self.notice.to_owned(),
        ];
        let judged = self.first_clear(code, &texts);
        let enhanced = judged.reply.enhanced().or_else(|| find_enhanced(self.diagnostic)).or(self.status);
        let (class, hard) = weigh(kind, &judged, enhanced, find_phase(self.section));
        let diagnostic = [self.diagnostic, quoted.map_or("", |quoted| quoted.text), &section, self.notice];
        ReturnedRecipient {
            status: enhanced,
            code,
            class: Some(class),
            permanent: self.is_final,
            hard: hard && self.is_final,
            diagnostic: diagnostic.into_iter().map(shorten).find(|text| !text.is_empty()).unwrap_or_default(),
            rule: Some(judged.verdict.rule),
            ..ReturnedRecipient::silent(kind, recipient)
        }
    }

    /// The first text that says something clear; else the first that says anything; else nothing but the codes.
    fn first_clear(&self, code: Option<u16>, texts: &[String; 4]) -> Judged {
        let mut best: Option<Judged> = None;
        for (at, text) in texts.iter().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            // The whole notice is full of phrases that mean nothing: it is the last resort.
            let is_last_resort = at == texts.len() - 1;
            if is_last_resort && best.as_ref().is_some_and(|best| best.verdict.class != BounceClass::Other) {
                break;
            }
            let judged = self.classify(code, text);
            if !judged.verdict.vague {
                return judged;
            }
            if best.as_ref().is_none_or(|best| best.verdict.class == BounceClass::Other) {
                best = Some(judged);
            }
        }
        best.unwrap_or_else(|| self.classify(code, ""))
    }

    fn classify(&self, code: Option<u16>, text: &str) -> Judged {
        let is_permanent = self.status.map_or(self.is_final, |status| status.class == 5);
        let code = code.unwrap_or(if is_permanent { 550 } else { 450 });
        let make = |text: &str| Reply::new(code, text).expect("a quoted code is from 400 to 599");
        let mut reply = make(text);
        // What the remote host said itself comes before what the reporting one made of it.
        if let (None, Some(status)) = (reply.enhanced(), self.status) {
            reply = make(&format!("{status} {text}"));
        }
        Judged { verdict: classify(&reply), reply }
    }
}

/// What the words do not know: which command was refused, and that codes can contradict them.
fn weigh(
    kind: ReturnedKind,
    judged: &Judged,
    enhanced: Option<EnhancedCode>,
    phase: Option<Phase>,
) -> (BounceClass, bool) {
    let verdict = judged.verdict;
    let is_dead = matches!(verdict.class, BounceClass::BadMailbox | BounceClass::BadDomain);
    let is_doubtful = match phase {
        // "Does not exist" is said of the sender there.
        Some(Phase::MailFrom) => is_dead,
        // The recipient had been accepted: a filter hides behind "user unknown", unless the code means it.
        Some(Phase::Data) => {
            verdict.class == BounceClass::BadMailbox && enhanced.is_none_or(|code| code.subject != 1)
        }
        _ => false,
    };
    // 5.7.1 is a rule of the receiver; one who did not know the user would say so.
    let is_contradicted = is_dead && enhanced.is_some_and(|code| code.subject == 7 && code.detail <= 1);
    if is_doubtful || is_contradicted {
        return (BounceClass::Policy, false);
    }
    if phase == Some(Phase::MailFrom) && verdict.vague && verdict.class == BounceClass::Other {
        return (BounceClass::Policy, false);
    }
    if kind == ReturnedKind::Delay && verdict.vague && verdict.class == BounceClass::Other {
        return (BounceClass::Timeout, false);
    }
    (verdict.class, verdict.hard)
}

/// Of a transcript of the session, only the refusals: the reporting host's own remarks between them guess.
fn refusals_only(section: &str) -> String {
    let refusals = section.lines().filter_map(|line| line.trim_start().strip_prefix("<<< "));
    let is_refusal = |line: &&str| line.starts_with(['4', '5']) && !line.starts_with("503");
    let refusals: Vec<&str> = refusals.filter(is_refusal).collect();
    if refusals.is_empty() { section.to_owned() } else { refusals.join("\n") }
}
