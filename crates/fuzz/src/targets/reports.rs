//! DMARC and TLS reports, plain, gzipped and zipped.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use postroad_mail::reports::{self, UnpackBudget};

use super::Target;

const DMARC: &str = "<?xml version=\"1.0\"?><feedback><report_metadata><org_name>a &amp; b</org_name><report_id>1</report_id>\
    <date_range><begin>1</begin><end>2</end></date_range></report_metadata><policy_published><domain>example.test</domain>\
    <p>none</p></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>2</count><policy_evaluated>\
    <disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row></record></feedback>";
const TLS: &str = "{\"organization-name\":\"a\",\"date-range\":{\"start-datetime\":\"2026-11-01T00:00:00Z\",\
    \"end-datetime\":\"2026-11-01T23:59:59Z\"},\"report-id\":\"7\",\"policies\":[{\"policy\":{\"policy-type\":\"sts\",\
    \"policy-domain\":\"example.test\"},\"summary\":{\"total-successful-session-count\":1,\"total-failure-session-count\":1},\
    \"failure-details\":[{\"result-type\":\"certificate-expired\",\"failed-session-count\":1}]}]}";

pub(super) const TARGET: Target = Target {
    name: "reports",
    run,
    seeds,
    frames: &[
        "{}",
        "<feedback>{}",
        "<feedback><record>{}",
        "<!DOCTYPE x [{}",
        "{\"report-id\":\"1\",\"policies\":[{}",
        "Content-Type: application/xml\r\n\r\n<feedback>{}",
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for text in [DMARC, TLS] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into a vector cannot fail.
        let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
        seeds.push(packed);
        seeds.push(text.as_bytes().to_vec());
        seeds.push(format!("Content-Type: application/octet-stream\r\n\r\n{text}").into_bytes());
    }
    seeds.push(
        b"PK\x03\x04\x14\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.xml<feedback>".to_vec(),
    );
    seeds
}

fn run(bytes: &[u8]) {
    for read in [reports::read, reports::read_attachment] {
        let mut budget = UnpackBudget::new(reports::unpacked_bytes_max(bytes.len()));
        let _ = read(bytes, &mut budget);
    }
}
