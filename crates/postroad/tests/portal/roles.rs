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
    ("/suppressions/remove", "address=a@example.net", "member"),
    ("/webhooks/1", "url=http%3A%2F%2F127.0.0.1%3A9%2F", "member"),
    ("/webhooks/1/test", "event=message.delivered", "member"),
    ("/webhooks/1/replay", "attempt=1", "member"),
    ("/webhooks/1/rotate_secret", "", "member"),
    ("/webhooks/1/delete", "", "member"),
    ("/webhooks/inspector", "", "member"),
    ("/webhooks/inspector/clear", "", "member"),
    ("/templates/1", "name=x", "member"),
    ("/templates/1/publish", "version=1", "member"),
    ("/templates/1/delete", "", "member"),
    ("/messages/1/act", "act=release", "member"),
    ("/messages/1/act", "act=cancel", "member"),
    ("/messages/1/act", "act=erase", "admin"),
    ("/queue/suspend", "reason=x&per_minute=60", "admin"),
    ("/queue/resume", "", "admin"),
    ("/domains", "name=example.org", "admin"),
    ("/domains/example.org/verify", "", "admin"),
    ("/domains/example.org/rotate_dkim", "", "admin"),
    ("/domains/example.org/share", "", "admin"),
    ("/domains/example.org/delete", "", "admin"),
    ("/keys", "name=x&scope=send", "admin"),
    ("/settings", "name=dev&mode=live", "admin"),
    ("/suspend", "reason=x", "admin"),
];

/// The same, of the account.
const ACCOUNT_FORMS: &[(&str, &str, &str)] = &[
    ("/servers", "name=x&mode=live", "admin"),
    ("/account/people", "email=new@example.net&role=read-only", "admin"),
    ("/account/keys", "name=x&scope=read", "admin"),
];

/// For the operator alone.
const OPERATOR_FORMS: &[(&str, &str)] = &[
    ("/account/pools", "name=x"),
    ("/account/pools/delete", "pool=1"),
    ("/account/pools/address", "pool=1&address=192.0.2.1&helo=a.example"),
    ("/account/pools/address/update", "address=192.0.2.1&weight=2"),
    ("/account/pools/address/remove", "address=192.0.2.1"),
    ("/operator/suspend", "scope=everything&reason=x"),
    ("/operator/resume", "scope=everything"),
    ("/operator/accounts", "name=x"),
    ("/operator/accounts/1/suspend", "reason=x"),
    ("/operator/accounts/1/resume", ""),
    ("/inbox/clear", ""),
];
const OPERATOR_PAGES: &[&str] =
    &["/operator", "/operator/accounts", "/operator/doctor", "/inbox", "/inbox/1", "/inbox/live"];

const PAGES: &[&str] = &[
    "",
    "/messages",
    "/messages/export",
    "/messages?tab=held",
    "/queue",
    "/reports",
    "/webhooks/inspector",
    "/first_message",
    "/domains/example.test/zone",
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
        for path in ["/servers", "/account/people", "/account/pools", "/account/you"] {
            assert_eq!(site.get(path, &cookie).await.status, 200, "{role} reads {path}");
        }
        for path in OPERATOR_PAGES {
            assert_eq!(site.get(path, &cookie).await.status, 403, "{role} reads {path}");
        }
        for (path, fields, least) in ACCOUNT_FORMS {
            let reply = site.post(path, &headers, &format!("csrf={token}&{fields}")).await;
            let may = rank >= ["read-only", "member", "admin"].iter().position(|name| name == least).unwrap();
            assert_eq!(reply.status != 403, may, "{role} sends {path}: {}", reply.status);
        }
        for (path, fields) in OPERATOR_FORMS {
            let reply = site.post(path, &headers, &format!("csrf={token}&{fields}")).await;
            // An address that does not exist may not even be asked for.
            assert!([403, 404].contains(&reply.status), "{role} sends {path}: {}", reply.status);
        }
        let menu = site.get("/servers", &cookie).await.text();
        assert!(!menu.contains("\"/operator\"") && !menu.contains("\"/inbox\""), "{role} sees no such link");
        let resume = site.post(&format!("{server}/resume"), &headers, &format!("csrf={token}")).await;
        assert_eq!(resume.status, if role == "admin" { 303 } else { 403 }, "{role} resumes");
    }
}

#[tokio::test]
async fn a_gate_of_the_operator_is_not_lifted_by_an_admin_on_sqlite() {
    keep_gate(Site::start()).await;
}

#[tokio::test]
async fn a_gate_of_the_operator_is_not_lifted_by_an_admin_on_postgres() {
    keep_gate(Site::start_on_postgres()).await;
}

async fn keep_gate(site: Site) {
    let operator = site.cookie().await;
    let start = site.get("/", &operator).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    let id = server.rsplit('/').next().unwrap();
    let admin = join(&site, "admin").await;
    let send = async |cookie: &str, path: &str, fields: &str| {
        let token = form_token(&site.get("/servers", cookie).await);
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        site.post(path, &headers, &format!("csrf={token}&{fields}")).await.status
    };
    let (suspend, resume) = (format!("{server}/queue/suspend"), format!("{server}/queue/resume"));
    assert_eq!(send(&admin, &suspend, "reason=mine").await, 303);
    assert_eq!(send(&admin, &resume, "").await, 303);
    let scope = format!("scope=server%3A{id}");
    assert_eq!(send(&operator, "/operator/suspend", &format!("{scope}&reason=abuse")).await, 303);
    for (path, fields) in [(&resume, ""), (&suspend, "reason=mine&per_minute=1000")] {
        assert_eq!(send(&admin, path, fields).await, 422, "{path}");
    }
    let queue = site.get(&format!("{server}/queue"), &admin).await.text();
    assert!(queue.contains("abuse") && !queue.contains("mine"), "{queue}");
    assert_eq!(send(&operator, "/operator/resume", &scope).await, 303);
    assert_eq!(send(&admin, &suspend, "reason=mine").await, 303);
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
