//! Attacks from other sites on the portal of `postroad serve`, which lacks the access check of `postroad dev`: forms
//! without a token or with another session's, forms of foreign pages, and pages in a foreign frame.

use postroad_testkit::http::{Bytes, Method};
use postroad_testkit::{Browser, CatcherAnswer, Client, Reply, WebhookCatcher, eventually};

use crate::roles::join;
use crate::routes::{Access, Kind, ROUTES};
use crate::service::{DevService, FreshService, form_token};

/// URL-encoded, for the body of a form.
const PASSWORD: &str = "a+road+of+seven+posts";

/// A `postroad serve` whose first person is signed in.
struct SetUpService {
    _fresh: FreshService,
    url: String,
    client: Client,
    cookie: String,
}

impl SetUpService {
    async fn start() -> Self {
        let fresh = FreshService::start("");
        let token = fresh.set_up_link.split_once("token=").unwrap().1.to_owned();
        let (url, client) = (fresh.url.clone(), fresh.client.clone());
        let mut service = Self { _fresh: fresh, url, client, cookie: String::new() };
        let form = format!("token={token}&account=Shop&email=owner@shop.example&password={PASSWORD}");
        service.cookie = session_cookie(&service.post("/set_up", &[("origin", &service.url)], &form).await);
        service
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Reply {
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        all.extend_from_slice(headers);
        self.client.request(Method::POST, path, &all, form.to_owned().into()).await.unwrap()
    }

    async fn get(&self, path: &str) -> Reply {
        let headers = [("cookie", self.cookie.as_str())];
        self.client.request(Method::GET, path, &headers, Bytes::new()).await.unwrap()
    }

    /// Signs the same person in again; returns the cookie of the second session.
    async fn sign_in(&self) -> String {
        let form = format!("email=owner@shop.example&password={PASSWORD}");
        session_cookie(&self.post("/sign_in", &[("origin", &self.url)], &form).await)
    }
}

/// The session cookie that a redirect sets.
fn session_cookie(reply: &Reply) -> String {
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_form_is_refused_if_its_origin_is_foreign_or_its_token_is_missing_or_of_another_session() {
    let service = SetUpService::start().await;
    let other_cookie = service.sign_in().await;
    let token = form_token(&service.get("/servers").await);
    let headers = [("cookie", other_cookie.as_str())];
    let other_page = service.client.request(Method::GET, "/servers", &headers, Bytes::new()).await.unwrap();
    let other_token = form_token(&other_page);
    assert_ne!(token, other_token);
    let before = service.get("/account/audit").await.text();
    let (own_origin, cookie) = (service.url.as_str(), service.cookie.as_str());
    for (kind, route, fields, access) in ROUTES {
        if *kind != Kind::Form || route.starts_with("/inspect/") {
            continue;
        }
        let path: Vec<&str> =
            route.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let path = path.join("/");
        let good_form = format!("csrf={token}&{fields}");
        for (headers, what) in [
            (vec![("cookie", cookie)], "no origin"),
            (vec![("cookie", cookie), ("origin", "null")], "the origin of a sandbox"),
            (vec![("cookie", cookie), ("origin", "https://evil.example")], "a foreign origin"),
            (
                vec![("cookie", cookie), ("origin", "http://mail.example.com.evil.example")],
                "an origin that begins with our host name",
            ),
            (
                vec![("cookie", cookie), ("origin", own_origin), ("sec-fetch-site", "cross-site")],
                "cross-site",
            ),
            (vec![("cookie", cookie), ("sec-fetch-site", "same-site")], "same site"),
        ] {
            let reply = service.post(&path, &headers, &good_form).await;
            assert_eq!(reply.status, 403, "{path}: {what}");
            assert!(reply.text().contains("came from another site"), "{path}: {what}");
        }
        if *access == Access::Anybody {
            continue;
        }
        for (form, what) in [
            ((*fields).to_owned(), "no token"),
            (format!("csrf=&{fields}"), "an empty token"),
            (format!("csrf={other_token}&{fields}"), "another session's token"),
        ] {
            let reply = service.post(&path, &[("cookie", cookie), ("origin", own_origin)], &form).await;
            assert_eq!(reply.status, 403, "{path}: {what}");
            assert!(reply.text().contains("out of date"), "{path}: {what}");
        }
    }
    assert_eq!(service.get("/account/audit").await.text(), before, "nothing was changed");
}

#[tokio::test]
async fn a_foreign_page_neither_frames_the_portal_nor_sends_its_forms() {
    let service = SetUpService::start().await;
    let browser = Browser::start().await;
    let evil = WebhookCatcher::start();
    let page = |html: String| {
        CatcherAnswer::Full(200, vec![("content-type".to_owned(), "text/html".to_owned())], html.into_bytes())
    };
    evil.answer(
        "/frame",
        page(format!("<h1>Win a prize</h1><iframe src='{}/servers'></iframe>", service.url)),
    );
    evil.answer(
        "/form",
        page(format!(
            "<form method=post action='{}/servers'><input name=name value=stolen><input name=mode value=live>\
             <button>go</button></form>",
            service.url
        )),
    );
    browser.open(&format!("{}/sign_in", service.url)).await;
    browser.fill("input[name=email]", "owner@shop.example").await;
    browser.fill("input[name=password]", "a road of seven posts").await;
    browser.click("form button").await;
    browser.until("nav.side").await;
    assert_eq!(browser.console().await, [""; 0]);
    browser.open(&evil.url("/frame")).await;
    browser.until("iframe").await;
    eventually(async || {
        let log = browser.console().await;
        let is_refused = log.iter().any(|line| line.contains("frame-ancestors"));
        if is_refused { Ok(()) } else { Err(format!("the browser refuses no framing: {log:?}")) }
    })
    .await;
    browser.open(&evil.url("/form")).await;
    browser.click("button").await;
    browser.until_text("This request came from another site").await;
    browser.open(&format!("{}/servers", service.url)).await;
    browser.until("nav.side").await;
    assert!(!browser.page_text().await.contains("stolen"));
}

/// Session fixation: an attacker who plants a cookie in a browser does not share the session that begins there.
#[tokio::test]
async fn signing_in_replaces_a_planted_session_cookie() {
    let service = DevService::start();
    join(&service, "victim", "admin").await;
    // The session of an attacker who can sign in, and a value that no session has.
    let (_, attacker) = join(&service, "attacker", "member").await;
    for planted in [attacker.as_str(), "postroad=plantedplantedplantedplanted"] {
        let headers = [("cookie", planted), ("sec-fetch-site", "same-origin")];
        let form = "email=victim@example.com&password=a+road+of+seven+posts";
        let reply = service.post("/sign_in", &headers, form).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let cookies: Vec<_> = reply.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies.len(), 1);
        let session = cookies[0].to_str().unwrap().split(';').next().unwrap();
        assert_ne!(session, planted);
        let page = service.get("/account/you", session).await;
        assert!(page.text().contains("victim@example.com"), "{}", page.text());
        let planted_page = service.get("/account/you", planted).await;
        assert_eq!(planted_page.status, 303, "the planted cookie opens nothing: {}", planted_page.text());
        assert!(planted_page.headers["location"].to_str().unwrap().starts_with("/sign_in"));
    }
}
