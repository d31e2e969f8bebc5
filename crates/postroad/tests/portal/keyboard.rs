//! Keyboard shortcuts, and the menu on a phone.

use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn a_dialog_lists_the_shortcuts_and_all_of_them_work() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.until("[data-shortcuts]").await;
    browser.press("?").await;
    browser.until("dialog[open]").await;
    let text = browser.text("dialog[open]").await;
    for row in ["Keyboard shortcuts", "Messages", "Analytics", "Audit log", "Operator", "Account keys", "You"]
    {
        assert!(text.contains(row), "{row}: {text}");
    }
    browser.screenshot(&pictures().join("shortcuts.png")).await;
    browser.click("dialog button").await;
    browser.until("body:not(:has(dialog))").await;
    // Shortcuts to pages of the server, of the account and of the operator.
    for (keys, path) in [
        ("gm", format!("/servers/{server}/messages")),
        ("gk", format!("/servers/{server}/keys")),
        ("gh", "/account/keys".to_owned()),
        ("gl", "/account/audit".to_owned()),
        ("gx", "/operator".to_owned()),
        ("gv", "/servers".to_owned()),
    ] {
        browser.press(keys).await;
        browser.until(&format!("nav.side a[href='{path}'][aria-current]")).await;
    }
    // The person's menu opens the dialog too.
    browser.click("details.person summary").await;
    browser.click("[data-shortcuts]").await;
    browser.until("dialog[open]").await;
    assert!(!browser.has("details.person[open]").await);
    // The key `/` moves the focus to the search field; a `?` typed there is no shortcut.
    browser.open(&service.url_of(&format!("/servers/{server}/messages"))).await;
    browser.press("/?").await;
    assert!(!browser.has("dialog").await);
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn on_a_phone_the_menu_is_scrolled_to_the_current_page() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.set_size(390, 844).await;
    for page in ["", "/analytics", "/keys", "/settings"] {
        browser.open(&service.url_of(&format!("/servers/{server}{page}"))).await;
        browser.until("nav.side [aria-current]").await;
        let script = "const at = document.querySelector('nav.side [aria-current]').getBoundingClientRect(); \
                      return [at.left >= 0, at.right <= innerWidth, scrollY]";
        assert_eq!(browser.run(script).await, serde_json::json!([true, true, 0]), "{page}");
    }
    browser.screenshot(&pictures().join("phone-menu.png")).await;
}
