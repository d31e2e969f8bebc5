//! The DNS records of the installation itself, which its customers' records depend on.

use std::net::IpAddr;

use postroad_model::DomainName;

use super::expected::{
    DkimRecord, ExpectedRecord, ExpectedRecords, Rule, dkim_record, dmarc_value, new_spf_record,
};
use super::record::{Purpose, RecordType};
use super::reverse_name::reverse_name;
use super::service::Service;

/// Domain with which the permission for DMARC reports is tested. Any domain would do: the permission is a wildcard.
const REPORT_PERMISSION_PROBE: &str = "postroad-wildcard-check.example";

impl ExpectedRecords {
    /// The records of the host, of its source addresses, and of the names below the host.
    pub fn of_installation(service: &Service, keys: &[DkimRecord]) -> Self {
        let host = &service.host;
        let mut records = host_records(service);
        records.extend(service.sources.iter().map(|source| pointer_record(source.address, &source.helo)));
        records.extend(return_path_records(service));
        records.push(ExpectedRecord {
            purpose: Purpose::Spf,
            record_type: RecordType::Txt,
            name: service.spf_name(),
            value: spf_value(&service.spf_address_terms()),
            required: true,
            rule: Rule::SpfByAddresses { domain: host.clone() },
        });
        records.extend(keys.iter().map(|key| dkim_record(host, key)));
        records.push(ExpectedRecord {
            purpose: Purpose::Dmarc,
            record_type: RecordType::Txt,
            name: format!("_dmarc.{host}"),
            value: dmarc_value(service),
            required: true,
            rule: Rule::Dmarc { domain: host.clone() },
        });
        records.push(ExpectedRecord {
            purpose: Purpose::Tracking,
            record_type: RecordType::Cname,
            name: service.tracking_name(),
            value: host.to_string(),
            required: false,
            rule: Rule::LeadsTo { target: host.clone() },
        });
        records.extend(report_records(service));
        records.extend(mta_sts_records(service));
        Self { service: service.clone(), records }
    }
}

/// Addresses of the host and of the HELO names of source addresses.
fn host_records(service: &Service) -> Vec<ExpectedRecord> {
    let record = |name: &DomainName, address: IpAddr, rule: Rule| ExpectedRecord {
        purpose: Purpose::Host,
        record_type: if address.is_ipv4() { RecordType::A } else { RecordType::Aaaa },
        name: name.to_string(),
        value: address.to_string(),
        required: true,
        rule,
    };
    let mut records: Vec<ExpectedRecord> = Vec::new();
    let named_as_host = service.sources.iter().any(|source| source.helo == service.host);
    // No known source address greets as the host; clients only connect to it, so any address is right. The first
    // source address is a guess.
    if let Some(first) = service.sources.first().filter(|_| !named_as_host) {
        records.push(record(&service.host, first.address, Rule::AnyAddress { domain: service.host.clone() }));
    }
    for source in &service.sources {
        let rule = Rule::Address { domain: service.host.clone(), address: source.address };
        records.push(record(&source.helo, source.address, rule));
    }
    // Suggest no value: only the operator knows the public address of this source.
    for source in &service.private_sources {
        let rule = Rule::AnyAddress { domain: service.host.clone() };
        records.push(ExpectedRecord { value: String::new(), ..record(&source.helo, source.address, rule) });
    }
    records
}

fn pointer_record(address: IpAddr, helo: &DomainName) -> ExpectedRecord {
    ExpectedRecord {
        purpose: Purpose::ReverseDns,
        record_type: RecordType::Ptr,
        name: reverse_name(address),
        value: helo.to_string(),
        required: true,
        rule: Rule::Pointer { address, helo: helo.clone() },
    }
}

/// Records of the name at which bounces arrive and for which receivers check SPF. This name is the domain of every
/// return path, directly or through a customer's alias.
fn return_path_records(service: &Service) -> [ExpectedRecord; 2] {
    let host = &service.host;
    let mail_host = ExpectedRecord {
        purpose: Purpose::Bounces,
        record_type: RecordType::Mx,
        name: service.return_path_name(),
        value: format!("10 {host}"),
        required: true,
        rule: Rule::MailHost { host: host.clone() },
    };
    let spf = ExpectedRecord {
        purpose: Purpose::Spf,
        record_type: RecordType::Txt,
        name: service.return_path_name(),
        value: spf_value(&service.spf_terms()),
        required: true,
        rule: Rule::Spf { domain: host.clone() },
    };
    [mail_host, spf]
}

fn report_records(service: &Service) -> Vec<ExpectedRecord> {
    let Some(tls_reports) = service.tls_reports_address() else { return Vec::new() };
    let return_path = service.return_path_name();
    let permission = ExpectedRecord {
        purpose: Purpose::DmarcReports,
        record_type: RecordType::Txt,
        name: format!("*._report._dmarc.{return_path}"),
        value: "v=DMARC1".to_owned(),
        required: false,
        rule: Rule::VersionedText {
            domain: service.host.clone(),
            queried_name: format!("{REPORT_PERMISSION_PROBE}._report._dmarc.{return_path}"),
            version: "DMARC1",
            needed_tag: None,
            missing_hint: "Without it receivers send no DMARC reports about customers' domains here."
                .to_owned(),
        },
    };
    let name = format!("_smtp._tls.{return_path}");
    let tls_rpt = ExpectedRecord {
        purpose: Purpose::TlsReports,
        record_type: RecordType::Txt,
        name: name.clone(),
        value: format!("v=TLSRPTv1; rua=mailto:{tls_reports}"),
        required: false,
        rule: Rule::VersionedText {
            domain: service.host.clone(),
            queried_name: name,
            version: "TLSRPTv1",
            needed_tag: Some("rua"),
            missing_hint: "Without it nobody reports when TLS to the bounce host fails.".to_owned(),
        },
    };
    vec![permission, tls_rpt]
}

/// Records that announce the MTA-STS policy (RFC 8461), a file that the HTTPS listener serves.
fn mta_sts_records(service: &Service) -> [ExpectedRecord; 2] {
    let (host, return_path) = (&service.host, service.return_path_name());
    let name = format!("_mta-sts.{return_path}");
    let policy = ExpectedRecord {
        purpose: Purpose::MtaSts,
        record_type: RecordType::Txt,
        name: name.clone(),
        value: "v=STSv1; id=1".to_owned(),
        required: false,
        rule: Rule::VersionedText {
            domain: host.clone(),
            queried_name: name,
            version: "STSv1",
            needed_tag: Some("id"),
            missing_hint: format!(
                "It asks senders of bounces for TLS. First make sure that https://mta-sts.{return_path}/.well-known/mta-sts.txt \
                 answers: the HTTPS listener serves it, and its certificate has to name mta-sts.{return_path} and {host}."
            ),
        },
    };
    let web_host = ExpectedRecord {
        purpose: Purpose::MtaSts,
        record_type: RecordType::Cname,
        name: format!("mta-sts.{return_path}"),
        value: host.to_string(),
        required: false,
        rule: Rule::LeadsTo { target: host.clone() },
    };
    [policy, web_host]
}

/// SPF record of the installation's own names, which send only our mail.
fn spf_value(terms: &[String]) -> String {
    new_spf_record(terms, "-all")
}
