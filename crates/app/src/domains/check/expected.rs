//! The records that a domain, or the installation, should have.

use std::net::IpAddr;

use postroad_mail::dkim_txt;
use postroad_model::DomainName;

use super::record::{Purpose, RecordCheck, RecordStatus, RecordType};
use super::service::Service;

/// A public key to publish in the DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DkimRecord {
    pub selector: String,
    pub public_spki_der: Vec<u8>,
    /// Whether the domain counts as verified only with this record.
    pub required: bool,
}

/// The records to publish for one domain or the installation, and the facts by which they are judged.
#[derive(Debug, Clone)]
pub struct ExpectedRecords {
    pub(super) service: Service,
    pub(super) records: Vec<ExpectedRecord>,
}

#[derive(Debug, Clone)]
pub(super) struct ExpectedRecord {
    pub(super) purpose: Purpose,
    pub(super) record_type: RecordType,
    pub(super) name: String,
    /// The value to publish if there is no record yet. Empty if no helpful value is known.
    pub(super) value: String,
    pub(super) required: bool,
    pub(super) rule: Rule,
}

/// How the answers about a record are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// The SPF record of the name passes for all our addresses.
    Spf { domain: DomainName },
    /// Like `Spf`, for `spf.<host>`, which customers' records include. Suggests addresses, because that name cannot
    /// include itself.
    SpfByAddresses { domain: DomainName },
    /// The name publishes this key.
    DkimKey { domain: DomainName, public_spki_der: Vec<u8> },
    /// The domain has a DMARC policy: its own, or its organisational domain's.
    Dmarc { domain: DomainName },
    /// The name is an alias (CNAME) of `target`, one of our names.
    Alias { domain: DomainName, target: String },
    /// The name has at least one address.
    AnyAddress { domain: DomainName },
    /// The name has this address.
    Address { domain: DomainName, address: IpAddr },
    /// The address has a PTR name that resolves back to the address.
    Pointer { address: IpAddr, helo: DomainName },
    /// Mail for the name goes to the host.
    MailHost { host: DomainName },
    /// The name resolves to the host, or to a proxy in front of it.
    LeadsTo { target: DomainName },
    /// The TXT record at `queried_name` begins with `v=<version>` and has the tag `needed_tag`, if set.
    VersionedText {
        domain: DomainName,
        queried_name: String,
        version: &'static str,
        needed_tag: Option<&'static str>,
        missing_hint: String,
    },
}

impl ExpectedRecords {
    /// The records of a sending domain.
    pub fn of(domain: &DomainName, service: &Service, keys: &[DkimRecord]) -> Self {
        let mut records = vec![ExpectedRecord {
            purpose: Purpose::Spf,
            record_type: RecordType::Txt,
            name: domain.to_string(),
            value: spf_value(&service.spf_terms()),
            required: true,
            rule: Rule::Spf { domain: domain.clone() },
        }];
        records.extend(keys.iter().map(|key| dkim_record(domain, key)));
        records.push(ExpectedRecord {
            purpose: Purpose::Dmarc,
            record_type: RecordType::Txt,
            name: format!("_dmarc.{domain}"),
            value: dmarc_value(service),
            required: true,
            rule: Rule::Dmarc { domain: domain.clone() },
        });
        let alias = |purpose, label: &str, target: String| ExpectedRecord {
            purpose,
            record_type: RecordType::Cname,
            name: format!("{label}.{domain}"),
            value: target.clone(),
            required: false,
            rule: Rule::Alias { domain: domain.clone(), target },
        };
        records.push(alias(Purpose::ReturnPath, "rp", service.return_path_name()));
        records.push(alias(Purpose::Tracking, "track", service.tracking_name()));
        Self { service: service.clone(), records }
    }

    /// Keeps only the records whose purpose passes the test.
    pub fn retain_purposes(&mut self, mut is_kept: impl FnMut(Purpose) -> bool) {
        self.records.retain(|record| is_kept(record.purpose));
    }

    /// The records to publish, before anything was checked.
    pub fn pending(&self) -> Vec<RecordCheck> {
        self.records
            .iter()
            .map(|record| record.with_verdict(RecordStatus::Pending, Vec::new(), None))
            .collect()
    }
}

impl ExpectedRecord {
    /// The record with the verdict of a check, and the texts found in the DNS.
    pub(super) fn with_verdict(
        &self,
        status: RecordStatus,
        found: Vec<String>,
        hint: Option<String>,
    ) -> RecordCheck {
        RecordCheck {
            purpose: self.purpose,
            record_type: self.record_type,
            name: self.name.clone(),
            value: self.value.clone(),
            required: self.required,
            status,
            found,
            hint,
        }
    }
}

pub(super) fn dkim_record(domain: &DomainName, key: &DkimRecord) -> ExpectedRecord {
    ExpectedRecord {
        purpose: Purpose::Dkim,
        record_type: RecordType::Txt,
        name: format!("{}._domainkey.{domain}", key.selector),
        value: dkim_txt(&key.public_spki_der),
        required: key.required,
        rule: Rule::DkimKey { domain: domain.clone(), public_spki_der: key.public_spki_der.clone() },
    }
}

/// SPF record to suggest for a name without one. It ends in `~all`, so that the customer's other mail, which we do not
/// know, is not refused.
fn spf_value(terms: &[String]) -> String {
    new_spf_record(terms, "~all")
}

/// An SPF record of these terms and `end`. An empty text if there are no terms: a record of only `end` would get mail
/// refused.
pub(super) fn new_spf_record(terms: &[String], end: &str) -> String {
    if terms.is_empty() {
        return String::new();
    }
    let words = ["v=spf1"].into_iter().chain(terms.iter().map(String::as_str)).chain([end]);
    words.collect::<Vec<&str>>().join(" ")
}

pub(super) fn dmarc_value(service: &Service) -> String {
    match service.dmarc_reports_address() {
        Some(address) => format!("v=DMARC1; p=none; rua=mailto:{address}"),
        None => "v=DMARC1; p=none".to_owned(),
    }
}
