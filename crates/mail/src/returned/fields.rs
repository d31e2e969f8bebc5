//! Fields of delivery status notifications (RFC 3464): a group about the message, then one for each recipient. Some
//! systems print these fields into the text for people; they are parsed there too.

use postroad_model::BounceClass;

use crate::classify::EnhancedCode;

use super::parts::Parts;
use super::{RECIPIENTS_MAX, ReturnedKind, address};

const FIELDS_MAX: usize = RECIPIENTS_MAX * 16;
const FIELD_NAMES: [&str; 8] = [
    "reporting-mta",
    "original-recipient",
    "final-recipient",
    "action",
    "status",
    "diagnostic-code",
    "remote-mta",
    "x-powermta-bouncecategory",
];
/// A group with one of these is about a recipient.
const RECIPIENT_FIELDS: [&str; 4] = ["original-recipient", "final-recipient", "action", "diagnostic-code"];

#[derive(Debug, Default)]
pub(super) struct DeliveryStatus {
    pub(super) reporting_mta: Option<String>,
    pub(super) groups: Vec<RecipientFields>,
}

/// The fields about one recipient; names in lower case.
#[derive(Debug, Default)]
pub(super) struct RecipientFields(Vec<(String, String)>);

pub(super) fn read(parts: &Parts) -> Option<DeliveryStatus> {
    let from_part = parts.status.as_deref().map(parse);
    from_part.filter(|status| !status.groups.is_empty()).or_else(|| {
        let mut status = parse(&parts.notice);
        // Text may look like fields: only a group that names a recipient and has another field counts.
        status.groups.retain(|group| group.any_recipient().is_some() && group.0.len() > 1);
        (!status.groups.is_empty()).then_some(status)
    })
}

fn parse(text: &str) -> DeliveryStatus {
    let mut status = DeliveryStatus::default();
    let mut group = RecipientFields::default();
    // Whether the last line belongs to a known field, which the next line may continue.
    let mut is_in_field = false;
    let mut fields = 0;
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']) && !line.trim().is_empty();
        if is_continued && is_in_field {
            group.continue_last(line.trim());
            continue;
        }
        is_in_field = false;
        if line.trim().is_empty() {
            status.close(&mut group);
        } else if let Some((name, value)) = split_field(line) {
            if group.find(&name).is_some() {
                status.close(&mut group);
            }
            fields += 1;
            if fields > FIELDS_MAX || status.groups.len() >= RECIPIENTS_MAX {
                break;
            }
            group.0.push((name, value.to_owned()));
            is_in_field = true;
        }
    }
    status.close(&mut group);
    status
}

fn split_field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.trim_start().split_once(':')?;
    let name = name.trim_end().to_ascii_lowercase();
    FIELD_NAMES.contains(&name.as_str()).then(|| (name, value.trim()))
}

impl DeliveryStatus {
    fn close(&mut self, group: &mut RecipientFields) {
        let group = std::mem::take(group);
        if let Some(host) = group.find("reporting-mta").filter(|_| self.reporting_mta.is_none()) {
            self.reporting_mta = Some(strip_type(host).to_owned());
        }
        if RECIPIENT_FIELDS.iter().any(|name| group.find(name).is_some()) {
            self.groups.push(group);
        }
    }
}

impl RecipientFields {
    /// Kind of the report; `None` for a success. If `Action` is unknown and `Status` is not a success, `is_delay` (from
    /// the text of the notice) decides.
    pub(super) fn kind(&self, is_delay: bool) -> Option<ReturnedKind> {
        let action = self.find("action").unwrap_or_default().to_ascii_lowercase();
        let status = self.find("status").unwrap_or_default();
        match action.split(|c: char| !c.is_ascii_alphabetic()).next() {
            Some("delivered" | "relayed" | "expanded") => None,
            Some("delayed") => Some(ReturnedKind::Delay),
            // SendGrid writes `expired`.
            Some("failed" | "failure" | "expired") => Some(ReturnedKind::Bounce),
            _ if status.starts_with('2') => None,
            _ if is_delay => Some(ReturnedKind::Delay),
            _ => Some(ReturnedKind::Bounce),
        }
    }

    /// The first complete address among the original and the final recipient, else whatever is named first.
    pub(super) fn recipient(&self) -> Option<String> {
        self.addresses().find(|found| address::is_address(found)).or_else(|| self.any_recipient())
    }

    /// The first recipient named, even if it is not a complete address.
    pub(super) fn any_recipient(&self) -> Option<String> {
        self.addresses().next()
    }

    pub(super) fn status(&self) -> Option<EnhancedCode> {
        EnhancedCode::parse(self.find("status")?.split_whitespace().next()?)
    }

    /// The diagnostic text without its type prefix. The types of HCL Notes and Postfix are removed too.
    pub(super) fn diagnostic(&self) -> &str {
        let diagnostic = self.find("diagnostic-code").map(strip_type).unwrap_or_default();
        // Oracle's Messaging Server and PowerMTA write an explanation in parentheses after the status.
        let explained = || self.find("status").and_then(|status| status.split_once('('));
        if diagnostic.is_empty() {
            explained().map_or("", |(_, explanation)| explanation.trim_end_matches(')'))
        } else {
            diagnostic
        }
    }

    /// Whether the diagnostic has Sendmail's type `x-unix`: the exit status of a local delivery program.
    pub(super) fn is_local_program(&self) -> bool {
        let diagnostic = self.find("diagnostic-code").and_then(|value| value.get(..7));
        diagnostic.is_some_and(|kind| kind.eq_ignore_ascii_case("x-unix;"))
    }

    /// PowerMTA's bounce category. Operators configure it, so it counts only if the reply is vague.
    pub(super) fn category(&self) -> Option<BounceClass> {
        Some(match self.find("x-powermta-bouncecategory")?.to_ascii_lowercase().as_str() {
            "bad-mailbox" => BounceClass::BadMailbox,
            "bad-domain" => BounceClass::BadDomain,
            "inactive-mailbox" => BounceClass::Inactive,
            "quota-issues" => BounceClass::Full,
            "spam-related" => BounceClass::SpamBlock,
            "policy-related" => BounceClass::Policy,
            "content-related" | "virus-related" => BounceClass::Content,
            "relaying-issues" => BounceClass::RelayingDenied,
            "no-answer-from-host" | "bad-connection" | "message-expired" => BounceClass::Timeout,
            "protocol-errors" => BounceClass::Protocol,
            _ => return None,
        })
    }

    /// The original and the final recipient, as far as they are named.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> {
        let fields = ["original-recipient", "final-recipient"].into_iter();
        fields.filter_map(|name| self.find(name)).map(parse_address).filter(|found| !found.is_empty())
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn continue_last(&mut self, more: &str) {
        if let Some((_, value)) = self.0.last_mut() {
            value.push(' ');
            value.push_str(more);
        }
    }
}

/// Address of `rfc822; jo@example.com`, also without the type or in angle brackets.
fn parse_address(value: &str) -> String {
    let address = strip_type(value).trim_matches(['<', '>', '"']).trim();
    unescape(address)
}

/// The text after `type;`, if the field begins with a type.
fn strip_type(value: &str) -> &str {
    match value.split_once(';') {
        Some((kind, rest))
            if kind.trim().bytes().all(|b| b.is_ascii_alphanumeric() || b"-/_.".contains(&b)) =>
        {
            rest.trim()
        }
        _ => value.trim(),
    }
}

/// Decodes characters written as `\x{5DC}` (RFC 6533 section 3).
fn unescape(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    let mut rest = address;
    while let Some((before, after)) = rest.split_once("\\x{") {
        out.push_str(before);
        let digits = after.split_once('}').filter(|(digits, _)| digits.len() <= 6);
        let character = digits.and_then(|(digits, _)| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        if let (Some(character), Some((_, left))) = (character, digits) {
            out.push(character);
            rest = left;
        } else {
            out.push_str("\\x{");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}
