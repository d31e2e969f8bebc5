//! The list of servers, and the start page, which opens one of them.

use postroad_testkit::eventually;
use serde_json::json;

use crate::service::{DevService, SecondServer, pictures, server_of};

#[tokio::test]
async fn servers_are_listed_with_their_figures_and_problems() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let development = SecondServer::create_development(&service).await;
    let id = service.send(json!({})).await;
    service.until_status(id, "Sent").await;
    development.send(&service, json!({})).await;
    let gate = format!("/servers/{server}/queue/suspend");
    assert_eq!(service.submit(&gate, &service.sign_in().await, "reason=moving").await.status, 303);
    service.send(json!({ "to": ["ann@waiting.example"] })).await;
    browser.open(&service.url_of("/servers")).await;
    let figures = async |server: i64| {
        let row = format!("tbody tr:has(a[href='/servers/{server}'])");
        let text = async |label: &str| browser.text(&format!("{row} td[data-label='{label}']")).await;
        [text("Accepted").await, text("Held").await, text("Waiting").await, text("Problems").await]
    };
    eventually(async || {
        browser.reload().await;
        let found = figures(server).await;
        if found == ["2", "0", "1", "1 to look at"] { Ok(()) } else { Err(found.join(" / ")) }
    })
    .await;
    assert_eq!(figures(development.id).await, ["1", "1", "0", "none"]);
    browser.screenshot(&pictures().join("servers-figures.png")).await;
    browser.set_size(390, 844).await;
    browser.screenshot(&pictures().join("servers-figures-phone.png")).await;
    browser.click(&format!("a[href='/servers/{server}#troubles']")).await;
    browser.until_text("Sending is stopped or slowed by a gate: moving").await;
}

#[tokio::test]
async fn the_start_page_opens_the_last_server_that_was_viewed() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let first = service.server_path(&cookie).await;
    let second = SecondServer::create_development(&service).await.id;
    let reply = service.get(&format!("/servers/{second}/messages"), &cookie).await;
    let set_cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(set_cookie.starts_with(&format!("server={second}; ")), "{set_cookie}");
    assert!(
        set_cookie.contains("HttpOnly")
            && set_cookie.contains("SameSite=Lax")
            && set_cookie.contains("Path=/"),
        "{set_cookie}"
    );
    let start = async |server: &str| {
        let reply = service.get("/", &format!("{cookie}; server={server}")).await;
        reply.headers["location"].to_str().unwrap().to_owned()
    };
    assert_eq!(start(&second.to_string()).await, format!("/servers/{second}"));
    let again = service.get(&format!("/servers/{second}"), &format!("{cookie}; server={second}")).await;
    assert!(again.headers.get("set-cookie").is_none());
    // The first server is opened for an id that no server has, and for a text that is not an id.
    for wrong in ["987654321", "x", "-1", "../evil", ""] {
        assert_eq!(start(wrong).await, first, "{wrong}");
    }
    let missing = service.get("/servers/987654321", &cookie).await;
    assert!(missing.headers.get("set-cookie").is_none());
    // In the browser, the link in the head of a page leads to the last viewed server too.
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&format!("/servers/{second}/queue"))).await;
    browser.until_text("What waits").await;
    browser.click("a.brand").await;
    browser.until(&format!("nav.side a[href='/servers/{second}'][aria-current]")).await;
    // A deleted server is not opened.
    let deleted = service.submit(&format!("/servers/{second}/delete"), &cookie, "name=staging").await;
    assert_eq!(deleted.status, 303, "{}", deleted.text());
    assert_eq!(start(&second.to_string()).await, first);
}
