//! Feedback reports (ARF, RFC 5965), and complaints without a report, such as Microsoft's plain copies.

use super::parts::Parts;
use super::{RECIPIENTS_MAX, ReturnedKind, ReturnedRecipient, address};

/// Feedback types that are not complaints: failed authentication (RFC 6591), DMARC failures, and "not spam".
const NOT_COMPLAINTS: [&str; 3] = ["auth-failure", "not-spam", "dmarc"];

/// Phrases in the subject of complaints that have no report part; in lower case.
const COMPLAINT_SUBJECTS: [&str; 3] = ["complaint about message from", "spam complaint", "abuse complaint"];

pub(super) fn read(parts: &Parts) -> Option<Vec<ReturnedRecipient>> {
    let Some(report) = parts.feedback.as_deref().or_else(|| report_in_text(parts)) else {
        return is_plain_complaint(parts).then(|| {
            vec![ReturnedRecipient::without_refusal(ReturnedKind::Complaint, parts.original_recipient())]
        });
    };
    let fields = |name: &'static str| {
        report.lines().filter_map(move |line| {
            let (field, value) = line.split_once(':')?;
            field.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let feedback_type = fields("feedback-type").next().unwrap_or("abuse").to_ascii_lowercase();
    let is_complaint = !NOT_COMPLAINTS.contains(&feedback_type.as_str());
    let kind = if is_complaint { ReturnedKind::Complaint } else { ReturnedKind::Other };
    let mut named: Vec<String> = Vec::new();
    for value in fields("original-rcpt-to").chain(fields("removal-recipient")).take(RECIPIENTS_MAX) {
        let recipient = address::find_all(value).next().map(str::to_owned);
        named.extend(recipient.filter(|recipient| !named.contains(recipient)));
    }
    let reporting_mta =
        fields("reporting-mta").next().map(|host| host.rsplit(';').next().unwrap_or(host).trim());
    let about = |recipient| ReturnedRecipient {
        reporting_mta: reporting_mta.map(str::to_owned),
        diagnostic: format!("feedback: {feedback_type}"),
        ..ReturnedRecipient::without_refusal(kind, recipient)
    };
    if named.is_empty() {
        return Some(vec![about(parts.original_recipient())]);
    }
    Some(named.into_iter().map(|recipient| about(Some(recipient))).collect())
}

/// Fields of a report in the text of a message whose MIME parts are broken.
fn report_in_text(parts: &Parts) -> Option<&str> {
    let is_feedback_type =
        |line: &str| line.get(..14).is_some_and(|name| name.eq_ignore_ascii_case("feedback-type:"));
    let is_report = parts.status.is_none() && parts.notice.lines().any(is_feedback_type);
    is_report.then_some(parts.notice.as_str())
}

fn is_plain_complaint(parts: &Parts) -> bool {
    let subject = parts.subject().to_lowercase();
    let subject_says_complaint = COMPLAINT_SUBJECTS.iter().any(|phrase| subject.contains(phrase));
    parts.original.has("x-hmxmroriginalrecipient") || (subject_says_complaint && !parts.original.is_empty())
}
