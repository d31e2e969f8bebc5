//! Finds where the text of a notice ends and the original message begins.

/// Phrases in lines after which the original, or its headers, follow; in lower case.
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

/// Headers with which an unannounced copy begins.
const FIRST_HEADERS: &[&str] =
    &["received:", "return-path:", "x-received:", "dkim-signature:", "delivered-to:"];

/// The text, and the part of the original after it.
pub(super) fn split_original(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let lower = line.trim_start_matches(['>', '|', ' ']).to_lowercase();
        // An announcing line is short; a sentence that happens to contain the words is not.
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

/// Skips empty lines and rules between the announcement and the original.
fn skip_ornaments(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '=' | '_' | '*'))
}
