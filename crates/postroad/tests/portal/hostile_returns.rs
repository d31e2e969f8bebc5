//! Scripts in content from outside never run: bounces, complaints, reports of receivers, opens, clicks and DNS records.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::{Bytes, Method};
use postroad_testkit::{DnsServer, SmtpClient, eventually};
use serde_json::{Value, json};

use crate::hostile_texts::{PAYLOADS, check_nothing_ran, check_texts_shown, only_ascii, open_details};
use crate::roles::call;
use crate::service::{DevService, server_of};

#[tokio::test]
async fn bounces_complaints_opens_and_clicks_run_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let mut returned = Vec::new();
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let (text, to) = (only_ascii(payload), format!("u{number}@example.net"));
        let html = "<a href=\"https://shop.example/\">x</a>";
        let track = json!({ "opens": true, "clicks": true });
        let id = service.send(json!({ "to": [to], "html_body": html, "track": track })).await;
        service.until_status(id, "Sent").await;
        let caught = wait_for_caught_mail(&service, &to).await;
        let raw = service.client.get(&format!("/dev/messages/{}/raw", caught["id"])).await.unwrap();
        let view = postroad_mail::view(&raw.body).html_body.unwrap();
        for kind in ["/c/", "/o/"] {
            let token = view.split_once(kind).unwrap().1;
            let token =
                token.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').next().unwrap();
            let agent = [("user-agent", text.as_str())];
            let path = format!("{kind}{token}");
            service.client.request(Method::GET, &path, &agent, Bytes::new()).await.unwrap();
        }
        let return_path = caught["mail_from"].as_str().unwrap();
        let mut bounces = SmtpClient::connect(service.bounce_address()).await;
        for mail in [complaint_mail(&to, &text), bounce_mail(&to, &text)] {
            let reply = bounces.deliver("", &[return_path], &mail).await;
            assert!(reply.starts_with("250"), "{reply}");
        }
        let page = format!("/servers/{server}/messages/{id}");
        for kind in ["message.opened", "message.clicked", "message.complained"] {
            until_event(&service, id, kind).await;
        }
        let bounced = until_event(&service, id, "message.bounced").await;
        returned.push(bounce_id(&bounced).expect("the event names the mail that came back"));
        browser.open(&service.url_of(&page)).await;
        browser.until("#message").await;
        open_details(&browser).await;
        check_nothing_ran(&browser, &format!("{payload} in the timeline")).await;
        check_texts_shown(&browser, &page, [format!("550 5.1.1 {text}")]).await;
        let page = format!("{page}?view=events");
        browser.open(&service.url_of(&page)).await;
        browser.until(".event").await;
        check_nothing_ran(&browser, &format!("{payload} in the events")).await;
        let in_json = serde_json::to_string(&text).unwrap();
        check_texts_shown(&browser, &page, [format!("\"user_agent\": {in_json}")]).await;
    }
    // The returned mail has its own pages.
    let list = service.url_of(&format!("/servers/{server}/messages"));
    browser.open(&list).await;
    browser.until(".rows tbody tr").await;
    check_nothing_ran(&browser, "the list").await;
    for (payload, id) in PAYLOADS.iter().zip(&returned).step_by(4) {
        for view in ["timeline", "text", "headers", "attachments"] {
            browser.open(&format!("{list}/{id}?view={view}")).await;
            browser.until("#message").await;
            let what = format!("{payload} in returned mail, {view}");
            check_nothing_ran(&browser, &what).await;
            check_texts_shown(&browser, &what, [only_ascii(payload)]).await;
        }
    }
    for page in ["", "/suppressions", "/analytics", "/analytics?by=bounce_class"] {
        browser.open(&service.url_of(&format!("/servers/{server}{page}"))).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, page).await;
    }
}

/// Waits for the caught message to an address.
async fn wait_for_caught_mail(service: &DevService, to: &str) -> Value {
    let found = service.client.get(&format!("/dev/messages/wait?to={to}&timeout=20")).await.unwrap();
    assert_eq!(found.status, 200);
    found.json()
}

/// Id of the bounce, which is stored as a message too: the first `bounce.message_id` anywhere in `value`.
fn bounce_id(value: &Value) -> Option<i64> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("bounce").and_then(|bounce| bounce["message_id"].as_i64());
            own.or_else(|| fields.values().find_map(bounce_id))
        }
        Value::Array(items) => items.iter().find_map(bounce_id),
        _ => None,
    }
}

/// The events of a message, once one of this kind is among them.
async fn until_event(service: &DevService, id: i64, kind: &str) -> Value {
    let (wanted, key) = (json!({ "message_id": id, "limit": 100 }), service.ready("api_key"));
    eventually(async || {
        let answer =
            service.client.post_json("/api/v1/events/list", Some(&key), &wanted).await.unwrap().text();
        if !answer.contains(kind) {
            return Err(format!("message {id} has no {kind}: {answer}"));
        }
        Ok(serde_json::from_str(&answer).unwrap())
    })
    .await
}

fn bounce_mail(to: &str, text: &str) -> String {
    format!(
        "From: {text} <MAILER-DAEMON@mx.example.net>\r\nSubject: Returned {text}\r\nX-Note: {text}\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\n{text}\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; {text}\r\n\r\n\
         Final-Recipient: rfc822; {to}\r\nAction: failed\r\nStatus: 5.1.1\r\nRemote-MTA: dns; {text}\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 {text}\r\n\r\n--b--\r\n"
    )
}

fn complaint_mail(to: &str, text: &str) -> String {
    format!(
        "From: feedback@isp.example\r\nSubject: FW: {text}\r\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\r\n{text}\r\n\
         --b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n\
         User-Agent: {text}\r\nReported-Domain: {text}\r\nSource-IP: {text}\r\nOriginal-Rcpt-To: <{to}>\r\n\r\n--b--\r\n"
    )
}

#[tokio::test]
async fn reports_of_receivers_run_nothing() {
    let service = DevService::start();
    service.send(json!({ "to": ["first@example.net"] })).await;
    let caught = wait_for_caught_mail(&service, "first@example.net").await;
    let host = caught["mail_from"].as_str().unwrap().split_once('@').unwrap().1;
    for (number, payload) in PAYLOADS.iter().enumerate() {
        mail_report(
            &service,
            &format!("tls-reports@{host}"),
            "application/tlsrpt+json",
            &tls_report(number, payload),
        )
        .await;
        mail_report(
            &service,
            &format!("dmarc-reports@{host}"),
            "application/xml",
            &dmarc_report(number, payload),
        )
        .await;
    }
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = format!("/servers/{server}/reports?domain=example.test&days=7");
    browser.open(&service.url_of(&page)).await;
    browser.reload_until_text("40 reports").await;
    check_nothing_ran(&browser, "the reports").await;
    let text = browser.page_text().await;
    assert!(text.contains("window.hit"), "kinds of failures are shown as they were reported: {text}");
    browser.open(&service.url_of(&format!("/servers/{server}/domains/example.test"))).await;
    browser.until("h1").await;
    check_nothing_ran(&browser, "the domain").await;
}

async fn mail_report(service: &DevService, to: &str, content_type: &str, text: &str) {
    let mail = format!(
        "From: reports@isp.example\r\nSubject: Report\r\nContent-Type: {content_type}; name=report\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\n{text}\r\n"
    );
    let mut client = SmtpClient::connect(service.bounce_address()).await;
    let reply = client.deliver("", &[to], &mail).await;
    assert!(reply.starts_with("250"), "{reply}");
}

fn tls_report(number: usize, payload: &str) -> String {
    let now = SystemClock.now();
    let day = Duration::from_hours(24);
    json!({
        "organization-name": payload, "contact-info": payload, "report-id": format!("{number} {payload}"),
        "date-range": { "start-datetime": now.minus(day).to_rfc3339(), "end-datetime": now.to_rfc3339() },
        "policies": [{
            "policy": { "policy-type": "sts", "policy-domain": "example.test", "mx-host": [payload], "policy-string": [payload] },
            "summary": { "total-successful-session-count": 100, "total-failure-session-count": 4 },
            "failure-details": [{
                "result-type": payload, "failed-session-count": 4, "receiving-mx-hostname": payload,
                "additional-information": payload, "failure-reason-code": payload,
            }],
        }],
    })
    .to_string()
}

fn dmarc_report(number: usize, payload: &str) -> String {
    let now = SystemClock.now().as_secs();
    let text = payload.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<feedback><report_metadata><org_name>{text}</org_name><email>{text}</email><report_id>{number} {text}</report_id>\
         <date_range><begin>{}</begin><end>{}</end></date_range></report_metadata>\
         <policy_published><domain>example.test</domain><p>none</p></policy_published>\
         <record><row><source_ip>192.0.2.{number}</source_ip><count>3</count><policy_evaluated>\
         <disposition>none</disposition><dkim>fail</dkim><spf>fail</spf><reason><type>{text}</type><comment>{text}</comment></reason>\
         </policy_evaluated></row><identifiers><header_from>example.test</header_from></identifiers>\
         <auth_results><dkim><domain>{text}</domain><result>{text}</result></dkim></auth_results></record></feedback>",
        now - 90_000,
        now - 3_600,
    )
}

#[tokio::test]
async fn records_in_the_dns_run_nothing() {
    let dns = DnsServer::start();
    let service = DevService::start_with(None, &[("POSTROAD_DNS_NAMESERVERS", &dns.address().to_string())]);
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let key = service.ready("api_key");
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let domain = format!("d{number}.test");
        // The owner of a domain, who may be anybody, publishes these records.
        let create = json!({ "name": domain });
        let made = call(&service, "x-server-api-key", &key, "domains/create", &create).await;
        for record in made["records"].as_array().unwrap() {
            dns.txt(record["name"].as_str().unwrap(), &format!("v=spf1 v=DMARC1 {payload}"));
        }
        call(&service, "x-server-api-key", &key, "domains/verify", &create).await;
        let page = format!("/servers/{server}/domains/{domain}");
        browser.open(&service.url_of(&page)).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, &format!("records with {payload}")).await;
        check_texts_shown(&browser, &page, [*payload]).await;
        let shared = service.submit(&format!("{page}/share"), &service.sign_in().await, "").await.text();
        let link = shared.split_once("/dns/").unwrap().1.split(['<', '"']).next().unwrap().to_owned();
        browser.open(&service.url_of(&format!("/dns/{link}"))).await;
        browser.until("h1").await;
        check_nothing_ran(&browser, &format!("shared records with {payload}")).await;
        check_texts_shown(&browser, "the shared page", [*payload]).await;
    }
    browser.open(&service.url_of("/operator/doctor")).await;
    browser.until("h1").await;
    check_nothing_ran(&browser, "the check-up").await;
}
