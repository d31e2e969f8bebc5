//! One DNS record to publish, and the verdict on it.

use serde::{Deserialize, Serialize};

/// Purpose of a record. Sending domains have only the first five; the installation has all but `ReturnPath`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Spf,
    Dkim,
    Dmarc,
    ReturnPath,
    Tracking,
    /// The address of a host name.
    Host,
    /// The PTR name of a source address, which the hosting provider sets.
    ReverseDns,
    /// The mail server that takes bounces (MX).
    Bounces,
    /// Permission to send DMARC reports about other domains here (RFC 7489 7.1).
    DmarcReports,
    /// Address for reports on TLS failures (RFC 8460).
    TlsReports,
    /// The policy that asks for TLS (RFC 8461).
    MtaSts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RecordType {
    A,
    Aaaa,
    Cname,
    Mx,
    Ns,
    Ptr,
    Txt,
}

impl RecordType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Cname => "CNAME",
            Self::Mx => "MX",
            Self::Ns => "NS",
            Self::Ptr => "PTR",
            Self::Txt => "TXT",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Not checked yet, or not checkable.
    Pending,
    Verified,
    /// There is no such record; for some TXT records, a wildcard may answer instead.
    Missing,
    /// The record exists, but does not have the required effect.
    Mismatch,
    /// Several records exist where only one is allowed.
    Multiple,
    /// The DNS gave no answer, so there is no verdict.
    DnsError,
}

/// One record to publish, with the current DNS content and the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCheck {
    pub purpose: Purpose,
    #[serde(rename = "type")]
    pub record_type: RecordType,
    /// Without a dot at the end.
    pub name: String,
    /// The value to publish. For a verified SPF or DMARC record that needs no change, the value found. Empty if too
    /// little is known to suggest a value.
    pub value: String,
    pub required: bool,
    pub status: RecordStatus,
    /// Text found in the DNS, shortened and without control characters, because others wrote it.
    pub found: Vec<String>,
    /// The change to make, or a note, in sentences for the person who edits the DNS.
    pub hint: Option<String>,
}

/// Overall verdict on a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All required records are verified, and at least one DKIM record is.
    Verified,
    /// A required record, or every DKIM record, is missing or wrong.
    Failing,
    /// Neither of both: a required record or a DKIM record has no verdict, or there is no DKIM record.
    Unknown,
}

impl Verdict {
    pub fn of(checks: &[RecordCheck]) -> Self {
        let required = || checks.iter().filter(|check| check.required).map(|check| check.status);
        let is_unknown = |status| matches!(status, RecordStatus::Pending | RecordStatus::DnsError);
        let keys = || checks.iter().filter(|check| check.purpose == Purpose::Dkim).map(|check| check.status);
        // Mail cannot be signed without a verified key, even if no key is required.
        let has_key = keys().any(|status| status == RecordStatus::Verified);
        if has_key && required().all(|status| status == RecordStatus::Verified) {
            return Self::Verified;
        }
        let has_failing_keys = !has_key && keys().next().is_some() && !keys().any(is_unknown);
        let fails = required().any(|status| status != RecordStatus::Verified && !is_unknown(status));
        if fails || has_failing_keys { Self::Failing } else { Self::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(required: bool, status: RecordStatus) -> RecordCheck {
        RecordCheck {
            purpose: Purpose::Spf,
            record_type: RecordType::Txt,
            name: "example.com".to_owned(),
            value: String::new(),
            required,
            status,
            found: Vec::new(),
            hint: None,
        }
    }

    #[test]
    fn dns_failures_give_no_verdict_and_optional_records_do_not_count() {
        use RecordStatus::{DnsError, Mismatch, Missing, Multiple, Pending, Verified};
        let of = |statuses: &[RecordStatus]| {
            let mut checks: Vec<RecordCheck> = statuses.iter().map(|status| check(true, *status)).collect();
            checks.push(check(false, Missing));
            checks.push(RecordCheck { purpose: Purpose::Dkim, ..check(true, Verified) });
            Verdict::of(&checks)
        };
        assert_eq!(of(&[Verified, Verified]), Verdict::Verified);
        assert_eq!(of(&[Verified, DnsError]), Verdict::Unknown);
        assert_eq!(of(&[Pending, Verified]), Verdict::Unknown);
        for failing in [Missing, Mismatch, Multiple] {
            assert_eq!(of(&[failing, Verified]), Verdict::Failing);
            assert_eq!(of(&[failing, DnsError]), Verdict::Failing);
        }
    }

    #[test]
    fn a_domain_without_a_verified_key_is_not_verified() {
        use RecordStatus::{DnsError, Missing, Pending, Verified};
        let of = |keys: &[RecordStatus]| {
            let optional_key = |status| RecordCheck { purpose: Purpose::Dkim, ..check(false, status) };
            let mut checks: Vec<RecordCheck> = keys.iter().copied().map(optional_key).collect();
            checks.push(check(true, Verified));
            Verdict::of(&checks)
        };
        assert_eq!(of(&[Missing, Verified]), Verdict::Verified);
        assert_eq!(of(&[Missing]), Verdict::Failing);
        assert_eq!(of(&[Missing, DnsError]), Verdict::Unknown);
        assert_eq!(of(&[Pending]), Verdict::Unknown);
        assert_eq!(of(&[]), Verdict::Unknown);
    }

    #[test]
    fn a_check_serialises_with_the_documented_names() {
        let json = serde_json::to_value(check(true, RecordStatus::DnsError)).unwrap();
        let expected = serde_json::json!({
            "purpose": "spf", "type": "TXT", "name": "example.com", "value": "", "required": true,
            "status": "dns_error", "found": [], "hint": null,
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<RecordCheck>(json).unwrap(), check(true, RecordStatus::DnsError));
    }
}
