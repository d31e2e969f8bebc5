//! DMARC and TLS reports about domains are summarised for the operator; decompression bombs are refused.

use std::io::Write;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use postroad_testkit::SmtpClient;
use serde_json::{Value, json};

use super::{bounce_listener, mail_back};
use crate::terminal::{ESCAPES, admin_text, assert_harmless};
use crate::world::{Engine, World, both_engines};

const OK: &str = "250 2.0.0 OK";

fn dmarc_report(domain: &str, id: u32, passed: u32, failed: u32) -> String {
    let row = |address: &str, count: u32, verdict: &str| {
        format!(
            "<record><row><source_ip>{address}</source_ip><count>{count}</count><policy_evaluated>\
             <disposition>none</disposition><dkim>{verdict}</dkim><spf>fail</spf></policy_evaluated></row></record>"
        )
    };
    format!(
        "<feedback><report_metadata><org_name>isp.example</org_name><report_id>{id}</report_id><date_range>\
         <begin>1762300800</begin><end>1762387199</end></date_range></report_metadata>\
         <policy_published><domain>{domain}</domain><p>none</p></policy_published>{}{}</feedback>",
        row("192.0.2.1", passed, "pass"),
        row("198.51.100.7", failed, "fail"),
    )
}

fn tls_report(domain: &str) -> String {
    json!({
        "organization-name": "isp.example",
        "date-range": {"start-datetime": "2026-11-01T00:00:00Z", "end-datetime": "2026-11-01T23:59:59Z"},
        "report-id": "7",
        "policies": [{
            "policy": {"policy-type": "sts", "policy-domain": domain},
            "summary": {"total-successful-session-count": 100, "total-failure-session-count": 4},
            "failure-details": [{"result-type": "certificate-expired", "failed-session-count": 4}],
        }],
    })
    .to_string()
}

/// A mail with the report, gzipped as receivers send it.
fn mail_with_report(file: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(file).unwrap();
    let base64_text = BASE64_STANDARD.encode(encoder.finish().unwrap());
    let lines: Vec<&str> =
        base64_text.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!(
        "From: reports@isp.example\r\nSubject: Report\r\nContent-Type: application/gzip; name=report.gz\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        lines.join("\r\n")
    )
}

/// An address at the host of the service's return paths.
async fn report_address(world: &World, local_part: &str) -> String {
    let sent = super::send_and_catch(world, "someone@example.com").await;
    format!("{local_part}@{}", sent.return_path.split_once('@').unwrap().1)
}

both_engines!(
    reports_about_a_verified_domain_are_summed_up_for_its_server,
    reports_about_a_subdomain_are_counted_for_the_subdomain,
    reports_are_summed_up_by_domain,
    the_policies_of_a_domain_in_a_tls_report_are_added_up,
    a_report_cannot_send_escapes_to_the_terminal,
    decompression_bombs_and_reports_about_foreign_domains_are_refused
);

async fn reports_about_a_verified_domain_are_summed_up_for_its_server(world: World) {
    let to = report_address(&world, "dmarc-reports").await;
    for text in [
        dmarc_report("example.test", 1, 10, 2),
        dmarc_report("example.test", 2, 5, 0),
        dmarc_report("other.example", 3, 7, 7),
    ] {
        mail_back(&world, &to, &mail_with_report(text.as_bytes())).await;
    }
    let tls_to = to.replace("dmarc", "tls");
    assert_eq!(
        mail_back(&world, &tls_to, &mail_with_report(tls_report("example.test").as_bytes())).await,
        OK
    );
    let all = json!({"name": "example.test", "from": "2025-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"});
    let reports = world.domains("reports", &all).await;
    let row = |address: &str, messages: u64, dkim_passed: u64, failed: u64| json!({"address": address, "messages": messages, "dkim_passed": dkim_passed, "spf_passed": 0, "failed": failed});
    assert_eq!(
        reports["dmarc"],
        json!({
            "reports": 2, "messages": 17, "passed": 15, "failed": 2, "quarantined": 0, "rejected": 0,
            "sources": [row("192.0.2.1", 15, 15, 0), row("198.51.100.7", 2, 0, 2)], "sources_left_out": 0,
        })
    );
    assert_eq!(
        reports["tls"],
        json!({
            "reports": 1, "sessions": 104, "successful": 100, "failed": 4, "failures": {"certificate-expired": 4},
        })
    );
    let shown = world.admin(&["domain", "reports", "example.test", "--from", "2025-11-01T00:00:00Z"]);
    assert_eq!((&shown["dmarc"]["messages"], &shown["tls"]["sessions"]), (&json!(17), &json!(104)));
    let before =
        json!({"name": "example.test", "from": "2024-11-01T00:00:00Z", "to": "2025-01-01T00:00:00Z"});
    assert_eq!(world.domains("reports", &before).await["dmarc"]["reports"], 0);

    world.domains("create", &json!({"name": "other.example"})).await;
    let refused = world.refused_domains("reports", &json!({"name": "other.example"})).await;
    assert_eq!(refused, "DomainNotVerified", "anybody can add a domain");
    assert_eq!(world.refused_domains("reports", &json!({"name": "unknown.example"})).await, "DomainNotFound");
    let wrong = json!({"name": "example.test", "from": "yesterday"});
    assert_eq!(world.refused_domains("reports", &wrong).await, "ValidationError");
    let zone = world.domains("zone", &json!({"name": "other.example"})).await;
    assert!(
        zone["zone"].as_str().unwrap().contains("._domainkey.other.example. 3600 IN TXT \"v=DKIM1"),
        "{zone}"
    );
}

// Receivers judge by the policy of the organisational domain and name the domain that the mail came from.
async fn reports_about_a_subdomain_are_counted_for_the_subdomain(world: World) {
    let to = report_address(&world, "dmarc-reports").await;
    world.domains("create", &json!({"name": "news.shop.example"})).await;
    world.admin(&["domain", "set-verified", "news.shop.example", "--server", "dev"]);
    let header_from =
        |name: &str| format!("</row><identifiers><header_from>{name}</header_from></identifiers></record>");
    let text = dmarc_report("shop.example", 1, 10, 2).replacen(
        "</row></record>",
        &header_from("News.shop.example"),
        1,
    );
    let text = text.replacen("</row></record>", &header_from("stranger.example"), 1);
    assert_eq!(mail_back(&world, &to, &mail_with_report(text.as_bytes())).await, OK);
    let all =
        json!({"name": "news.shop.example", "from": "2025-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z"});
    let reports = world.domains("reports", &all).await;
    assert_eq!((&reports["dmarc"]["messages"], &reports["dmarc"]["passed"]), (&json!(10), &json!(10)));
    // Made-up names below our own host are not domains of ours.
    let own_host = to.split_once('@').unwrap().1;
    let made_up = mail_with_report(tls_report(&format!("x1.{own_host}")).as_bytes());
    assert!(mail_back(&world, &to.replace("dmarc", "tls"), &made_up).await.starts_with("550 5.7.1 "));
    let known: Vec<String> =
        world.admin(&["reports"]).as_array().unwrap().iter().map(|sum| sum["domain"].to_string()).collect();
    assert_eq!(known, ["\"news.shop.example\""]);
}

async fn reports_are_summed_up_by_domain(world: World) {
    let to = report_address(&world, "DMARC-Reports").await;
    for text in [
        dmarc_report("example.test", 1, 10, 2),
        dmarc_report("example.test", 2, 5, 0),
        dmarc_report("example.test", 1, 10, 2),
    ] {
        assert_eq!(mail_back(&world, &to, &mail_with_report(text.as_bytes())).await, OK);
    }
    let own_host = to.split_once('@').unwrap().1;
    assert_eq!(
        mail_back(&world, &to.replace("DMARC", "tls"), &mail_with_report(tls_report(own_host).as_bytes()))
            .await,
        OK
    );
    let sums = world.admin(&["reports"]);
    let sum_of =
        |domain: &str| sums.as_array().unwrap().iter().find(|sum| sum["domain"] == domain).unwrap().clone();
    let sum = sum_of("example.test");
    assert_eq!((&sum["kind"], &sum["reports"]), (&json!("dmarc"), &json!(2)));
    assert_eq!((&sum["messages"], &sum["passed"], &sum["failed"]), (&json!(17), &json!(15), &json!(2)));
    let sum = sum_of(own_host);
    assert_eq!((&sum["kind"], &sum["sessions"], &sum["failed"]), (&json!("tls"), &json!(104), &json!(4)));
    let shown = world.admin(&["reports", "--domain", "Example.test"]);
    assert_eq!(shown["reports"].as_array().unwrap().len(), 2);
    assert_eq!(shown["summaries"].as_array().unwrap().len(), 1);
    let first =
        shown["reports"].as_array().unwrap().iter().find(|report| report["report_id"] == "1").unwrap();
    assert_eq!(
        first["details"]["sources"][0],
        json!({
            "address": "198.51.100.7", "messages": 2, "dkim_passed": 0, "spf_passed": 0, "failed": 2,
        })
    );
}

async fn the_policies_of_a_domain_in_a_tls_report_are_added_up(world: World) {
    let to = report_address(&world, "tls-reports").await;
    let mut two: Value = serde_json::from_str(&tls_report("example.test")).unwrap();
    let policies = two["policies"].as_array_mut().unwrap();
    policies.push(policies[0].clone());
    policies[1]["policy"]["policy-type"] = json!("tlsa");
    assert_eq!(mail_back(&world, &to, &mail_with_report(two.to_string().as_bytes())).await, OK);
    let listed = world.admin(&["reports", "--domain", "example.test"]);
    let reports = listed["reports"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(reports.len(), 1, "{listed}");
    assert_eq!((&reports[0]["sessions"], &reports[0]["failed"]), (&json!(208), &json!(8)), "{listed}");
    let details = json!({"policy": "sts, tlsa", "failures": {"certificate-expired": 8}});
    assert_eq!(reports[0]["details"], details);
}

async fn a_report_cannot_send_escapes_to_the_terminal(world: World) {
    let to = report_address(&world, "dmarc-reports").await;
    let organisation = format!("<org_name>isp {ESCAPES}</org_name>");
    let text =
        dmarc_report("example.test", 1, 10, 2).replace("<org_name>isp.example</org_name>", &organisation);
    assert_eq!(mail_back(&world, &to, &mail_with_report(text.as_bytes())).await, OK);
    let shown = admin_text(&world, &["reports", "--domain", "example.test"]);
    assert!(shown.contains("isp ") && shown.contains(r"\u202e"), "{shown:?}");
    assert_harmless(&shown);
}

async fn decompression_bombs_and_reports_about_foreign_domains_are_refused(world: World) {
    let to = report_address(&world, "dmarc-reports").await;
    let bomb = [&b"<feedback>"[..], &b"<a> </a>".repeat(1 << 20)].concat();
    assert_eq!(mail_back(&world, &to, &mail_with_report(&bomb)).await, "554 5.6.0 The report cannot be read");
    let damaged = mail_with_report(b"<feedback><report_metadata>");
    assert_eq!(mail_back(&world, &to, &damaged).await, "554 5.6.0 The report cannot be read");
    let letter = "From: a@example.net\r\nSubject: Hello\r\n\r\nBuy this.\r\n";
    assert_eq!(mail_back(&world, &to, letter).await, "554 5.6.0 The mail contains no report");
    let foreign = mail_with_report(dmarc_report("example.net", 1, 1, 1).as_bytes());
    assert!(mail_back(&world, &to, &foreign).await.starts_with("550 5.7.1 "));
    assert_eq!(world.admin(&["reports"]), json!([]));
}

/// A report of about `bytes` bytes without an end. Its rows differ, so that its compression ratio is not refused.
fn long_report(bytes: usize) -> String {
    let mut number = 1_u64;
    let row = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("<other><row><count>1</count><a>{:010x}</a></row></other>", number >> 24)
    };
    let rows: String = std::iter::repeat_with(row).take(bytes / 60 + 1).collect();
    format!("<feedback>{rows}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_of_twenty_mebibytes_is_refused_by_size() {
    let world = World::start(Engine::Sqlite);
    let to = report_address(&world, "dmarc-reports").await;
    let reply = mail_back(&world, &to, &mail_with_report(long_report(20 << 20).as_bytes())).await;
    assert_eq!(reply, "552 5.3.4 The report is too large");
}

/// Unpacking the 8 MB for each of the ten recipients would exceed the 64 MB that are unpacked for one network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_to_many_recipients_is_read_once() {
    let world = World::start(Engine::Sqlite);
    let dmarc_reports = report_address(&world, "dmarc-reports").await;
    let tls_reports = dmarc_reports.replace("dmarc", "tls");
    let rows = long_report(8 << 20).replace("<feedback>", "");
    let text = dmarc_report("example.test", 1, 10, 2).replace("</feedback>", &format!("{rows}</feedback>"));
    let to = [[dmarc_reports.as_str(); 5], [tls_reports.as_str(); 5]].concat();
    let mut client = SmtpClient::connect(bounce_listener(&world)).await;
    assert_eq!(client.deliver("", &to, &mail_with_report(text.as_bytes())).await, OK);
    assert_eq!(world.admin(&["reports"])[0]["reports"], 1);
}

/// Thirty of these reports once took 3.8 GB of memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_reports_of_strangers_cost_little_memory_and_are_read_in_turn() {
    let world = World::start(Engine::Sqlite);
    let to = report_address(&world, "dmarc-reports").await;
    let large = mail_with_report(long_report(8 << 20).as_bytes());
    let before = peak_memory_kb(&world);
    let sessions = (0..30).map(|_| mail_back(&world, &to, &large));
    let replies = futures_util::future::join_all(sessions).await;
    for reply in &replies {
        // Damaged, because the report has no end; or refused for now, because the network's budget is used up.
        assert!(reply.starts_with("554 5.6.0 ") || reply.starts_with("451 4.3.2 "), "{reply}");
    }
    assert!(replies.iter().any(|reply| reply.starts_with("451 ")), "the budget is used up: {replies:?}");
    let grown_mb = (peak_memory_kb(&world) - before) / 1024;
    assert!(grown_mb < 150, "it took {grown_mb} MB more");
    let reply =
        mail_back(&world, &to, &mail_with_report(dmarc_report("example.test", 9, 1, 1).as_bytes())).await;
    assert!(reply == OK || reply.starts_with("451 "), "{reply}");
}

/// Peak memory of the service.
fn peak_memory_kb(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux reports the peak");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
