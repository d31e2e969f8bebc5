//! What people of each role see and may do: the pages ask the permission table and add nothing.

use postroad_testkit::http::Method;
use serde_json::json;

use crate::site::{Site, form_token};

/// Form, its fields, and the least role that may send it.
const FORMS: &[(&str, &str, &str)] = &[
    ("/messages/1/act", "act=retry", "member"),
    ("/messages/bulk", "act=release&id=1", "member"),
    ("/suppressions", "address=a@example.net", "member"),
    ("/webhooks", "url=http%3A%2F%2F127.0.0.1%3A9%2F", "member"),
    ("/templates/new", "name=x", "member"),
    ("/domains", "name=example.org", "admin"),
    ("/keys", "name=x&scope=send", "admin"),
    ("/settings", "name=dev&mode=live", "admin"),
    ("/suspend", "reason=x", "admin"),
];

const PAGES: &[&str] = &[
    "",
    "/messages",
    "/analytics",
    "/templates",
    "/domains",
    "/domains/example.test",
    "/webhooks",
    "/suppressions",
    "/keys",
    "/settings",
];

#[tokio::test]
async fn each_role_reads_all_pages_and_sends_only_its_own_forms() {
    let site = Site::start();
    let start = site.get("/", &site.cookie().await).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    for (rank, role) in ["read-only", "member", "admin"].into_iter().enumerate() {
        let cookie = join(&site, role).await;
        for page in PAGES {
            assert_eq!(
                site.get(&format!("{server}{page}"), &cookie).await.status,
                200,
                "{role} reads {page}"
            );
        }
        let audit = site.get("/account/audit", &cookie).await;
        assert_eq!(audit.status, if role == "admin" { 200 } else { 403 }, "{role} reads the audit log");
        let token = form_token(&site.get("/servers", &cookie).await);
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        for (path, fields, least) in FORMS {
            let reply =
                site.post(&format!("{server}{path}"), &headers, &format!("csrf={token}&{fields}")).await;
            let may = rank >= ["read-only", "member", "admin"].iter().position(|name| name == least).unwrap();
            assert_eq!(reply.status != 403, may, "{role} sends {path}: {}", reply.status);
        }
        let resume = site.post(&format!("{server}/resume"), &headers, &format!("csrf={token}")).await;
        assert_eq!(resume.status, if role == "admin" { 303 } else { 403 }, "{role} resumes");
    }
}

/// Invites somebody, accepts the invitation, and returns the session's cookie.
async fn join(site: &Site, role: &str) -> String {
    let key = site.ready("account_api_key");
    let headers = [("x-account-api-key", key.as_str()), ("content-type", "application/json")];
    let wanted = json!({ "email": format!("{role}@example.com"), "role": role, "mail": false }).to_string();
    let reply =
        site.client.request(Method::POST, "/api/v1/users/invite", &headers, wanted.into()).await.unwrap();
    let answer = reply.json();
    let link = answer["data"]["link"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let token = link.split_once("token=").unwrap().1;
    let form = format!("token={token}&name={role}&password=a+road+of+seven+posts");
    let reply = site.post("/invitation", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(reply.status, 303, "{}", String::from_utf8_lossy(&reply.body));
    reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}
