//! Reports of receivers about a domain: DMARC and TLS reports that come to the bounce listener.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::{SmtpClient, eventually};
use serde_json::json;

use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn reports_of_receivers_are_shown_by_source() {
    let service = DevService::start();
    service.send(json!({})).await;
    mail_reports(&service).await;
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/reports?domain=example.test&days=7"));
    browser.open(&page).await;
    // Reports are processed shortly after they are accepted.
    browser.reload_until_text("192.0.2.1").await;
    browser.reload_until_text("certificate-expired").await;
    let text = browser.page_text().await;
    assert!(text.contains("83.33 %") && text.contains("100.00 %"), "{text}");
    assert!(text.contains("The certificate of the MX host has expired"), "{text}");
    browser.screenshot(&pictures().join("reports-filled.png")).await;
    // The operator sees what came to the bounce listener.
    browser.open(&service.url_of("/operator/doctor")).await;
    browser.until_text("Since it started, this node took 2 mails, refused 0").await;
}

/// Mails a DMARC report and a TLS report about `example.test`, which has sent a message.
pub(crate) async fn mail_reports(service: &DevService) {
    let host = return_path_host(service).await;
    mail_report(service, &format!("dmarc-reports@{host}"), dmarc_report().as_bytes()).await;
    mail_report(service, &format!("tls-reports@{host}"), tls_report().as_bytes()).await;
}

async fn return_path_host(service: &DevService) -> String {
    eventually(async || {
        let caught = service.client.get("/dev/messages").await.unwrap().json();
        let path = caught["messages"][0]["mail_from"].as_str();
        let host = path.map(|path| path.split_once('@').unwrap().1.to_owned());
        host.ok_or_else(|| format!("no message was caught: {caught}"))
    })
    .await
}

fn dmarc_report() -> String {
    let now = SystemClock.now().as_secs();
    let row = |address: &str, count: u32, verdict: &str| {
        format!(
            "<record><row><source_ip>{address}</source_ip><count>{count}</count><policy_evaluated>\
             <disposition>none</disposition><dkim>{verdict}</dkim><spf>fail</spf></policy_evaluated></row></record>"
        )
    };
    format!(
        "<feedback><report_metadata><org_name>isp.example</org_name><report_id>1</report_id><date_range>\
         <begin>{}</begin><end>{}</end></date_range></report_metadata>\
         <policy_published><domain>example.test</domain><p>none</p></policy_published>{}{}</feedback>",
        now - 90_000,
        now - 3_600,
        row("192.0.2.1", 10, "pass"),
        row("198.51.100.7", 2, "fail"),
    )
}

fn tls_report() -> String {
    let now = SystemClock.now();
    let day = Duration::from_hours(24);
    json!({
        "organization-name": "isp.example",
        "date-range": { "start-datetime": now.minus(day).to_rfc3339(), "end-datetime": now.to_rfc3339() },
        "report-id": "7",
        "policies": [{
            "policy": { "policy-type": "sts", "policy-domain": "example.test" },
            "summary": { "total-successful-session-count": 100, "total-failure-session-count": 4 },
            "failure-details": [{ "result-type": "certificate-expired", "failed-session-count": 4 }],
        }],
    })
    .to_string()
}

/// Mails a report to the installation, gzipped as receivers send it.
async fn mail_report(service: &DevService, to: &str, file: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(file).unwrap();
    let packed = BASE64_STANDARD.encode(encoder.finish().unwrap());
    let lines: Vec<&str> =
        packed.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let message = format!(
        "From: reports@isp.example\r\nSubject: Report\r\nContent-Type: application/gzip; name=report.gz\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{}\r\n.",
        lines.join("\r\n")
    );
    let mut client = SmtpClient::connect(service.bounce_address()).await;
    for line in ["MAIL FROM:<>", &format!("RCPT TO:<{to}>"), "DATA", &message] {
        let reply = client.say(line).await;
        assert!(reply.starts_with('2') || reply.starts_with('3'), "{line}: {reply}");
    }
}
