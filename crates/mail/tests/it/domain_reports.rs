//! DMARC and TLS reports as receivers send them, and reports that are refused.

use std::io::Write;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use postroad_mail::reports::{
    self, DmarcSender, DmarcSource, DmarcSummary, DomainReport, ReportProblem, TlsSummary,
    UNPACKED_BYTES_MAX, UnpackBudget,
};
use postroad_model::Timestamp;
use proptest::prelude::*;

const DMARC: &str = r#"<?xml version="1.0" encoding="UTF-8" ?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
  <report_metadata><org_name>isp.example &amp; sons</org_name><email>x@isp.example</email><report_id>42</report_id>
    <date_range><begin>1762300800</begin><end>1762387199</end></date_range></report_metadata>
  <policy_published><domain>Sender.example</domain><adkim>r</adkim><p>reject</p><pct>100</pct></policy_published>
  <record><row><source_ip>192.0.2.1</source_ip><count>10</count>
    <policy_evaluated><disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row>
    <identifiers><header_from>sender.example</header_from></identifiers>
    <auth_results><dkim><domain>sender.example</domain><result>pass</result></dkim></auth_results></record>
  <record><row><source_ip>2001:db8::1</source_ip><count>3</count>
    <policy_evaluated><disposition>reject</disposition><dkim>fail</dkim><spf>fail</spf></policy_evaluated></row>
    <identifiers><header_from>News.Sender.example</header_from></identifiers></record>
  <record><row><source_ip>192.0.2.1</source_ip><count>1</count>
    <policy_evaluated><disposition>quarantine</disposition><dkim>fail</dkim><spf>fail</spf></policy_evaluated></row></record>
</feedback>"#;

const TLS: &str = r#"{"organization-name":"isp.example","date-range":{"start-datetime":"2026-11-01T00:00:00Z","end-datetime":"2026-11-01T23:59:59Z"},
 "contact-info":"tls@isp.example","report-id":"7","policies":[{"policy":{"policy-type":"sts","policy-string":["version: STSv1"],"policy-domain":"sender.example"},
 "summary":{"total-successful-session-count":100,"total-failure-session-count":4},
 "failure-details":[{"result-type":"certificate-expired","failed-session-count":1},{"result-type":"starttls-not-supported","failed-session-count":2},
 {"result-type":"certificate-expired","failed-session-count":1}]}]}"#;

fn read(message: &[u8]) -> Result<Option<DomainReport>, ReportProblem> {
    reports::read(message, &mut UnpackBudget::default())
}

fn read_attachment(file: &[u8]) -> Result<Option<DomainReport>, ReportProblem> {
    reports::read_attachment(file, &mut UnpackBudget::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive of one file, written as a stream: no sizes before the content.
fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let name_bytes = u16::try_from(name.len()).unwrap().to_le_bytes();
    let packed_bytes = u32::try_from(packed.len()).unwrap().to_le_bytes();
    let mut archive = Vec::new();
    archive.extend(b"PK\x03\x04\x14\0\x08\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    archive.extend(name_bytes);
    archive.extend([0, 0]);
    archive.extend(name.as_bytes());
    archive.extend(&packed);
    let directory = u32::try_from(archive.len()).unwrap().to_le_bytes();
    archive.extend(b"PK\x01\x02\x14\0\x14\0\x08\0\x08\0\0\0\0\0\0\0\0\0");
    archive.extend(packed_bytes);
    archive.extend([0; 4]);
    archive.extend(name_bytes);
    archive.extend([0; 16]);
    archive.extend(name.as_bytes());
    archive.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\0\0\0\0");
    archive.extend(directory);
    archive.extend([0, 0]);
    archive
}

fn mail(content_type: &str, file: &[u8]) -> Vec<u8> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(file);
    format!(
        "From: dmarc@isp.example\r\nSubject: Report Domain: sender.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nThis is a report.\r\n--b\r\nContent-Type: {content_type}\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{encoded}\r\n--b--\r\n"
    )
    .into_bytes()
}

#[track_caller]
fn dmarc(found: Result<Option<DomainReport>, ReportProblem>) -> DmarcSummary {
    match found {
        Ok(Some(DomainReport::Dmarc(summary))) => summary,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn tls(found: Result<Option<DomainReport>, ReportProblem>) -> TlsSummary {
    match found {
        Ok(Some(DomainReport::Tls(summary))) => summary,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_dmarc_report_is_summed_up() {
    let summary = dmarc(read(&mail("application/gzip", &gzip(DMARC.as_bytes()))));
    let source = |address: &str, messages, dkim_passed, failed| DmarcSource {
        address: address.parse().unwrap(),
        messages,
        dkim_passed,
        spf_passed: 0,
        failed,
    };
    let expected = DmarcSummary {
        organisation: "isp.example & sons".to_owned(),
        report_id: "42".to_owned(),
        domain: "sender.example".to_owned(),
        begin: Timestamp::from_micros(1_762_300_800_000_000),
        end: Timestamp::from_micros(1_762_387_199_000_000),
        policy: "reject".to_owned(),
        senders: vec![
            DmarcSender {
                header_from: String::new(),
                messages: 1,
                passed: 0,
                quarantined: 1,
                rejected: 0,
                sources: vec![source("192.0.2.1", 1, 0, 1)],
            },
            DmarcSender {
                header_from: "news.sender.example".to_owned(),
                messages: 3,
                passed: 0,
                quarantined: 0,
                rejected: 3,
                sources: vec![source("2001:db8::1", 3, 0, 3)],
            },
            DmarcSender {
                header_from: "sender.example".to_owned(),
                messages: 10,
                passed: 10,
                quarantined: 0,
                rejected: 0,
                sources: vec![source("192.0.2.1", 10, 10, 0)],
            },
        ],
    };
    assert_eq!(summary, expected);
}

#[test]
fn the_compression_is_detected_from_the_bytes() {
    let expected = dmarc(read_attachment(DMARC.as_bytes()));
    for file in [zip("isp.example!sender.example!1!2.xml", DMARC.as_bytes()), gzip(DMARC.as_bytes())] {
        for content_type in ["application/zip", "application/octet-stream", "application/x-gzip"] {
            assert_eq!(dmarc(read(&mail(content_type, &file))), expected);
        }
    }
}

#[test]
fn a_tls_report_is_summed_up() {
    for file in [gzip(TLS.as_bytes()), TLS.as_bytes().to_vec()] {
        let summary = tls(read(&mail("application/tlsrpt+gzip", &file)));
        assert_eq!((summary.organisation.as_str(), summary.report_id.as_str()), ("isp.example", "7"));
        assert_eq!(summary.begin.to_rfc3339(), "2026-11-01T00:00:00Z");
        let policy = &summary.policies[0];
        assert_eq!((policy.domain.as_str(), policy.kind.as_str()), ("sender.example", "sts"));
        assert_eq!((policy.successes, policy.failures), (100, 4));
        let types = [("certificate-expired".to_owned(), 2), ("starttls-not-supported".to_owned(), 2)];
        assert_eq!(policy.failure_types, types);
    }
}

/// The beginning of a report, about this many bytes long, without the closing tag. It compresses badly, so that its
/// gzip file stays below the maximum ratio.
fn unclosed_report(bytes: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let element = || format!("<a>{:06x}{:06x}{:06x}</a>", next(), next(), next());
    let elements: String = std::iter::repeat_with(element).take(bytes / 25 + 1).collect();
    format!("<feedback>{elements}").into_bytes()
}

#[test]
fn bombs_are_refused_by_ratio_and_by_size() {
    let spaces = [&b"<feedback>"[..], &b"<a> </a>".repeat(1 << 20)].concat();
    assert_eq!(read_attachment(&gzip(&spaces)), Err(ReportProblem::Bomb));
    assert_eq!(read_attachment(&zip("a.xml", &spaces)), Err(ReportProblem::Bomb));
    let long = unclosed_report(20 << 20);
    assert_eq!(read_attachment(&gzip(&long)), Err(ReportProblem::TooLarge));
    assert_eq!(read_attachment(&long), Err(ReportProblem::TooLarge));
    let json = format!("{{\"policies\": [{}", " ".repeat(3 << 20));
    assert_eq!(read_attachment(json.as_bytes()), Err(ReportProblem::TooLarge));
}

#[test]
fn all_attachments_of_a_message_share_one_budget() {
    // No attachment turns out to be a report, so all are read.
    let part = |file: &[u8]| {
        let packed = base64::engine::general_purpose::STANDARD.encode(gzip(file));
        format!(
            "--b\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n{packed}\r\n"
        )
    };
    let other = [&b"{\"a\": \""[..], &unclosed_report(1 << 20), b"\"}"].concat();
    let message =
        format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}--b--\r\n", part(&other).repeat(10));
    let mut budget = UnpackBudget::new(5 << 20);
    assert_eq!(reports::read(message.as_bytes(), &mut budget), Err(ReportProblem::TooLarge));
    assert_eq!(budget.bytes_left(), 0);
    let mut budget = UnpackBudget::default();
    assert_eq!(reports::read(message.as_bytes(), &mut budget), Ok(None));
    assert_eq!(
        UNPACKED_BYTES_MAX - budget.bytes_left(),
        10 * other.len(),
        "the bytes that were read are charged"
    );
}

#[test]
fn a_tag_text_or_comment_over_64_kib_is_refused() {
    for start in ["<feedback><a>", "<feedback><!--", "<feedback><a ", "<feedback><![CDATA[", "<!DOCTYPE x ["]
    {
        let mut file = start.as_bytes().to_vec();
        file.extend(b"x".repeat(70 << 10));
        let problem = read_attachment(&file).unwrap_err();
        assert!(problem.to_string().contains("too long"), "{start}: {problem}");
    }
}

#[test]
fn sources_beyond_the_limit_are_counted_in_the_totals() {
    let record = |number: u32| {
        let address = std::net::Ipv4Addr::from_bits(number);
        format!("<record><row><source_ip>{address}</source_ip><count>1</count></row></record>")
    };
    let records: String = (0..12_000).map(record).collect();
    let (start, _) = DMARC.split_once("<record>").unwrap();
    let summary = dmarc(read_attachment(format!("{start}{records}</feedback>").as_bytes()));
    let sender = &summary.senders[0];
    assert_eq!((summary.senders.len(), sender.messages, sender.sources.len()), (1, 12_000, 200));
}

#[test]
fn entities_that_a_document_defines_are_never_expanded() {
    let laughs = DMARC.replace(
        "<feedback ",
        "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><feedback ",
    );
    let laughs = laughs.replace("<report_id>42", "<report_id>42&b;");
    assert_eq!(dmarc(read_attachment(laughs.as_bytes())).report_id, "42");
}

#[test]
fn damage_is_named_and_other_files_yield_no_report() {
    for (file, reason) in [
        (DMARC.replace("</feedback>", "").into_bytes(), "breaks off"),
        (DMARC.replace(">42<", "><").into_bytes(), "no id"),
        (DMARC.replace(">10<", ">ten<").into_bytes(), "a number"),
        (format!("<feedback>{}", "<a>".repeat(100)).into_bytes(), "too deep"),
        (TLS.replace("2026-11-01T00:00:00Z", "yesterday").into_bytes(), "a time"),
        (TLS.replace("\"summary\"", "\"sum\"").into_bytes(), "not a TLS report"),
        (gzip(DMARC.as_bytes())[..200].to_vec(), "compressed data"),
        (zip("a.xml", DMARC.as_bytes())[..300].to_vec(), "directory"),
    ] {
        let problem = read_attachment(&file).unwrap_err();
        assert!(problem.to_string().contains(reason), "{problem}");
    }
    for file in [&b"<html></html>"[..], b"{\"a\":1}", b"%PDF-1.7", b"", &zip("virus.exe", b"MZ"), b"<"] {
        assert!(matches!(read_attachment(file), Ok(None) | Err(ReportProblem::Damaged(_))), "{file:?}");
    }
    assert_eq!(read(b"Subject: hi\r\n\r\nhello"), Ok(None));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let _ = read_attachment(&bytes);
        let _ = read_attachment(&[b"PK\x03\x04", &bytes[..]].concat());
        let _ = read_attachment(&[&[0x1f, 0x8b, 8, 0], &bytes[..]].concat());
        let _ = read_attachment(&[b"<feedback>", &bytes[..]].concat());
    }

    #[test]
    fn an_archive_with_one_byte_changed_is_read_or_refused(at in 0_usize..10_000, to in any::<u8>()) {
        let mut archive = zip("a.xml", DMARC.as_bytes());
        let at = at % archive.len();
        archive[at] = to;
        let _ = read_attachment(&archive);
    }
}

#[test]
fn sums_keep_the_sources_with_the_most_failures() {
    let sender = |first: u32, failed: u64| DmarcSender {
        header_from: "sender.example".to_owned(),
        messages: 200,
        passed: 0,
        quarantined: 0,
        rejected: 0,
        sources: (first..first + 200)
            .map(|host| DmarcSource {
                address: std::net::Ipv4Addr::from(host).into(),
                messages: failed + 1,
                dkim_passed: 0,
                spf_passed: 0,
                failed,
            })
            .collect(),
    };
    let mut sum = sender(0, 1);
    sum.add(sender(100, 5));
    assert_eq!((sum.messages, sum.sources.len()), (400, 200));
    // The hosts of both reports, then those of the second only.
    let failed: Vec<u64> = sum.sources.iter().map(|source| source.failed).collect();
    assert_eq!(failed, [[6; 100], [5; 100]].concat());
}
