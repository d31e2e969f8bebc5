//! Parameter `_expansions`: the requested parts of a message.

use postroad_app::MessageDetail;

use crate::fields::Findings;
use crate::json::Json;

/// Part of a message that a call can request. The variants are in the order of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expansion {
    Status,
    Details,
    Inspection,
    PlainBody,
    HtmlBody,
    Attachments,
    Headers,
    RawMessage,
    ActivityEntries,
}

impl Expansion {
    const ALL: [Self; 9] = [
        Self::Status,
        Self::Details,
        Self::Inspection,
        Self::PlainBody,
        Self::HtmlBody,
        Self::Attachments,
        Self::Headers,
        Self::RawMessage,
        Self::ActivityEntries,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Details => "details",
            Self::Inspection => "inspection",
            Self::PlainBody => "plain_body",
            Self::HtmlBody => "html_body",
            Self::Attachments => "attachments",
            Self::Headers => "headers",
            Self::RawMessage => "raw_message",
            Self::ActivityEntries => "activity_entries",
        }
    }
}

/// The requested parts of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expansions(Vec<Expansion>);

impl Expansions {
    /// `true` means all expansions, an array names some, anything else means none. Unknown names become warnings.
    pub(super) fn read(json: Option<Json<'_>>, findings: &mut Findings) -> Self {
        match json {
            Some(Json::Bool(true)) => Self(Expansion::ALL.to_vec()),
            Some(Json::Array(names)) => {
                let mut wanted = Vec::new();
                for name in names {
                    let known =
                        Expansion::ALL.into_iter().find(|known| name == Json::Text(known.name().into()));
                    match (known, name) {
                        (Some(known), _) if !wanted.contains(&known) => wanted.push(known),
                        (Some(_), _) | (None, Json::Null) => {}
                        (None, Json::Text(name)) => findings.warn("expansion", &name),
                        (None, other) => findings.warn("expansion", &format!("({})", other.type_name())),
                    }
                }
                Self(wanted)
            }
            _ => Self::default(),
        }
    }

    pub(super) fn has(&self, expansion: Expansion) -> bool {
        self.0.contains(&expansion)
    }

    /// Whether an expansion needs the parsed MIME structure.
    pub(super) fn needs_mime(&self) -> bool {
        use Expansion::{Attachments, Headers, HtmlBody, PlainBody};
        [PlainBody, HtmlBody, Attachments, Headers].into_iter().any(|part| self.has(part))
    }

    /// Whether an expansion needs the stored bytes.
    pub(super) fn needs_bytes(&self) -> bool {
        self.needs_mime() || self.has(Expansion::RawMessage)
    }

    /// How much of the message the store reads.
    pub(super) fn detail(&self) -> MessageDetail {
        if self.0.is_empty() { MessageDetail::Summary } else { MessageDetail::Record }
    }

    /// Estimate of the memory needed to answer with the content of a message of `size` bytes. Base64 turns three bytes
    /// into four; decoded parts together are assumed to be at most as large as the message.
    pub(super) fn bytes_to_answer(&self, size: u64) -> usize {
        // All estimates are in thirds of `size`.
        let stored = 3;
        let decoded = if self.needs_mime() { 3 } else { 0 };
        let has_bodies = self.has(Expansion::PlainBody) || self.has(Expansion::HtmlBody);
        let parts_out = if has_bodies || self.has(Expansion::Attachments) { 4 } else { 0 };
        let raw_out = if self.has(Expansion::RawMessage) { 4 } else { 0 };
        let thirds = stored + decoded + parts_out + raw_out;
        usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(thirds) / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> (Expansions, Vec<String>) {
        let request = format!(r#"{{"x": {json}}}"#);
        let object = crate::json::parse_object(request.as_bytes()).unwrap();
        let mut findings = Findings::default();
        let expansions = Expansions::read(object.into_iter().next().map(|(_, json)| json), &mut findings);
        (expansions, findings.warnings)
    }

    #[test]
    fn true_requests_all_expansions_an_array_those_it_names_and_other_values_none() {
        assert_eq!(read("true").0, Expansions(Expansion::ALL.to_vec()));
        for none in ["false", "null", "[]", "\"status\"", "{}", "1"] {
            assert_eq!(read(none), (Expansions::default(), vec![]), "{none}");
        }
        for expansion in Expansion::ALL {
            assert_eq!(read(&format!("[\"{}\"]", expansion.name())).0, Expansions(vec![expansion]));
        }
    }

    #[test]
    fn unknown_names_are_reported() {
        let (expansions, warnings) = read(r#"["foo", "status", 7, null, "status"]"#);
        assert_eq!(expansions, Expansions(vec![Expansion::Status]));
        assert_eq!(
            warnings,
            ["Unknown expansion `foo` was ignored", "Unknown expansion `(Integer)` was ignored"]
        );
    }

    #[test]
    fn only_the_needed_detail_and_bytes_are_fetched() {
        assert_eq!(read("[]").0.detail(), MessageDetail::Summary);
        assert_eq!(read(r#"["details", "activity_entries"]"#).0.detail(), MessageDetail::Record);
        assert!(!read(r#"["details", "activity_entries"]"#).0.needs_bytes());
        assert!(read(r#"["status", "headers"]"#).0.needs_bytes());
        let raw = read(r#"["raw_message", "status"]"#).0;
        assert!(raw.needs_bytes() && !raw.needs_mime());
        assert!(read("true").0.needs_mime());
    }

    #[test]
    fn memory_is_estimated_by_expansion() {
        let estimates = ["true", r#"["raw_message"]"#, r#"["headers"]"#, r#"["plain_body", "html_body"]"#]
            .map(|json| read(json).0.bytes_to_answer(300));
        assert_eq!(estimates, [1_400, 700, 600, 1_000]);
    }
}
