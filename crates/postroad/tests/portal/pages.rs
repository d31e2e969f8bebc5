//! Every page of the portal with an example, for tests that visit all of them. A test compares the tables with the
//! portal's routes, and fails for a new page that is in no table.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use serde_json::json;

use crate::roles::{self, call};
use crate::routes::{Kind, ROUTES, without_names};
use crate::service::{DevService, SecondServer};

/// An example of a page: name of its pictures, route, query, and a text of its content. Placeholders in braces get the
/// values that `create_objects` returns.
pub(crate) type Example = (&'static str, &'static str, &'static str, &'static str);

/// Pages of a person who is signed in.
pub(crate) const PAGES: &[Example] = &[
    ("servers", "/servers", "", "staging"),
    ("overview", "/servers/{server}", "", "Your receipt for order 1234"),
    ("overview-development", "/servers/{development}", "", "Development mode"),
    ("first-message", "/servers/{server}/first_message", "since=0", "It arrived here"),
    (
        "first-message-waits",
        "/servers/{server}/first_message",
        "since=9000000000000000000",
        "Waiting for a new message",
    ),
    ("messages", "/servers/{server}/messages", "", "Your receipt for order 1234"),
    ("messages-search", "/servers/{server}/messages", "q=tag%3Areceipt", "Your receipt for order 1234"),
    ("messages-wrong-search", "/servers/{server}/messages", "q=colour%3Ared", "colour"),
    ("messages-held", "/servers/{server}/messages", "tab=held", "the recipient is suppressed"),
    ("messages-scheduled", "/servers/{server}/messages", "tab=scheduled", "Next week"),
    ("message-timeline", "/servers/{server}/messages/{receipt}", "view=timeline", "Delivered"),
    ("message-events", "/servers/{server}/messages/{receipt}", "view=events", "message.delivered"),
    (
        "message-preview",
        "/servers/{server}/messages/{receipt}",
        "view=preview",
        "Nothing in the message runs",
    ),
    (
        "message-links",
        "/servers/{server}/messages/{receipt}",
        "view=links",
        "https://shop.example/orders/1234",
    ),
    ("message-text", "/servers/{server}/messages/{receipt}", "view=text", "Thank you."),
    ("message-source", "/servers/{server}/messages/{receipt}", "view=source", "<h1>Thank you</h1>"),
    ("message-headers", "/servers/{server}/messages/{receipt}", "view=headers", "message-id"),
    ("message-attachments", "/servers/{server}/messages/{receipt}", "view=attachments", "receipt.txt"),
    ("message-bounced", "/servers/{server}/messages/{bounced}", "", "What to do"),
    ("message-scheduled", "/servers/{server}/messages/{scheduled}", "", "Another time"),
    ("job", "/servers/{server}/jobs/{job}", "", "Release"),
    ("jobs", "/servers/{server}/jobs", "", "Started"),
    ("queue", "/servers/{server}/queue", "", "What waits, and why"),
    ("events", "/servers/{server}/events", "", "message.accepted"),
    (
        "events-kinds",
        "/servers/{server}/events",
        "kind=message.accepted&kind=message.delivered",
        "message.delivered",
    ),
    ("analytics", "/servers/{server}/analytics", "", "Over time"),
    ("analytics-day", "/servers/{server}/analytics", "range=day&by=bounce_class", "Over time"),
    ("analytics-more", "/servers/{server}/analytics", "by=tag&tag=receipt&zone=Europe%2FBerlin", "Over time"),
    ("analytics-wrong", "/servers/{server}/analytics", "zone=Atlantis", "Atlantis"),
    ("reports", "/servers/{server}/reports", "", "No report came in"),
    ("templates", "/servers/{server}/templates", "", "Order confirmation"),
    ("template-new", "/servers/{server}/templates/new", "", "New template"),
    ("template", "/servers/{server}/templates/{template}", "", "Versions"),
    ("template-compare", "/servers/{server}/templates/{template}/compare", "from=1&to=2", "Good day"),
    ("domains", "/servers/{server}/domains", "", "example.test"),
    ("domain", "/servers/{server}/domains/{name}", "", "_domainkey.example.test"),
    ("webhooks", "/servers/{server}/webhooks", "", "http://127.0.0.1:9/"),
    ("webhook", "/servers/{server}/webhooks/{webhook}", "", "message.accepted"),
    ("webhook-inspector", "/servers/{server}/webhooks/inspector", "", "/inspect/"),
    ("suppressions", "/servers/{server}/suppressions", "", "gone@example.net"),
    (
        "suppressions-days",
        "/servers/{server}/suppressions",
        "reason=complaint&since=2026-01-01",
        "gone@example.net",
    ),
    ("keys", "/servers/{server}/keys", "", "other"),
    ("settings", "/servers/{server}/settings", "", "Erase a person's data"),
    ("server-inbox-live", "/servers/{server}/inbox", "", "The server is live"),
    ("server-inbox", "/servers/{development}/inbox", "", "Your sign-in code"),
    ("server-inbox-one", "/servers/{development}/inbox/{held}", "", "482913"),
    ("server-inbox-headers", "/servers/{development}/inbox/{held}", "view=headers", "message-id"),
    ("account", "/account", "", "Usage"),
    ("people", "/account/people", "", "colleague@example.com"),
    ("person", "/account/people/{colleague}", "", "colleague@example.com"),
    ("account-domains", "/account/domains", "", "common.example"),
    ("account-domain", "/account/domains/{common}", "", "_domainkey.common.example"),
    ("pools", "/account/pools", "", "192.0.2.9"),
    ("address", "/account/pools/address", "address=192.0.2.9", "192.0.2.9"),
    ("account-keys", "/account/keys", "", "New account key"),
    ("audit", "/account/audit", "", "servers/create"),
    ("audit-filtered", "/account/audit", "subject=domain", "domains/create"),
    ("you", "/account/you", "", "Authenticator app"),
    ("operator", "/operator", "", "Maintenance"),
    ("operator-queue", "/operator/queue", "", "What waits, and why"),
    ("doctor", "/operator/doctor", "", "It takes writes"),
    ("nodes", "/operator/nodes", "", "which shows this page"),
    ("operator-accounts", "/operator/accounts", "", "New account"),
    ("operator-account", "/operator/accounts/{account}", "", "Name and ceilings"),
    ("operator-keys", "/operator/keys", "", "New operator key"),
    ("operator-account-domains", "/operator/accounts/{account}/domains", "", "common.example"),
    (
        "operator-account-domain",
        "/operator/accounts/{account}/domains/{common}",
        "",
        "_domainkey.common.example",
    ),
    ("operator-account-people", "/operator/accounts/{account}/people", "", "dev@example.test"),
    ("operator-account-keys", "/operator/accounts/{account}/keys", "", "New account key"),
    ("operator-account-audit", "/operator/accounts/{account}/audit", "", "servers/create"),
    ("operator-audit", "/operator/audit", "", "Audit log"),
    ("inbox", "/inbox", "", "Your receipt for order 1234"),
    ("inbox-one", "/inbox/{caught}", "", "https://shop.example/orders/1234"),
];

/// Pages of people who are not signed in.
pub(crate) const OPEN_PAGES: &[Example] = &[
    ("sign-in", "/sign_in", "", "Password"),
    ("signed-out", "/sign_in", "done=signed-out", "You are signed out"),
    ("reset-password", "/reset_password", "", "Send link"),
    ("reset-password-sent", "/reset_password", "done=sent", "a link is on its way"),
    ("new-password", "/reset_password", "token={reset}", "Choose a new password"),
    ("invitation", "/invitation", "token={invitation}", "newcomer@example.com"),
    ("dns", "/dns/{share}", "", "_domainkey.example.test"),
];

/// Routes for GET without a page of their own, and why.
const NO_PAGES: &[(&str, &str)] = &[
    ("/", "a redirect to a server"),
    ("/set_up", "only before the first person: a test with `postroad serve` visits it"),
    ("/inspect/{token}", "takes requests of webhooks; the inspector's page shows them"),
    ("/dns/{token}/zone", "a download"),
    ("/servers/{server}/messages/export", "a download"),
    ("/servers/{server}/messages/{message}/raw", "a download"),
    ("/servers/{server}/messages/{message}/attachments/{number}", "a download"),
    ("/servers/{server}/messages/{message}/preview", "the sandboxed frame of a page"),
    ("/servers/{server}/analytics/csv", "a download"),
    ("/servers/{server}/templates/{template}/preview", "the sandboxed frame of a page"),
    ("/servers/{server}/domains/{name}/zone", "a download"),
    ("/servers/{server}/suppressions/export", "a download"),
    ("/account/domains/{name}/zone", "a download"),
    ("/operator/accounts/{account}/domains/{name}/zone", "a download"),
    ("/operator/doctor/zone", "a download"),
    ("/account/audit/export", "a download"),
    ("/operator/audit/export", "a download"),
    ("/operator/accounts/{account}/audit/export", "a download"),
    ("/inbox/{message}/preview", "the sandboxed frame of a page"),
    ("/inbox/{message}/raw", "a download"),
    ("/inbox/{message}/attachments/{number}", "a download"),
];

#[test]
fn every_page_has_an_example_or_a_reason_to_have_none() {
    let visited: BTreeSet<String> =
        PAGES.iter().chain(OPEN_PAGES).map(|(_, route, _, _)| without_names(route)).collect();
    let left_out: BTreeSet<String> = NO_PAGES.iter().map(|(route, _)| without_names(route)).collect();
    let pages = ROUTES.iter().filter(|(kind, _, _, _)| *kind == Kind::Page);
    let pages: BTreeSet<String> = pages.map(|(_, route, _, _)| without_names(route)).collect();
    let both: Vec<&String> = visited.intersection(&left_out).collect();
    assert!(both.is_empty(), "they are visited, so they need no reason: {both:?}");
    let all: BTreeSet<String> = visited.union(&left_out).cloned().collect();
    assert_eq!(pages, all, "the routes on the left, the tables of this file on the right");
    let names: BTreeSet<&str> = PAGES.iter().chain(OPEN_PAGES).map(|(name, _, _, _)| *name).collect();
    assert_eq!(names.len(), PAGES.len() + OPEN_PAGES.len(), "pictures have names of their own");
}

/// Path and query of an example, with the values of its placeholders.
pub(crate) fn path_of(placeholders: &HashMap<&'static str, String>, route: &str, query: &str) -> String {
    let path = roles::with_values(placeholders, route);
    if query.is_empty() { path } else { format!("{path}?{}", roles::with_values(placeholders, query)) }
}

/// Creates one of everything that the pages show; returns the values of placeholders: ids, names and tokens.
pub(crate) async fn create_objects(service: &DevService) -> HashMap<&'static str, String> {
    let cookie = service.sign_in().await;
    // Sent first, so that it has the id 1 in the inbox.
    let html = "<html><body><h1>Thank you</h1><p>Your order <b>1234</b> is on its way.</p>\
                <a href=\"https://shop.example/orders/1234\">Follow it</a></body></html>";
    let receipt = service
        .send(json!({
            "subject": "Your receipt for order 1234", "tag": "receipt", "html_body": html,
            "metadata": { "order": "1234" }, "attachments": [{ "name": "receipt.txt", "data": "aGVsbG8=" }],
        }))
        .await;
    service.until_status(receipt, "Sent").await;
    let mut placeholders = roles::create_objects(service, &cookie).await;
    let key = service.ready("api_key");
    let by_server = async |path: &str, body| call(service, "x-server-api-key", &key, path, &body).await;
    let bounced =
        service.send(json!({ "to": ["missing@sim.postroad.test"], "subject": "Password reset" })).await;
    service
        .send(json!({ "to": ["defer@sim.postroad.test"], "subject": "Sign-in code", "tag": "code" }))
        .await;
    let next_week = SystemClock.now().plus(Duration::from_hours(7 * 24)).to_rfc3339();
    let scheduled = service.send(json!({ "subject": "Next week", "send_at": next_week })).await;
    let gone = json!({ "address": "gone@example.net", "reason": "complaint", "details": "asked to stop" });
    by_server("suppressions/add", gone).await;
    let suppressed =
        service.send(json!({ "to": ["gone@example.net"], "subject": "To somebody who asked to stop" })).await;
    let template = json!({
        "name": "Order confirmation", "alias": "order", "subject": "Order {{ number }}", "html_body": "<p>Hello</p>",
        "plain_body": "Hello", "publish": true,
    });
    let template = by_server("templates/create", template).await["id"].clone();
    let change = json!({ "id": template, "html_body": "<p>Good day</p>", "plain_body": "Good day" });
    by_server("templates/update", change).await;

    let development = SecondServer::create_development(service).await;
    let html =
        "<p>Your code is <b>482 913</b>.</p><a href=\"https://shop.example/reset?token=abc\">Reset</a>";
    let held = development
        .send(
            service,
            json!({
                "subject": "Your sign-in code", "html_body": html, "plain_body": "Your code is 482 913.",
                "attachments": [{ "name": "terms.txt", "data": "aGVsbG8=" }],
            }),
        )
        .await;

    let operator_key = service.ready("operator_api_key");
    let newcomer = json!({ "account": 1, "email": "newcomer@example.com", "role": "member", "mail": false });
    let invited = call(service, "x-operator-api-key", &operator_key, "users/invite", &newcomer).await;
    let token_in = |text: &str, before: &str| {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').next().unwrap().to_owned()
    };
    let reset = service
        .submit(&format!("/account/people/{}/reset_link", placeholders["colleague"]), &cookie, "")
        .await;
    let share = format!("/servers/{}/domains/example.test/share", placeholders["server"]);
    let share = service.submit(&share, &cookie, "").await;
    service.until_status(bounced, "HardFail").await;
    service.until_status(suppressed, "Held").await;
    placeholders.extend([
        ("receipt", receipt.to_string()),
        ("bounced", bounced.to_string()),
        ("scheduled", scheduled.to_string()),
        ("template", template.to_string()),
        ("development", development.id.to_string()),
        ("held", held.to_string()),
        ("invitation", token_in(invited["link"].as_str().unwrap(), "token=")),
        ("reset", token_in(&reset.text(), "/reset_password?token=")),
        ("share", token_in(&share.text(), "/dns/")),
    ]);
    placeholders
}
