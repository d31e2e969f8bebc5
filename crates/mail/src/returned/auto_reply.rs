//! Automatic replies: out of office, vacation, "we have received your message" (RFC 3834).

use super::parts::Parts;
use super::{ReturnedKind, ReturnedRecipient};

/// Beginnings of subjects, or of the text after a colon, bracket or hyphen in a subject; in lower case.
const AUTO_REPLY_SUBJECTS: &[&str] = &[
    "auto:",
    "auto-reply",
    "autoreply",
    "auto reply",
    "auto response",
    "auto-response",
    "autoresponse",
    "automatic reply",
    "automatic response",
    "automated reply",
    "automated response",
    "out of office",
    "out-of-office",
    "out of the office",
    "on vacation",
    "vacation",
    "away from",
    "away until",
    "i am away",
    "on holiday",
    "on leave",
    "annual leave",
    "absence",
    "absent",
    "réponse automatique",
    "reponse automatique",
    "en congés",
    "en vacances",
    "abwesend",
    "abwesenheit",
    "nicht im büro",
    "automatische antwort",
    "im urlaub",
    "respuesta automática",
    "respuesta automatica",
    "fuera de la oficina",
    "fuera de oficina",
    "ausente",
    "risposta automatica",
    "fuori sede",
    "fuori ufficio",
    "assente",
    "resposta automática",
    "resposta automatica",
    "fora do escritório",
    "ausência",
    "automatisch antwoord",
    "afwezig",
    "autosvar",
    "automatiskt svar",
    "automatisk svar",
    "frånvaro",
    "automaattinen vastaus",
    "poissa",
    "automatyczna odpowiedź",
    "poza biurem",
    "automatická odpověď",
    "automatikus válasz",
    "răspuns automat",
    "otomatik yanıt",
    "ofis dışında",
    "автоответ",
    "автоматический ответ",
    "отсутствую",
    "αυτόματη απάντηση",
    "自动回复",
    "自動回覆",
    "自動返信",
    "自動応答",
    "不在通知",
    "자동 회신",
    "부재중",
];

/// Headers that only automatic replies have.
const AUTO_REPLY_HEADERS: [&str; 7] = [
    "x-autoreply",
    "x-autorespond",
    "x-autoresponder",
    "x-auto-reply",
    "x-autoreply-from",
    "x-mail-autoreply",
    "x-vacation",
];

pub(super) fn read(parts: &Parts) -> Option<Vec<ReturnedRecipient>> {
    if !is_auto_reply(parts) {
        return None;
    }
    let author = parts.from().filter(|from| from.contains('@')).map(str::to_owned);
    Some(vec![ReturnedRecipient::without_refusal(ReturnedKind::AutoReply, author)])
}

fn is_auto_reply(parts: &Parts) -> bool {
    let value = |name: &str| parts.headers.find(name).unwrap_or_default().trim().to_lowercase();
    let auto_submitted = value("auto-submitted");
    auto_submitted.starts_with("auto-replied")
        || AUTO_REPLY_HEADERS.iter().any(|name| parts.headers.has(name))
        || matches!(value("precedence").as_str(), "auto_reply" | "auto-reply")
        || value("x-apple-action") == "vacation"
        || is_auto_subject(&value("subject"))
}

/// Whether a subject, in lower case, is that of an automatic reply.
pub(super) fn is_auto_subject(subject: &str) -> bool {
    let starts = |text: &str| AUTO_REPLY_SUBJECTS.iter().any(|phrase| text.trim_start().starts_with(phrase));
    starts(subject) || subject.split([':', ']', '-']).skip(1).any(starts)
}
