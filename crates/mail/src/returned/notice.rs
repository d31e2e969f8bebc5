//! Recognises notices of mail systems by sender, subject, text and enclosed original, and detects whether they report a
//! delay.

use super::parts::Parts;
use super::quoted::find_reply;
use super::{address, auto_reply};

/// Parts of subjects of notices; in lower case.
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
    "failed mail",
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
    "エラー通知",
    "メールエラー",
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

/// Phrases of notices; in lower case.
const FAILURE_PHRASES: &[&str] = &[
    "not be delivered",
    "not been delivered",
    "was not delivered",
    "wasn't delivered",
    "couldn't be delivered",
    "cannot be delivered",
    "can't be delivered",
    "yet to be delivered",
    "unable to deliver",
    "able to deliver your message",
    "delivery failed",
    "delivery has failed",
    "failed to deliver",
    "delivery to the following",
    "undeliverable",
    "did not reach",
    "could not deliver",
    "couldn't deliver",
    "delivery failure",
    "delivery errors",
    "delivery problems",
    "had trouble delivering",
    "nicht zugestellt",
    "pas pu être remis",
    "no se pudo entregar",
    "non è stato possibile recapitare",
    "не может быть доставлено",
    "送信できません",
    "配信できません",
    "お届けできません",
];

/// Phrases in subjects and texts of notices about delayed mail; in lower case.
const DELAY_PHRASES: &[&str] = &[
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
    "has been frozen",
    "could not send message for past",
    "no action is required on your part",
    "noch nicht zugestellt",
    "zustellung verzögert",
    "remise retardée",
    "entrega retrasada",
    "recapito ritardato",
    "entrega atrasada",
];

/// Phrases of notices that sound like a delay although the mail was given up.
const FINAL_PHRASES: &[&str] =
    &["permanent error", "given up", "will be deleted from queue", "will not be retried"];

/// Whether a mail system wrote the message to report a failure or delay. Neither the author's name nor the subject
/// alone is enough: postmasters write letters, and people write about failures.
pub(super) fn is_notice(parts: &Parts) -> bool {
    let from = parts.from().map(str::trim);
    let is_daemon = from.is_some_and(|from| from.is_empty() || from == "<>" || address::is_daemon(from));
    let subject = parts.subject().to_lowercase();
    let subject_says_failure = FAILURE_SUBJECTS.iter().any(|phrase| subject.contains(phrase));
    let text = parts.explanation().to_lowercase();
    let text_says_failure = FAILURE_PHRASES.iter().any(|phrase| text.contains(phrase));
    let has_proof = !parts.original.is_empty() || find_reply(&parts.notice).is_some() || text_says_failure;
    // Some mail systems use any name and subject, but they enclose the message and give a reason.
    let returns_original = text_says_failure && parts.is_original_enclosed;
    let is_auto = auto_reply::is_auto_subject(&subject);
    let signs = [is_daemon, subject_says_failure && !is_auto, has_proof, returns_original && !is_auto];
    parts.headers.has("x-failed-recipients") || signs.into_iter().filter(|sign| *sign).count() > 1
}

pub(super) fn is_delay(parts: &Parts) -> bool {
    let text = format!("{}\n{}", parts.subject(), parts.notice).to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    has(DELAY_PHRASES) && !has(FINAL_PHRASES)
}
