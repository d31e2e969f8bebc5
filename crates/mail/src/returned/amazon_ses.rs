//! Notifications of Amazon SES: JSON, sent as e-mail by an SNS topic.

use serde::Deserialize;

use crate::classify::EnhancedCode;

use super::evidence::Evidence;
use super::parts::Parts;
use super::{RECIPIENTS_MAX, ReturnedKind, ReturnedRecipient};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    #[serde(rename = "notificationType", alias = "eventType")]
    kind: String,
    bounce: Option<Bounce>,
    complaint: Option<Complaint>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bounce {
    #[serde(rename = "bounceType")]
    kind: String,
    bounced_recipients: Vec<Recipient>,
    #[serde(rename = "reportingMTA")]
    reporting_mta: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complaint {
    complained_recipients: Vec<Recipient>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recipient {
    email_address: String,
    status: Option<String>,
    diagnostic_code: Option<String>,
}

pub(super) fn read(parts: &Parts) -> Option<Vec<ReturnedRecipient>> {
    let text = parts.notice.trim_start();
    if !text.starts_with('{') {
        return None;
    }
    // Mail systems wrap the single long line of the JSON.
    let text = text.replace(['\r', '\n'], "");
    let notification = serde_json::Deserializer::from_str(&text).into_iter::<Notification>().next()?.ok()?;
    match notification.kind.as_str() {
        "Bounce" => notification.bounce.map(read_bounce),
        "Complaint" => notification.complaint.map(|complaint| {
            let recipients = complaint.complained_recipients.into_iter().take(RECIPIENTS_MAX);
            recipients
                .map(|recipient| {
                    ReturnedRecipient::without_refusal(ReturnedKind::Complaint, Some(recipient.email_address))
                })
                .collect()
        }),
        "Delivery" | "Send" => Some(Vec::new()),
        _ => None,
    }
}

fn read_bounce(bounce: Bounce) -> Vec<ReturnedRecipient> {
    let host = bounce.reporting_mta.as_deref().map(|host| host.rsplit(';').next().unwrap_or(host).trim());
    let judge = |recipient: Recipient| {
        let diagnostic = recipient.diagnostic_code.as_deref().unwrap_or_default();
        let evidence = Evidence {
            is_final: true,
            status: recipient.status.as_deref().and_then(EnhancedCode::parse),
            diagnostic: diagnostic.strip_prefix("smtp;").unwrap_or(diagnostic).trim(),
            is_local_program: false,
            category: None,
            section: "",
            // The notification has no text for people; the bounce type takes its place.
            notice: &bounce.kind,
            is_only_recipient: true,
        };
        let judged = evidence.judge(ReturnedKind::Bounce, Some(recipient.email_address));
        ReturnedRecipient { reporting_mta: host.map(str::to_owned), ..judged }
    };
    bounce.bounced_recipients.into_iter().take(RECIPIENTS_MAX).map(judge).collect()
}
