//! The list of suppressed addresses: filters, export, and entries with a reason and an end.

use serde_json::json;

use crate::roles::call;
use crate::site::{Site, pictures, server_of};

#[tokio::test]
async fn page_and_export_of_suppressions_are_filtered_by_reason_and_day() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let list = format!("{}/suppressions", site.server_path(&cookie).await);
    let key = site.ready("api_key");
    for (address, reason) in [("ann@example.net", "complaint"), ("bob@example.net", "manual")] {
        let new = json!({ "address": address, "reason": reason });
        call(&site, "x-server-api-key", &key, "suppressions/add", &new).await;
    }
    let shows = async |query: &str| {
        let page = site.get(&format!("{list}?{query}"), &cookie).await.text();
        let csv = site.get(&format!("{list}/export?{query}"), &cookie).await.text();
        let both = ["ann@example.net", "bob@example.net"];
        let on_page = both.map(|address| page.contains(&format!(">{address}<")));
        assert_eq!(both.map(|address| csv.contains(address)), on_page, "{query}: {csv}");
        assert!(csv.starts_with("address,reason,"), "{csv}");
        on_page
    };
    assert_eq!(shows("").await, [true, true]);
    assert_eq!(shows("reason=complaint").await, [true, false]);
    assert_eq!(shows("since=2026-01-01").await, [true, true]);
    assert_eq!(shows("until=2026-01-01").await, [false, false]);
    assert_eq!(shows("reason=manual&since=2026-01-01&until=2090-01-01").await, [false, true]);
    assert_eq!(site.get(&format!("{list}/export?since=yesterday"), &cookie).await.status, 422);
}

#[tokio::test]
async fn an_address_is_suppressed_with_a_reason_until_a_day_and_several_are_removed() {
    let site = Site::start();
    let browser = site.browser().await;
    let server = server_of(&browser).await;
    let page = site.url_of(&format!("/servers/{server}/suppressions"));
    browser.open(&page).await;
    let form = "form[action$='/suppressions']";
    browser.fill(&format!("{form} input[name=address]"), "ann@example.net").await;
    browser.click(&format!("{form} details summary")).await;
    let choose = "const form = document.querySelector(\"form[action$='/suppressions']\"); \
                  form.querySelector('[name=reason]').value = 'complaint'; \
                  form.querySelector('[name=expires_at]').value = '2090-01-30'; return 1";
    browser.run(choose).await;
    browser.click(&format!("{form} > button")).await;
    browser.until_text("Created").await;
    browser.until_text("ann@example.net").await;
    let text = browser.text("#list").await;
    assert!(text.contains("Complaint") && text.contains("until"), "{text}");
    assert_eq!(
        browser.attribute("#list td small time", "datetime").await.as_deref(),
        Some("2090-01-31T00:00:00.000Z"),
        "to the end of the day"
    );
    // An import with another reason.
    browser.click("main > details summary").await;
    browser.fill("textarea[name=csv]", "bob@example.net\neve@example.net").await;
    browser.run("document.querySelector(\"form[action$='/import'] [name=reason]\").value = 'unsubscribe'; return 1").await;
    browser.click("form[action$='/import'] button").await;
    browser.until_text("every line was accepted").await;
    assert_eq!(browser.text("#list").await.matches("Unsubscribed").count(), 2);
    browser.screenshot(&pictures().join("suppressions-several.png")).await;
    for address in ["ann@example.net", "bob@example.net"] {
        browser.click(&format!("input[value='{address}']")).await;
    }
    browser.click(".bulk button").await;
    browser.accept_question().await;
    browser.until_text("Removed").await;
    let text = browser.text("#list").await;
    assert!(!text.contains("ann@") && !text.contains("bob@") && text.contains("eve@example.net"), "{text}");
    // The button of a row removes that address alone.
    browser.click("#list td button").await;
    browser.accept_question().await;
    browser.until_text("Nobody is suppressed").await;
    let cookie = site.cookie().await;
    let form = "address=x@example.net&expires_at=2001-01-01";
    let refused = site.submit(&format!("/servers/{server}/suppressions"), &cookie, form).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(site.submit(&format!("/servers/{server}/suppressions/remove"), &cookie, "").await.status, 422);
}
