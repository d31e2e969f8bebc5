//! Attacks from other sites on the portal of `postroad serve`, which lacks the access check of `postroad dev`: forms
//! without a token or with another session's, forms of foreign pages, and pages in a foreign frame.

use postroad_testkit::http::{Bytes, Method};
use postroad_testkit::{Browser, CatcherAnswer, Client, Reply, WebhookCatcher, eventually};

use crate::roles::join;
use crate::routes::{For, Kind, ROUTES};
use crate::site::{Serving, Site, form_token};

const PASSWORD: &str = "a+road+of+seven+posts";

/// A service with its first person.
struct Served {
    _serving: Serving,
    url: String,
    client: Client,
    cookie: String,
}

impl Served {
    async fn start() -> Self {
        let serving = Serving::start("");
        let token = serving.set_up_link.split_once("token=").unwrap().1.to_owned();
        let (url, client) = (serving.url.clone(), serving.client.clone());
        let mut served = Self { _serving: serving, url, client, cookie: String::new() };
        let form = format!("token={token}&account=Shop&email=owner@shop.example&password={PASSWORD}");
        served.cookie = cookie(&served.post("/set_up", &[("origin", &served.url)], &form).await);
        served
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

    /// A second session of the same person.
    async fn sign_in(&self) -> String {
        let form = format!("email=owner@shop.example&password={PASSWORD}");
        cookie(&self.post("/sign_in", &[("origin", &self.url)], &form).await)
    }
}

fn cookie(reply: &Reply) -> String {
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn forms_are_refused_from_other_origins_without_a_token_and_with_another_sessions_token() {
    let served = Served::start().await;
    let other = served.sign_in().await;
    let token = form_token(&served.get("/servers").await);
    let headers = [("cookie", other.as_str())];
    let others = served.client.request(Method::GET, "/servers", &headers, Bytes::new()).await.unwrap();
    let others_token = form_token(&others);
    assert_ne!(token, others_token);
    let before = served.get("/account/audit").await.text();
    let (own, mine) = (served.url.as_str(), served.cookie.as_str());
    for (kind, route, fields, whose) in ROUTES {
        if *kind != Kind::Form || route.starts_with("/inspect/") {
            continue;
        }
        let path: Vec<&str> =
            route.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
        let path = path.join("/");
        let good = format!("csrf={token}&{fields}");
        for (headers, what) in [
            (vec![("cookie", mine)], "no origin"),
            (vec![("cookie", mine), ("origin", "null")], "the origin of a sandbox"),
            (vec![("cookie", mine), ("origin", "https://evil.example")], "a foreign origin"),
            (vec![("cookie", mine), ("origin", "http://mail.example.com.evil.example")], "one like ours"),
            (vec![("cookie", mine), ("origin", own), ("sec-fetch-site", "cross-site")], "cross-site"),
            (vec![("cookie", mine), ("sec-fetch-site", "same-site")], "same site"),
        ] {
            let reply = served.post(&path, &headers, &good).await;
            assert_eq!(reply.status, 403, "{path}: {what}");
            assert!(reply.text().contains("came from another site"), "{path}: {what}");
        }
        if *whose == For::Anybody {
            continue;
        }
        for (form, what) in [
            ((*fields).to_owned(), "no token"),
            (format!("csrf=&{fields}"), "an empty token"),
            (format!("csrf={others_token}&{fields}"), "another session's token"),
        ] {
            let reply = served.post(&path, &[("cookie", mine), ("origin", own)], &form).await;
            assert_eq!(reply.status, 403, "{path}: {what}");
            assert!(reply.text().contains("out of date"), "{path}: {what}");
        }
    }
    assert_eq!(served.get("/account/audit").await.text(), before, "nothing was changed");
}

#[tokio::test]
async fn a_foreign_page_neither_frames_the_portal_nor_sends_its_forms() {
    let served = Served::start().await;
    let browser = Browser::start().await;
    let evil = WebhookCatcher::start();
    let page = |html: String| {
        CatcherAnswer::Full(200, vec![("content-type".to_owned(), "text/html".to_owned())], html.into_bytes())
    };
    evil.answer(
        "/frame",
        page(format!("<h1>Win a prize</h1><iframe src='{}/servers'></iframe>", served.url)),
    );
    evil.answer(
        "/form",
        page(format!(
            "<form method=post action='{}/servers'><input name=name value=stolen><input name=mode value=live>\
             <button>go</button></form>",
            served.url
        )),
    );
    browser.open(&format!("{}/sign_in", served.url)).await;
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
    browser.open(&format!("{}/servers", served.url)).await;
    browser.until("nav.side").await;
    assert!(!browser.page_text().await.contains("stolen"));
}

/// Session fixation: whoever plants a cookie in a browser does not share the session that begins there.
#[tokio::test]
async fn a_cookie_that_was_there_before_signing_in_is_not_the_session_after_it() {
    let site = Site::start();
    join(&site, "victim", "admin").await;
    // The session of an attacker who can sign in, and a value that no session has.
    let (_, attacker) = join(&site, "attacker", "member").await;
    for planted in [attacker.as_str(), "postroad=plantedplantedplantedplanted"] {
        let headers = [("cookie", planted), ("sec-fetch-site", "same-origin")];
        let form = "email=victim@example.com&password=a+road+of+seven+posts";
        let reply = site.post("/sign_in", &headers, form).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let cookies: Vec<_> = reply.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies.len(), 1);
        let fresh = cookies[0].to_str().unwrap().split(';').next().unwrap();
        assert_ne!(fresh, planted);
        let page = site.get("/account/you", fresh).await;
        assert!(page.text().contains("victim@example.com"), "{}", page.text());
        let outside = site.get("/account/you", planted).await;
        assert_eq!(outside.status, 303, "the planted cookie opens nothing: {}", outside.text());
        assert!(outside.headers["location"].to_str().unwrap().starts_with("/sign_in"));
    }
}
