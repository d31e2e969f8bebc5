//! Effect of a returned message on the original message: a pure function of the parsed returned message.

use postroad_mail::{Returned, ReturnedKind, ReturnedRecipient};
use postroad_model::{EmailAddress, EventKind, MessageId, Status, SuppressionReason, Timestamp};
use postroad_store::{Message, NewDelivery, NewEvent, NewSuppression, ReturnEffect};
use serde::Serialize;
use serde_json::{Value, json};

/// Context for computing effects.
pub(super) struct EffectContext<'a> {
    pub(super) message: &'a Message,
    /// Simulated recipients are not suppressed, and do not count for the source address.
    pub(super) is_simulated: bool,
    /// Id under which the returned mail is stored.
    pub(super) stored_id: MessageId,
    /// The returned mail.
    pub(super) mail: EventMail,
    pub(super) now: Timestamp,
}

/// Returned mail, as events show it.
#[derive(Debug, Serialize)]
pub(super) struct EventMail {
    pub(super) token: String,
    pub(super) to: String,
    pub(super) from: String,
    pub(super) subject: String,
    /// Message-ID of the returned mail itself.
    pub(super) message_id: String,
}

/// The effect; `None` for mail that changes nothing, such as delays and automatic replies.
pub(super) fn effect(returned: &Returned, context: &EffectContext<'_>) -> Option<ReturnEffect> {
    let statement = find_statement(returned, &context.message.rcpt_to)?;
    match statement.kind {
        ReturnedKind::Bounce if statement.permanent => Some(context.bounce(statement)),
        ReturnedKind::Complaint => Some(context.complaint(statement)),
        _ => None,
    }
}

/// Finds the statement about our recipient. A host that forwards mail or expands a list names other recipients; then
/// the first statement of the mail's kind (a bounce, if one recipient failed) counts, because each of our messages has
/// one recipient.
fn find_statement<'a>(returned: &'a Returned, rcpt_to: &str) -> Option<&'a ReturnedRecipient> {
    let key = |address: &str| EmailAddress::parse(address).map(|address| address.mailbox_key()).ok();
    let wanted = key(rcpt_to);
    let names_ours = |statement: &&ReturnedRecipient| {
        wanted.is_some() && statement.recipient.as_deref().and_then(key) == wanted
    };
    let all = &returned.recipients;
    all.iter().find(names_ours).or_else(|| all.iter().find(|statement| statement.kind == returned.kind))
}

impl EffectContext<'_> {
    fn bounce(&self, statement: &ReturnedRecipient) -> ReturnEffect {
        let host = statement.reporting_mta.as_deref().unwrap_or("The remote server");
        let class = statement.class.map(|class| class.as_str().to_owned());
        let reason = class.as_deref().unwrap_or("other");
        let delivery = NewDelivery {
            output: statement.diagnostic.clone(),
            mx: statement.reporting_mta.clone(),
            code: statement.code.map(i64::from),
            enhanced_code: statement.status.map(|status| status.to_string()),
            bounce_class: class.clone(),
            ..NewDelivery::local(
                self.now,
                Status::Bounced,
                format!("{host} accepted it first and sent it back later ({reason})"),
            )
        };
        let data = json!({
            "status": delivery.status,
            "details": delivery.details,
            "output": delivery.output,
            "sent_with_ssl": false,
            "time": null,
            "mx": delivery.mx,
            "code": delivery.code,
            "enhanced_code": delivery.enhanced_code,
            "bounce": {
                "kind": "async",
                "class": delivery.bounce_class,
                "code": delivery.code,
                "enhanced_code": delivery.enhanced_code,
                "diagnostic": delivery.output,
                "message_id": self.stored_id,
                "returned": self.mail,
            },
        });
        let suppress = statement.hard.then_some(SuppressionReason::HardBounce);
        self.effect_with(suppress, &statement.diagnostic, Some(delivery), EventKind::Bounced, &data)
    }

    fn complaint(&self, statement: &ReturnedRecipient) -> ReturnEffect {
        let details = match &statement.reporting_mta {
            Some(host) => format!("Called spam by its recipient, says {host}"),
            None => "Called spam by its recipient".to_owned(),
        };
        let data = json!({
            "details": details,
            "complaint": {
                "reporting_mta": statement.reporting_mta,
                "diagnostic": statement.diagnostic,
                "message_id": self.stored_id,
            },
        });
        self.effect_with(Some(SuppressionReason::Complaint), &details, None, EventKind::Complained, &data)
    }

    fn effect_with(
        &self,
        suppress: Option<SuppressionReason>,
        details: &str,
        delivery: Option<NewDelivery>,
        kind: EventKind,
        data: &Value,
    ) -> ReturnEffect {
        let suppress = suppress.filter(|_| !self.is_simulated).map(|reason| NewSuppression {
            address: self.message.rcpt_to.clone(),
            reason,
            details: details.to_owned(),
            origin_message_id: Some(self.message.id),
            expires_at: None,
        });
        ReturnEffect {
            delivery,
            event: NewEvent { kind, data: data.to_string() },
            suppress,
            counts_for_source: !self.is_simulated,
        }
    }
}

#[cfg(test)]
mod tests {
    use postroad_mail::returned::read;

    use super::*;

    /// Bounce about these recipients, each with its action.
    fn bounce(groups: &[(&str, &str)]) -> Returned {
        let fields = groups.iter().map(|(recipient, action)| {
            let status = if *action == "failed" { "5.1.1" } else { "4.4.1" };
            format!("Final-Recipient: rfc822; {recipient}\r\nAction: {action}\r\nStatus: {status}\r\n\r\n")
        });
        let groups = fields.collect::<Vec<_>>().concat();
        let text = format!(
            "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
             Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n{groups}--b--\r\n"
        );
        read(text.as_bytes())
    }

    fn kind_of_statement(groups: &[(&str, &str)]) -> ReturnedKind {
        find_statement(&bounce(groups), "Ann@example.com").expect("there is a statement").kind
    }

    #[test]
    fn the_statement_about_our_recipient_counts() {
        let (ours, other) = ("ann@EXAMPLE.com", "bob@example.com");
        assert_eq!(kind_of_statement(&[(other, "failed"), (ours, "delayed")]), ReturnedKind::Delay);
        assert_eq!(kind_of_statement(&[(other, "delayed"), (ours, "failed")]), ReturnedKind::Bounce);
    }

    #[test]
    fn the_worst_statement_counts_if_none_names_our_recipient() {
        assert_eq!(kind_of_statement(&[("ann@forwarded.example", "failed")]), ReturnedKind::Bounce);
        let list = [("a@list.example", "delayed"), ("b@list.example", "failed")];
        assert_eq!(kind_of_statement(&list), ReturnedKind::Bounce);
    }
}
