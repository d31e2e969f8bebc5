//! The list of suppressed addresses: filters, export, import, and entries with a reason and an end.

use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn page_and_export_of_suppressions_are_filtered_by_reason_and_day() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let list = format!("{}/suppressions", service.server_path(&cookie).await);
    let key = service.ready("api_key");
    for (address, reason) in [("ann@example.net", "complaint"), ("bob@example.net", "manual")] {
        let new = json!({ "address": address, "reason": reason });
        call(&service, "x-server-api-key", &key, "suppressions/add", &new).await;
    }
    let shows = async |query: &str| {
        let page = service.get(&format!("{list}?{query}"), &cookie).await.text();
        let csv = service.get(&format!("{list}/export?{query}"), &cookie).await.text();
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
    assert_eq!(service.get(&format!("{list}/export?since=yesterday"), &cookie).await.status, 422);
}

#[tokio::test]
async fn an_address_is_suppressed_with_a_reason_until_a_day_and_several_are_removed() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/suppressions"));
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
    browser.accept_confirmation().await;
    browser.until_text("Removed").await;
    let text = browser.text("#list").await;
    assert!(!text.contains("ann@") && !text.contains("bob@") && text.contains("eve@example.net"), "{text}");
    // The button of a row removes that address alone.
    browser.click("#list td button").await;
    browser.accept_confirmation().await;
    browser.until_text("Nobody is suppressed").await;
    let cookie = service.sign_in().await;
    let form = "address=x@example.net&expires_at=2001-01-01";
    let refused = service.submit(&format!("/servers/{server}/suppressions"), &cookie, form).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(
        service.submit(&format!("/servers/{server}/suppressions/remove"), &cookie, "").await.status,
        422
    );
}

#[tokio::test]
async fn a_list_of_addresses_is_imported_and_its_invalid_lines_are_reported() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/suppressions"));
    browser.open(&page).await;
    browser.click("main > details summary").await;
    browser.fill("textarea[name=csv]", "ann@example.net\nno address\nbob@example.net").await;
    browser.click("form[action$='/import'] button").await;
    browser.until_text("1 line not taken").await;
    let text = browser.page_text().await;
    assert!(
        text.contains("Line 2:") && text.contains("ann@example.net") && text.contains("bob@example.net"),
        "{text}"
    );
    // The form is still open.
    browser.fill("textarea[name=csv]", "address,reason\neve@example.net,complaint").await;
    browser.click("form[action$='/import'] button").await;
    browser.until_text("every line was accepted").await;
    browser.until_text("eve@example.net").await;
}
