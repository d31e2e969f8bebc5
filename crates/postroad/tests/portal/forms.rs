//! Forms that other sites send or that are sent twice, and headers against framing and scripting.

use postroad_testkit::eventually;

use crate::pages::{self, OPEN_PAGES, PAGES};
use crate::roles::join;
use crate::site::{Site, form_token, server_of};

#[tokio::test]
async fn forms_of_other_sites_and_other_sessions_change_nothing() {
    let site = Site::start();
    let (cookie, other) = (site.cookie().await, site.cookie().await);
    let token = form_token(&site.get("/servers", &cookie).await);
    let others_token = form_token(&site.get("/servers", &other).await);
    let own = site.url.clone();
    let good = format!("csrf={token}&name=made&mode=live");
    let same = ("sec-fetch-site", "same-origin");
    for (headers, form, what) in [
        (vec![("cookie", cookie.as_str())], good.clone(), "no origin"),
        (vec![("cookie", &cookie), ("origin", "https://evil.example")], good.clone(), "foreign origin"),
        (
            vec![("cookie", &cookie), ("origin", &own), ("sec-fetch-site", "cross-site")],
            good.clone(),
            "cross-site",
        ),
        (vec![("cookie", &cookie), ("sec-fetch-site", "same-site")], good.clone(), "same site"),
        (vec![("cookie", &cookie), same], "name=made&mode=live".to_owned(), "no token"),
        (
            vec![("cookie", &cookie), same],
            format!("csrf={others_token}&name=made"),
            "another session's token",
        ),
    ] {
        let reply = site.post("/servers", &headers, &form).await;
        assert_eq!(reply.status, 403, "{what}");
    }
    // Without a session nothing happens either.
    assert_eq!(site.post("/servers", &[same], &good).await.status, 303);
    let page = site.get("/servers", &cookie).await;
    assert!(!String::from_utf8_lossy(&page.body).contains(">made<"));
    let reply = site.post("/servers", &[("cookie", &cookie), same, ("origin", &own)], &good).await;
    assert_eq!(reply.status, 303);
    assert!(String::from_utf8_lossy(&site.get("/servers", &cookie).await.body).contains(">made<"));
}

#[tokio::test]
async fn answers_forbid_framing_scripting_and_caching() {
    let site = Site::start();
    let names = pages::fill(&site).await;
    let cookie = site.cookie().await;
    let own =
        PAGES.iter().map(|(_, route, query, _)| (pages::path_of(&names, route, query), cookie.as_str()));
    let open = OPEN_PAGES.iter().map(|(_, route, query, _)| (pages::path_of(&names, route, query), ""));
    let wrong = ("/servers/999999999".to_owned(), cookie.as_str());
    for (path, cookie) in own.chain(open).chain([wrong]) {
        let reply = site.get(&path, cookie).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(
            policy.contains("form-action 'self'") && policy.contains("base-uri 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{path}");
        // Going back loads the page again, so an old secret is not shown.
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        assert_eq!(reply.headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{path}");
    }
    // Scripts cannot read the session cookie.
    let link = site.ready("sign_in_url");
    let reply = site.client.get(link.strip_prefix(&site.url).unwrap()).await.unwrap();
    let set = reply.headers["set-cookie"].to_str().unwrap();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"), "{set}");
}

#[tokio::test]
async fn pages_cannot_be_framed_and_foreign_forms_change_nothing() {
    let site = Site::start();
    let browser = site.browser().await;
    let reply = site.client.get("/sign_in").await.unwrap();
    let policy = reply.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    // A page of another origin with a form for the portal.
    let form = format!(
        "data:text/html,<form method=post action='{}/servers'><input name=name value=stolen><input name=mode value=live>\
         <button>go</button></form>",
        site.url
    );
    browser.open(&form).await;
    browser.click("button").await;
    browser.until_text("Pages of other sites may not call postroad dev").await;
    browser.open(&site.url_of("/servers")).await;
    browser.until("nav.side").await;
    assert!(!browser.page_text().await.contains("stolen"));
}

#[tokio::test]
async fn two_clicks_send_a_form_once_and_back_repeats_nothing() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let list = site.url_of(&format!("/servers/{server}/webhooks"));
    browser.open(&list).await;
    browser.fill("input[name=url]", "http://127.0.0.1:9/once").await;
    browser
        .run("const b = document.querySelector('form.stack > button'); b.click(); b.click(); return 1")
        .await;
    browser.until_text("Copy the secret now").await;
    let secret = browser.text(".secret").await;
    // The browser does not keep the page with the secret: going back shows no secret.
    browser.open(&list).await;
    browser.until(".rows tbody tr").await;
    assert_eq!(browser.count(".rows tbody tr").await, 1);
    browser.back().await;
    assert!(!browser.page_text().await.contains(&secret));
    browser.open(&list).await;
    browser.until(".rows tbody tr").await;
    assert_eq!(browser.count(".rows tbody tr").await, 1);
}

/// Page, fields, button, the list that shows what was created, and how it is shown there.
type CreatingForm<'a> = (String, &'a [(&'a str, &'a str)], &'a str, String, &'a str);

#[tokio::test]
async fn two_clicks_create_one_and_going_back_creates_none() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let of_server = |path: &str| format!("/servers/{server}{path}");
    let forms: [CreatingForm; 9] = [
        (
            "/servers".into(),
            &[("input[name=name]", "twice")],
            "form.stack > button",
            "/servers".into(),
            ">twice</a>",
        ),
        (
            of_server("/domains"),
            &[("input[name=name]", "twice.test")],
            "form.stack > button",
            of_server("/domains"),
            ">twice.test</a>",
        ),
        (
            of_server("/templates/new"),
            &[("input[name=name]", "Twice"), ("input[name=alias]", "twice")],
            "button[name=publish]",
            of_server("/templates"),
            ">Twice</a>",
        ),
        (
            of_server("/suppressions"),
            &[("form.stack input[name=address]", "twice@example.net")],
            "form.stack > button",
            of_server("/suppressions"),
            "twice@example.net</td>",
        ),
        (
            of_server("/first_message"),
            &[("input[name=to]", "twice@example.org")],
            "form.stack > button",
            of_server("/messages"),
            ">A first message from Postroad</a>",
        ),
        (
            "/account/domains".into(),
            &[("input[name=name]", "twice.example")],
            "form.stack > button",
            "/account/domains".into(),
            ">twice.example</a>",
        ),
        (
            "/account/people".into(),
            &[("input[name=email]", "twice@example.com")],
            "form.stack > button",
            "/account/people".into(),
            ">twice@example.com</td>",
        ),
        (
            "/account/pools".into(),
            &[("form[action='/account/pools'] input[name=name]", "twice")],
            "form[action='/account/pools'] button",
            "/account/pools".into(),
            "<h2>twice",
        ),
        (
            "/operator/accounts".into(),
            &[("form.stack input[name=name]", "Twice Ltd")],
            "form.stack > button",
            "/operator/accounts".into(),
            ">Twice Ltd</a>",
        ),
    ];
    let cookie = site.cookie().await;
    for (page, fields, button, list, shown) in forms {
        browser.open(&site.url_of(&page)).await;
        for (field, text) in fields {
            browser.fill(field, text).await;
        }
        let click = format!("const b = document.querySelector(\"{button}\"); b.click(); b.click(); return 1");
        browser.run(&click).await;
        let created = async || site.get(&list, &cookie).await.text().matches(shown).count();
        eventually(async || match created().await {
            0 => Err(format!("{page} created nothing: {}", browser.page_text().await)),
            _ => Ok(()),
        })
        .await;
        browser.until("h1").await;
        browser.back().await;
        browser.until("h1").await;
        browser.reload().await;
        browser.until("h1").await;
        assert_eq!(created().await, 1, "{page}");
    }
}

#[tokio::test]
async fn pages_need_a_session_and_unknown_servers_are_not_found() {
    let site = Site::start();
    for path in ["/", "/servers", "/servers/1", "/servers/1/messages", "/servers/1/live", "/servers/1/keys"] {
        let reply = site.get(path, "postroad=wrong").await;
        assert_eq!(reply.status, 303, "{path}");
        assert!(reply.headers["location"].to_str().unwrap().starts_with("/sign_in"), "{path}");
    }
    let cookie = site.cookie().await;
    assert_eq!(site.get("/servers/987654321", &cookie).await.status, 404);
    assert_eq!(site.get("/servers/987654321/messages", &cookie).await.status, 404);
}

#[tokio::test]
async fn a_key_form_sent_twice_makes_one_key() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let start = site.get("/", &cookie).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    let page = site.get(&format!("{server}/keys"), &cookie).await;
    let token = form_token(&page);
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let once = text.split_once("name=\"once\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let form = format!("csrf={token}&once={once}&name=twice&scope=send");
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let first = site.post(&format!("{server}/keys"), &headers, &form).await;
    assert!(String::from_utf8_lossy(&first.body).contains("not shown again"));
    let second = site.post(&format!("{server}/keys"), &headers, &form).await;
    assert!(String::from_utf8_lossy(&second.body).contains("shown once already"));
    let page = site.get(&format!("{server}/keys"), &cookie).await;
    assert_eq!(String::from_utf8_lossy(&page.body).matches(">twice").count(), 1);
}

#[tokio::test]
async fn a_key_form_refuses_the_address_scope_and_unknown_scopes() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.get("/", &cookie).await.headers["location"].to_str().unwrap().to_owned();
    let (_, admin) = join(&site, "admin", "admin").await;
    for cookie in [&admin, &cookie] {
        let page = site.get(&format!("{server}/keys"), cookie).await;
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        for scope in ["address", "everything", ""] {
            let form = format!("csrf={}&name=bound&scope={scope}&allow=192.0.2.1%2F32", form_token(&page));
            let reply = site.post(&format!("{server}/keys"), &headers, &form).await;
            assert_eq!(reply.status, 422, "{scope}: {}", reply.text());
        }
        assert!(!site.get(&format!("{server}/keys"), cookie).await.text().contains(">bound"));
    }
}
