//! Returned mail: bounces, delay notices, complaints, automatic replies.
//!
//! Accepts any bytes and never fails: unknown mail is `Other`. Everything is limited, because anybody can write these
//! messages. The caller finds our message, by the return path or by identifiers that this module collects.
//!
//! This module reads, from the most to the least reliable: feedback reports (RFC 5965), Amazon's notifications, status
//! fields (RFC 3464), the texts of notices, and automatic replies. Refusals are judged by the rules of `classify`.

mod address;
mod amazon_ses;
mod auto_reply;
mod enclosed;
mod evidence;
mod feedback;
mod fields;
mod headers;
mod notice;
mod original;
mod own_ids;
mod parts;
mod phase;
mod quoted;
mod sections;

use postroad_model::BounceClass;

use crate::classify::EnhancedCode;
use evidence::Evidence;
use parts::Parts;
use sections::SectionIndex;

/// Maximum number of recipients; further ones are ignored. None of our sends has more recipients.
const RECIPIENTS_MAX: usize = 1_000;
const DIAGNOSTIC_BYTES_MAX: usize = 1_024;

/// Content of a returned message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The kind of the message as a whole. A notice of success is `Other` and has no recipients.
    pub kind: ReturnedKind,
    pub recipients: Vec<ReturnedRecipient>,
    /// Message-ID of the original, if it is quoted, without angle brackets.
    pub original_message_id: Option<String>,
    /// Candidates for our identifier of the original (`ReturnPathKey::parse` decides), best first.
    pub original_ids: Vec<String>,
    /// Whether the mail has a machine-readable feedback report (RFC 5965); not every such report is a complaint.
    pub is_feedback_report: bool,
    /// Whether the mail encloses the original and has neither a feedback report nor status fields: at an address for
    /// complaints, such a copy is a complaint.
    is_bare_copy: bool,
    /// Subject of the returned mail itself.
    pub subject: String,
    /// Message-ID of the returned mail itself.
    pub message_id: Option<String>,
}

/// Report about one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedRecipient {
    /// Address that the report names, or author of an automatic reply. `None` in redacted complaints and in notices
    /// that name nobody.
    pub recipient: Option<String>,
    pub kind: ReturnedKind,
    pub status: Option<EnhancedCode>,
    /// Basic SMTP code of the quoted refusal.
    pub code: Option<u16>,
    /// Bounce class, for bounces and delays.
    pub class: Option<BounceClass>,
    /// Whether the reporting host has given up the message, for any reason.
    pub permanent: bool,
    /// Whether the address itself is dead.
    pub hard: bool,
    /// The refusal in the words of the host that refused or reported it, on one line.
    pub diagnostic: String,
    /// The reporting host.
    pub reporting_mta: Option<String>,
    /// Name of the rule that decided on the class.
    pub rule: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnedKind {
    /// Not delivered, and given up.
    Bounce,
    /// Not delivered yet.
    Delay,
    /// The recipient reported the message as spam.
    Complaint,
    /// Out of office and the like.
    AutoReply,
    /// A message without effect, such as a notice of success or an unknown mail.
    Other,
}

impl ReturnedKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Delay => "delay",
            Self::Complaint => "complaint",
            Self::AutoReply => "auto_reply",
            Self::Other => "other",
        }
    }
}

impl Returned {
    /// The content of a message that arrived at an address to which only feedback loops write: there a bare copy of an
    /// original is a complaint about that original.
    #[must_use]
    pub fn at_feedback_address(self) -> Self {
        if self.kind != ReturnedKind::Other || !self.is_bare_copy {
            return self;
        }
        let recipients = vec![ReturnedRecipient::without_refusal(ReturnedKind::Complaint, None)];
        Self { kind: ReturnedKind::Complaint, recipients, ..self }
    }
}

/// Parses a message that arrived at a return path or report address.
pub fn read(message: &[u8]) -> Returned {
    let parts = Parts::of(message);
    let parts = enclosed::enclosed_report(&parts).unwrap_or(parts);
    let recipients = feedback::read(&parts)
        .or_else(|| amazon_ses::read(&parts))
        .or_else(|| read_status_fields(&parts))
        .or_else(|| read_notice_text(&parts))
        .or_else(|| auto_reply::read(&parts))
        .unwrap_or_else(|| vec![ReturnedRecipient::without_refusal(ReturnedKind::Other, None)]);
    Returned {
        // The kind that `ReturnedKind` declares first wins: one failed recipient makes the message a bounce, even if
        // other recipients are only delayed.
        kind: recipients
            .iter()
            .map(|one| one.kind)
            .min_by_key(|kind| *kind as u8)
            .unwrap_or(ReturnedKind::Other),
        recipients,
        original_message_id: parts.original.message_id(),
        original_ids: own_ids::find_ids(&parts),
        is_feedback_report: parts.feedback.is_some(),
        is_bare_copy: parts.is_original_enclosed && parts.feedback.is_none() && parts.status.is_none(),
        subject: parts.subject().to_owned(),
        message_id: parts.headers.message_id(),
    }
}

/// Reads status fields (RFC 3464), which have one group for each recipient. `None` if there is no such group.
fn read_status_fields(parts: &Parts) -> Option<Vec<ReturnedRecipient>> {
    let report = fields::read(parts)?;
    let sections =
        sections::sections_of(parts, report.groups.iter().filter_map(fields::RecipientFields::any_recipient));
    let index = SectionIndex::of(&sections);
    let is_only_recipient = report.groups.len() == 1;
    let is_delay = notice::is_delay(parts);
    let mut found = Vec::new();
    for group in &report.groups {
        let Some(kind) = group.kind(is_delay) else { continue };
        let recipient =
            group.recipient().or_else(|| sections.first().map(|section| section.recipient.clone()));
        let section = index.find(group.addresses());
        let evidence = Evidence {
            is_final: kind == ReturnedKind::Bounce,
            status: group.status(),
            diagnostic: group.diagnostic(),
            is_local_program: group.is_local_program(),
            category: group.category(),
            section: section.map_or("", |section| &section.text),
            // With fields for each recipient there is no need to guess whom the text means.
            notice: if is_only_recipient { parts.explanation() } else { "" },
            is_only_recipient,
        };
        let reporting_mta = report.reporting_mta.clone();
        found.push(ReturnedRecipient { reporting_mta, ..evidence.judge(kind, recipient) });
    }
    Some(found)
}

/// Reads a notice without status fields. `None` if the message does not look like a notice.
fn read_notice_text(parts: &Parts) -> Option<Vec<ReturnedRecipient>> {
    if !notice::is_notice(parts) {
        return None;
    }
    let kind = if notice::is_delay(parts) { ReturnedKind::Delay } else { ReturnedKind::Bounce };
    let sections = sections::find_sections(parts);
    let judge = |recipient: Option<String>, section: &str| {
        let evidence = Evidence {
            is_final: kind == ReturnedKind::Bounce,
            status: None,
            diagnostic: "",
            is_local_program: false,
            category: None,
            section,
            notice: parts.explanation(),
            is_only_recipient: sections.len() < 2,
        };
        evidence.judge(kind, recipient)
    };
    if sections.is_empty() {
        return Some(vec![judge(parts.original_recipient(), "")]);
    }
    Some(sections.iter().map(|section| judge(Some(section.recipient.clone()), &section.text)).collect())
}

impl ReturnedRecipient {
    fn without_refusal(kind: ReturnedKind, recipient: Option<String>) -> Self {
        Self {
            recipient,
            kind,
            status: None,
            code: None,
            class: None,
            permanent: false,
            hard: false,
            diagnostic: String::new(),
            reporting_mta: None,
            rule: None,
        }
    }
}

/// The text on one line, cut to `DIAGNOSTIC_BYTES_MAX` at a word.
fn shorten(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > DIAGNOSTIC_BYTES_MAX {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}
