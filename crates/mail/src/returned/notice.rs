//! The words that mail systems write to people: where the original begins, of whom they speak, and what is said of
//! each.

use super::parts::Parts;
use super::quoted::find_reply;
use super::{RECIPIENTS_MAX, address, auto_reply};

/// What is said of one recipient.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) recipient: String,
    pub(super) text: String,
}

/// A reply is cut anyway; this bounds what a thousand recipients can cost.
const SECTION_BYTES_MAX: usize = 8 << 10;

/// Lines after which the original, or its headers, follow. In lower case.
const ORIGINAL_FOLLOWS: &[&str] = &[
    "copy of the message",
    "copy of your message",
    "copy of the original",
    "original message follows",
    "original message headers",
    "message headers follow",
    "unsent message follows",
    "message text follows",
    "header of the original",
    "headers of the original",
    "header of the message",
    "copy of the message header",
    "original message -",
    "- original message",
    "-original message",
    "-original mail",
    "returned message -",
    "message header follows",
    "original message is attached",
    "message body follows",
    "returned message follows",
    "undelivered message follows",
    "your message reads",
    "your original message",
    "text of your message",
    "message that you sent follows",
    "message was:",
    "intestazioni originali del messaggio",
    "en-têtes de message d'origine",
    "ursprüngliche nachrichtenkopf",
    "encabezados de mensajes originales",
    "-original header",
    "original header",
    "start of returned message",
    "begin returned message",
];

/// Headers with which a copy begins that nobody announced.
const FIRST_HEADERS: &[&str] =
    &["received:", "return-path:", "x-received:", "dkim-signature:", "delivered-to:"];

/// In subjects of notices; in lower case.
const FAILURE_SUBJECTS: &[&str] = &[
    "undeliver",
    "undelivered",
    "delivery status",
    "delivery failure",
    "delivery failed",
    "delivery has failed",
    "delivery report",
    "delivery notification",
    "delivery error",
    "delivery problem",
    "delivery incomplete",
    "failure notice",
    "returned mail",
    "returned message",
    "return receipt",
    "mail failure",
    "mail failed",
    "mail error",
    "mail system error",
    "non-deliver",
    "nondeliver",
    "not delivered",
    "could not be delivered",
    "couldn't be delivered",
    "message not sent",
    "message delayed",
    "delayed mail",
    "could not send message",
    "rejected message",
    "message rejected",
    "blocked by our",
    "error sending your mail",
    "bounced",
    "unzustellbar",
    "nicht zugestellt",
    "nicht zustellbar",
    "konnte nicht zugestellt",
    "zustellung fehlgeschlagen",
    "fehler bei der zustellung",
    "non remis",
    "non distribu",
    "échec de la remise",
    "no se puede entregar",
    "no entregado",
    "no se ha podido entregar",
    "non recapitabile",
    "mancato recapito",
    "não entregue",
    "não é possível entregar",
    "falha na entrega",
    "onbestelbaar",
    "niet bezorgd",
    "nie można dostarczyć",
    "niedostarczon",
    "не доставлено",
    "недоставлен",
    "не может быть доставлено",
    "olevererbart",
    "kunne ikke leveres",
    "uleveret",
    "teslim edilemedi",
    "nedoručiteln",
    "配信不能",
    "配信できません",
    "送信できません",
    "届きません",
    "无法送达",
    "退信",
    "投递失败",
    "傳遞失敗",
    "未傳遞",
    "전송 실패",
    "배달되지 않음",
];

/// In subjects and words of notices about mail that is still tried; in lower case.
const DELAYED: &[&str] = &[
    "this is a warning message only",
    "this is a warning only",
    "you do not need to resend",
    "you do not have to resend",
    "no need to resend",
    "delivery has been delayed",
    "has been delayed",
    "delivery delayed",
    "delayed mail",
    "message delayed",
    "message is delayed",
    "notification (delay)",
    "still being retried",
    "will be retried",
    "will keep trying",
    "will continue to try",
    "will continue trying",
    "delivery will continue to be attempted",
    "has not yet been delivered",
    "not yet delivered",
    "could not send message for past",
    "no action is required on your part",
    "noch nicht zugestellt",
    "zustellung verzögert",
    "remise retardée",
    "entrega retrasada",
    "recapito ritardato",
    "entrega atrasada",
];

/// Given up all the same, although the words are those of a delay.
const GIVEN_UP: &[&str] =
    &["permanent error", "given up", "will be deleted from queue", "will not be retried"];

/// The words, and the original behind them as far as it is there.
pub(super) fn split_original(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let lower = line.trim_start_matches(['>', '|', ' ']).to_lowercase();
        // A line that says so is short; a sentence that happens to contain the words is not.
        if lower.len() < 120 && ORIGINAL_FOLLOWS.iter().any(|phrase| lower.contains(phrase)) && at > 0 {
            return (&text[..at], skip_ornaments(&text[at + line.len()..]));
        }
        if FIRST_HEADERS.iter().any(|name| lower.starts_with(name)) {
            return text.split_at(at);
        }
        at += line.len();
    }
    (text, "")
}

/// Empty lines and rules between the announcement and the original.
fn skip_ornaments(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '=' | '_' | '*'))
}

/// Whether a mail system wrote it to tell of a failure. Neither its name nor the subject is enough: postmasters write
/// letters, and people write about failures.
pub(super) fn is_notice(parts: &Parts) -> bool {
    let from = parts.from().map(str::trim);
    let is_daemon = from.is_some_and(|from| from.is_empty() || from == "<>" || address::is_daemon(from));
    let subject = parts.subject().to_lowercase();
    let tells_failure = FAILURE_SUBJECTS.iter().any(|phrase| subject.contains(phrase));
    let has_proof = !parts.original.is_empty() || find_reply(&parts.notice).is_some();
    let signs = [is_daemon, tells_failure && !auto_reply::is_auto_subject(&subject), has_proof];
    parts.headers.has("x-failed-recipients") || signs.into_iter().filter(|sign| *sign).count() > 1
}

pub(super) fn is_delay(parts: &Parts) -> bool {
    let text = format!("{}\n{}", parts.subject(), parts.notice).to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    has(DELAYED) && !has(GIVEN_UP)
}

/// What is said of recipients that are known already; none of those of whom nothing is said.
pub(super) fn sections_of(parts: &Parts, recipients: impl Iterator<Item = String>) -> Vec<Section> {
    let recipients: Vec<String> = recipients.take(RECIPIENTS_MAX).map(|one| one.to_lowercase()).collect();
    split(&parts.notice, |address| recipients.contains(&address.to_lowercase()))
}

/// The recipients of whom a notice speaks, and what it says of each.
pub(super) fn find_sections(parts: &Parts) -> Vec<Section> {
    let named = parts.headers.addresses(&["x-failed-recipients"]);
    if !named.is_empty() {
        let sections = sections_of(parts, named.iter().cloned());
        return named
            .into_iter()
            .take(RECIPIENTS_MAX)
            .map(|recipient| named_section(recipient, &sections, parts))
            .collect();
    }
    let others = senders(parts);
    let is_recipient =
        |address: &str| !address::is_daemon(address) && !others.contains(&address.to_lowercase());
    let sections = split(&parts.notice, is_recipient);
    if !sections.is_empty() {
        return sections;
    }
    let inside = address::find_all(&parts.notice).find(|address| is_recipient(address));
    inside
        .map(|found| Section { recipient: found.to_owned(), text: parts.notice.clone() })
        .into_iter()
        .collect()
}

fn named_section(recipient: String, sections: &[Section], parts: &Parts) -> Section {
    let own = sections.iter().find(|section| section.recipient.eq_ignore_ascii_case(&recipient));
    let text = own.map_or(&parts.notice, |section| &section.text);
    Section { text: text[..text.floor_char_boundary(SECTION_BYTES_MAX)].to_owned(), recipient }
}

/// Who wrote the original and who gets the notice: they are spoken of, too.
fn senders(parts: &Parts) -> Vec<String> {
    let mut found = parts.original.addresses(&["from", "sender", "reply-to", "return-path", "errors-to"]);
    found.extend(parts.headers.addresses(&["to", "from", "delivered-to", "reply-to"]));
    found.iter().map(|address| address.to_lowercase()).collect()
}

/// Cuts a notice where a line begins with the address of a recipient. The same address again goes on with its section.
fn split(notice: &str, is_recipient: impl Fn(&str) -> bool) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut current = None;
    for line in notice.lines() {
        let mut words = line;
        let mut is_complete = false;
        if let Some((address, rest)) =
            address::split_leading(line).filter(|(address, _)| is_recipient(address))
        {
            let known = sections.iter().position(|section| section.recipient.eq_ignore_ascii_case(address));
            if known.is_none() && sections.len() < RECIPIENTS_MAX {
                sections.push(Section { recipient: address.to_owned(), text: String::new() });
            }
            current = known.or_else(|| sections.len().checked_sub(1));
            let has_code = line.starts_with(['4', '5']);
            if !has_code {
                words = rest.trim_start_matches(['>', '"', '\'', ')', ']', ':', ' ']);
            }
            // A line that names a recipient for the first time and begins with a code says all that is said of it.
            is_complete = has_code && known.is_none();
        }
        if let Some(section) = current.and_then(|at| sections.get_mut(at))
            && section.text.len() + words.len() < SECTION_BYTES_MAX
        {
            section.text.push_str(words);
            section.text.push('\n');
        }
        current = current.filter(|_| !is_complete);
    }
    sections
}
