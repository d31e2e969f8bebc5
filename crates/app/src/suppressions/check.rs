//! Validation of suppressions.

use postroad_model::{EmailAddress, MessageId, SuppressionReason, Timestamp};
use postroad_store::NewSuppression;
use serde::{Deserialize, Serialize};

use crate::FieldProblem;

/// Longest `details`: it is repeated in the record of every held message.
const DETAILS_BYTES_MAX: usize = 500;
/// Ids are below 2^53.
const ID_MAX: i64 = (1 << 53) - 1;

/// Requested suppression, not checked yet; an empty optional text counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressionRequest {
    pub address: String,
    pub reason: Option<String>,
    pub details: Option<String>,
    pub origin_message_id: Option<i64>,
    pub expires_at: Option<String>,
}

impl SuppressionRequest {
    /// Returns the entry to store, or all problems, with pointers relative to this object.
    pub(crate) fn check(&self, now: Timestamp) -> Result<NewSuppression, Vec<FieldProblem>> {
        let mut problems = Vec::new();
        let address = value_or_problem(check_address(&self.address), &mut problems);
        let reason = value_or_problem(check_reason(self.reason.as_deref()), &mut problems);
        let details = value_or_problem(check_details(self.details.as_deref()), &mut problems);
        let origin = value_or_problem(check_origin(self.origin_message_id), &mut problems);
        let expires_at = value_or_problem(check_expiry(self.expires_at.as_deref(), now), &mut problems);
        match (address, reason, details, origin, expires_at) {
            (Some(address), Some(reason), Some(details), Some(origin_message_id), Some(expires_at)) => {
                Ok(NewSuppression {
                    address: address.as_str().to_owned(),
                    reason,
                    details,
                    origin_message_id,
                    expires_at,
                })
            }
            _ => Err(problems),
        }
    }
}

/// Parses the address of a suppression; surrounding spaces are ignored.
pub(crate) fn check_address(text: &str) -> Result<EmailAddress, FieldProblem> {
    EmailAddress::parse(text.trim())
        .map_err(|error| FieldProblem::new("/address", format!("`address` is not valid: {error}")))
}

/// Checks the reason; `manual` if absent.
fn check_reason(text: Option<&str>) -> Result<SuppressionReason, FieldProblem> {
    let Some(text) = non_empty(text) else { return Ok(SuppressionReason::Manual) };
    SuppressionReason::parse(text).ok_or_else(|| {
        let names = SuppressionReason::ALL.map(SuppressionReason::as_str).join(", ");
        FieldProblem::new("/reason", format!("`reason` should be one of {names}"))
    })
}

/// Checks the details and collapses them to one line, because they become part of a sentence.
fn check_details(text: Option<&str>) -> Result<String, FieldProblem> {
    let words = text.unwrap_or_default().split(|c: char| c.is_control() || c.is_whitespace());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if line.len() + usize::from(!line.is_empty()) + word.len() > DETAILS_BYTES_MAX {
            let message = format!("`details` is longer than {DETAILS_BYTES_MAX} bytes");
            return Err(FieldProblem::new("/details", message));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    Ok(line)
}

fn check_origin(id: Option<i64>) -> Result<Option<MessageId>, FieldProblem> {
    match id {
        Some(id) if !(1..=ID_MAX).contains(&id) => {
            Err(FieldProblem::new("/origin_message_id", "`origin_message_id` is not the id of a message"))
        }
        id => Ok(id.map(MessageId)),
    }
}

fn check_expiry(text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, FieldProblem> {
    let Some(text) = non_empty(text) else { return Ok(None) };
    let problem = |message: &str| FieldProblem::new("/expires_at", message);
    let moment = Timestamp::parse_rfc3339(text)
        .ok_or_else(|| problem("`expires_at` should be a time such as 2027-01-31T12:00:00Z (RFC 3339)"))?;
    if moment <= now {
        return Err(problem("`expires_at` is in the past"));
    }
    Ok(Some(moment))
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn value_or_problem<T>(checked: Result<T, FieldProblem>, problems: &mut Vec<FieldProblem>) -> Option<T> {
    checked.map_err(|problem| problems.push(problem)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap()
    }

    #[test]
    fn an_address_alone_is_a_manual_suppression_without_an_end() {
        let request =
            SuppressionRequest { address: " Ann@Bücher.example ".into(), ..SuppressionRequest::default() };
        let new = request.check(now()).unwrap();
        assert_eq!((new.address.as_str(), new.reason), ("Ann@Bücher.example", SuppressionReason::Manual));
        assert_eq!((new.details.as_str(), new.origin_message_id, new.expires_at), ("", None, None));
    }

    #[test]
    fn details_become_one_line() {
        let request = SuppressionRequest {
            address: "a@example.com".into(),
            details: Some(" 550-no\r\n550\tsuch\0 user ".into()),
            ..SuppressionRequest::default()
        };
        assert_eq!(request.check(now()).unwrap().details, "550-no 550 such user");
    }

    #[test]
    fn all_problems_are_reported_together() {
        let request = SuppressionRequest {
            address: "nobody".into(),
            reason: Some("because".into()),
            details: Some("x".repeat(501)),
            origin_message_id: Some(0),
            expires_at: Some("2026-11-15T12:00:00Z".into()),
        };
        let problems = request.check(now()).unwrap_err();
        let pointers: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(pointers, ["/address", "/reason", "/details", "/origin_message_id", "/expires_at"]);
        assert_eq!(
            problems[1].message,
            "`reason` should be one of hard_bounce, complaint, manual, unsubscribe, soft_bounce"
        );
        assert_eq!(problems[4].message, "`expires_at` is in the past");
    }
}
