//! Forms that other sites send or that are sent twice, and headers against framing and scripting.

use postroad_testkit::eventually;

use crate::pages::{self, OPEN_PAGES, PAGES};
use crate::roles::join;
use crate::service::{DevService, form_token, server_of};

#[tokio::test]
async fn forms_of_other_sites_and_other_sessions_change_nothing() {
    let service = DevService::start();
    let (cookie, other_cookie) = (service.sign_in().await, service.sign_in().await);
    let token = form_token(&service.get("/servers", &cookie).await);
    let other_token = form_token(&service.get("/servers", &other_cookie).await);
    let own_origin = service.url.clone();
    let good_form = format!("csrf={token}&name=made&mode=live");
    let same_origin = ("sec-fetch-site", "same-origin");
    for (headers, form, what) in [
        (vec![("cookie", cookie.as_str())], good_form.clone(), "no origin"),
        (vec![("cookie", &cookie), ("origin", "https://evil.example")], good_form.clone(), "foreign origin"),
        (
            vec![("cookie", &cookie), ("origin", &own_origin), ("sec-fetch-site", "cross-site")],
            good_form.clone(),
            "cross-site",
        ),
        (vec![("cookie", &cookie), ("sec-fetch-site", "same-site")], good_form.clone(), "same site"),
        (vec![("cookie", &cookie), same_origin], "name=made&mode=live".to_owned(), "no token"),
        (
            vec![("cookie", &cookie), same_origin],
            format!("csrf={other_token}&name=made"),
            "another session's token",
        ),
    ] {
        let reply = service.post("/servers", &headers, &form).await;
        assert_eq!(reply.status, 403, "{what}");
    }
    // Without a session, the form leads to the sign-in page and changes nothing.
    assert_eq!(service.post("/servers", &[same_origin], &good_form).await.status, 303);
    let page = service.get("/servers", &cookie).await;
    assert!(!String::from_utf8_lossy(&page.body).contains(">made<"));
    let reply = service
        .post("/servers", &[("cookie", &cookie), same_origin, ("origin", &own_origin)], &good_form)
        .await;
    assert_eq!(reply.status, 303);
    assert!(String::from_utf8_lossy(&service.get("/servers", &cookie).await.body).contains(">made<"));
}

#[tokio::test]
async fn answers_forbid_framing_scripting_and_caching() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let cookie = service.sign_in().await;
    let signed_in_pages = PAGES
        .iter()
        .map(|(_, route, query, _)| (pages::path_of(&placeholders, route, query), cookie.as_str()));
    let open_pages =
        OPEN_PAGES.iter().map(|(_, route, query, _)| (pages::path_of(&placeholders, route, query), ""));
    let missing_page = ("/servers/999999999".to_owned(), cookie.as_str());
    for (path, cookie) in signed_in_pages.chain(open_pages).chain([missing_page]) {
        let reply = service.get(&path, cookie).await;
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
    let link = service.ready("sign_in_url");
    let reply = service.client.get(link.strip_prefix(&service.url).unwrap()).await.unwrap();
    let set_cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(
        set_cookie.contains("HttpOnly")
            && set_cookie.contains("SameSite=Lax")
            && set_cookie.contains("Path=/"),
        "{set_cookie}"
    );
}

#[tokio::test]
async fn pages_cannot_be_framed_and_foreign_forms_change_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let reply = service.client.get("/sign_in").await.unwrap();
    let policy = reply.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    // A page of another origin with a form for the portal.
    let form = format!(
        "data:text/html,<form method=post action='{}/servers'><input name=name value=stolen><input name=mode value=live>\
         <button>go</button></form>",
        service.url
    );
    browser.open(&form).await;
    browser.click("button").await;
    browser.until_text("Pages of other sites may not call postroad dev").await;
    browser.open(&service.url_of("/servers")).await;
    browser.until("nav.side").await;
    assert!(!browser.page_text().await.contains("stolen"));
}

#[tokio::test]
async fn two_clicks_send_a_form_once_and_going_back_repeats_nothing() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let list = service.url_of(&format!("/servers/{server}/webhooks"));
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

/// Page, fields, button, path of the list of created objects, and the new object's text in that list.
type CreatingForm<'a> = (String, &'a [(&'a str, &'a str)], &'a str, String, &'a str);

#[tokio::test]
async fn two_clicks_create_one_object_and_going_back_creates_none() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let server_path = |path: &str| format!("/servers/{server}{path}");
    let forms: [CreatingForm; 9] = [
        (
            "/servers".into(),
            &[("input[name=name]", "twice")],
            "form.stack > button",
            "/servers".into(),
            ">twice</a>",
        ),
        (
            server_path("/domains"),
            &[("input[name=name]", "twice.test")],
            "form.stack > button",
            server_path("/domains"),
            ">twice.test</a>",
        ),
        (
            server_path("/templates/new"),
            &[("input[name=name]", "Twice"), ("input[name=alias]", "twice")],
            "button[name=publish]",
            server_path("/templates"),
            ">Twice</a>",
        ),
        (
            server_path("/suppressions"),
            &[("form.stack input[name=address]", "twice@example.net")],
            "form.stack > button",
            server_path("/suppressions"),
            "twice@example.net</td>",
        ),
        (
            server_path("/first_message"),
            &[("input[name=to]", "twice@example.org")],
            "form.stack > button",
            server_path("/messages"),
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
    let cookie = service.sign_in().await;
    for (page, fields, button, list, shown) in forms {
        browser.open(&service.url_of(&page)).await;
        for (field, text) in fields {
            browser.fill(field, text).await;
        }
        let click = format!("const b = document.querySelector(\"{button}\"); b.click(); b.click(); return 1");
        browser.run(&click).await;
        let created = async || service.get(&list, &cookie).await.text().matches(shown).count();
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
    let service = DevService::start();
    for path in ["/", "/servers", "/servers/1", "/servers/1/messages", "/servers/1/live", "/servers/1/keys"] {
        let reply = service.get(path, "postroad=wrong").await;
        assert_eq!(reply.status, 303, "{path}");
        assert!(reply.headers["location"].to_str().unwrap().starts_with("/sign_in"), "{path}");
    }
    let cookie = service.sign_in().await;
    assert_eq!(service.get("/servers/987654321", &cookie).await.status, 404);
    assert_eq!(service.get("/servers/987654321/messages", &cookie).await.status, 404);
}

#[tokio::test]
async fn a_form_for_a_new_key_sent_twice_creates_one_key() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let start = service.get("/", &cookie).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    let page = service.get(&format!("{server}/keys"), &cookie).await;
    let token = form_token(&page);
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let once = text.split_once("name=\"once\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    let form = format!("csrf={token}&once={once}&name=twice&scope=send");
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let first = service.post(&format!("{server}/keys"), &headers, &form).await;
    assert!(String::from_utf8_lossy(&first.body).contains("not shown again"));
    let second = service.post(&format!("{server}/keys"), &headers, &form).await;
    assert!(String::from_utf8_lossy(&second.body).contains("shown once already"));
    let page = service.get(&format!("{server}/keys"), &cookie).await;
    assert_eq!(String::from_utf8_lossy(&page.body).matches(">twice").count(), 1);
}

#[tokio::test]
async fn a_form_for_a_new_key_is_refused_with_the_scope_address_or_an_unknown_scope() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.get("/", &cookie).await.headers["location"].to_str().unwrap().to_owned();
    let (_, admin) = join(&service, "admin", "admin").await;
    for cookie in [&admin, &cookie] {
        let page = service.get(&format!("{server}/keys"), cookie).await;
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        for scope in ["address", "everything", ""] {
            let form = format!("csrf={}&name=bound&scope={scope}&allow=192.0.2.1%2F32", form_token(&page));
            let reply = service.post(&format!("{server}/keys"), &headers, &form).await;
            assert_eq!(reply.status, 422, "{scope}: {}", reply.text());
        }
        assert!(!service.get(&format!("{server}/keys"), cookie).await.text().contains(">bound"));
    }
}
