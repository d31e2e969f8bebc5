//! The template editor: checks and previews of unsaved texts, comparison of versions, rollback, and test messages.

use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, pictures, server_of};

#[tokio::test]
async fn texts_are_checked_without_being_saved() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/templates/new"))).await;
    browser.fill("input[name=name]", "Bill").await;
    browser.fill("input[name=subject]", "Bill {{ number }}").await;
    browser.fill("textarea[name=html_body]", "<p>{{ name }}</p>").await;
    browser.fill("textarea[name=sample_model]", "{ \"name\": \"Ann\" }").await;
    browser.click("button[formaction$='/new/check']").await;
    browser.until_text("Nothing was saved").await;
    assert!(browser.page_text().await.contains("number"), "{}", browser.page_text().await);
    browser.fill("textarea[name=sample_model]", "{ \"name\": \"Ann\", \"number\": 7 }").await;
    browser.click("button[formaction$='/new/check']").await;
    browser.until_text("No mistakes").await;
    let checked = browser.text("#checked").await;
    assert!(checked.contains("name") && checked.contains("number"), "{checked}");
    assert_eq!(browser.attribute("input[name=name]", "value").await.as_deref(), Some("Bill"));
    browser.screenshot(&pictures().join("template-checked.png")).await;
    let cookie = service.sign_in().await;
    let list = service.get(&format!("/servers/{server}/templates"), &cookie).await.text();
    assert!(!list.contains(">Bill<"), "it is not saved: {list}");
}

#[tokio::test]
async fn texts_are_previewed_without_being_saved() {
    let service = DevService::start();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    browser.open(&service.url_of(&format!("/servers/{server}/templates/new"))).await;
    assert!(browser.has("input[name=inline_css][checked]").await, "on by default, as in the API");
    browser.fill("input[name=name]", "Bill").await;
    browser.fill("textarea[name=html_body]", "<p style=\"color: red\">Dear {{ name }}</p>").await;
    browser.fill("textarea[name=sample_model]", "{ \"name\": \"Ann\", \"code\": 1 }").await;
    for _ in 0..2 {
        // Twice, because the form stays on the page: its answer is shown in the frame.
        browser.click("button[formtarget=draft]").await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    browser.screenshot(&pictures().join("template-draft.png")).await;
    assert_eq!(browser.run("return document.querySelector('[name=name]').value").await, "Bill");
    assert_eq!(browser.console().await, [""; 0]);
    let cookie = service.sign_in().await;
    let preview = async |path: &str, form: &str| {
        let reply =
            service.submit(&format!("/servers/{server}/templates/{path}/preview"), &cookie, form).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let policy = reply.headers["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("sandbox;"), "{policy}");
        reply.text()
    };
    let form = "name=Bill&subject=Bill&html_body=%3Cp%3EDear+%7B%7B+name+%7D%7D%3C%2Fp%3E%3Ciframe%3E&sample_model=%7B%22name%22%3A%22Ann%22%7D";
    let shown = preview("new", form).await;
    assert!(shown.contains("<p>Dear Ann</p>") && !shown.contains("<iframe"), "{shown}");
    let new = json!({ "name": "Old", "html_body": "<p>Old</p>", "subject": "x" });
    let id =
        call(&service, "x-server-api-key", &service.ready("api_key"), "templates/create", &new).await["id"]
            .clone();
    let shown = preview(&id.to_string(), form).await;
    assert!(shown.contains("<p>Dear Ann</p>"), "{shown}");
    let wrong = preview("new", "name=x&html_body=%7B%7B+name&subject=y").await;
    assert!(wrong.contains("cannot be rendered"), "{wrong}");
    // After a check, the preview of the saved version is not shown.
    browser.open(&service.url_of(&format!("/servers/{server}/templates/{id}"))).await;
    browser.click("button[formaction$='/check']").await;
    browser.until_text("No mistakes").await;
    assert!(!browser.has("iframe[src]").await);
    let list = service.get(&format!("/servers/{server}/templates"), &cookie).await.text();
    assert!(!list.contains(">Bill<"), "nothing was saved: {list}");
}

#[tokio::test]
async fn a_template_of_the_maximum_size_is_saved_in_the_editor() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    // Just below the size limit of a body. URL-encoding makes three bytes of each byte.
    let chars = 255 << 10;
    let encoded = "%C3%BC".repeat(chars);
    let mut form = vec![format!("name=Large&subject=x&plain_body={encoded}")];
    for (at, tag) in ["de", "fr", "it"].into_iter().enumerate() {
        form.push(format!("locale_tag_{at}={tag}&locale_plain_{at}={encoded}"));
    }
    let saved = service.submit(&format!("{server}/templates/new"), &cookie, &form.join("&")).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    let location = saved.headers["location"].to_str().unwrap();
    let id: i64 = location.rsplit_once('/').unwrap().1.split('?').next().unwrap().parse().unwrap();
    let key = service.ready("api_key");
    let found = call(&service, "x-server-api-key", &key, "templates/get", &json!({ "id": id })).await;
    let bytes = |texts: &serde_json::Value| texts["plain_body"].as_str().unwrap().len();
    assert_eq!((bytes(&found), bytes(&found["locales"]["it"])), (2 * chars, 2 * chars));
    // Other forms have a lower limit.
    let refused = service.submit("/servers", &cookie, &format!("name={encoded}{encoded}&mode=live")).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("larger than 2 MiB"), "{}", refused.text());
}

#[tokio::test]
async fn a_template_is_previewed_and_compared_with_a_chosen_model_and_language() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let key = service.ready("api_key");
    let call = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    let new = json!({
        "name": "Bill", "alias": "bill", "subject": "Bill for {{ name }}", "html_body": "<p>One {{ name }}</p>",
        "sample_model": { "name": "Ann" }, "locales": { "de": { "html_body": "<p>Eins {{ name }}</p>" } },
        "publish": true,
    });
    let id = call("templates/create", new).await["id"].clone();
    for text in ["Two", "Three"] {
        let change = json!({
            "id": id, "html_body": format!("<p>{text} {{{{ name }}}}</p>"),
            "locales": { "de": { "html_body": format!("<p>Deutsch {text} {{{{ name }}}}</p>") } },
        });
        call("templates/update", change).await;
    }
    let path = format!("{server}/templates/{id}");
    let browser = service.signed_in_browser().await;
    browser.open(&service.url_of(&path)).await;
    browser.until_text("Bill for Ann").await;
    browser.click("#try summary").await;
    browser.fill("#try textarea", "{ \"name\": \"Zoe\" }").await;
    browser.fill("#try input[name=locale]", "de").await;
    browser.click("#try button").await;
    browser.until_text("Bill for Zoe").await;
    browser.screenshot(&pictures().join("template-model.png")).await;
    let frame = browser.attribute("iframe", "src").await.unwrap();
    assert!(service.get(&frame, &cookie).await.text().contains("Deutsch Three Zoe"));
    let wrong = service.get(&format!("{path}?model=%5B1"), &cookie).await;
    assert!(
        wrong.status == 200 && wrong.text().contains("The model is not a JSON object"),
        "{}",
        wrong.text()
    );
    let missing = service.get(&format!("{path}?model=%7B%7D"), &cookie).await;
    assert!(missing.text().contains("name"), "{}", missing.text());
    // Compare the first and the third version, in German.
    let compare = format!("{path}/compare?from=1&to=3&locale=de&model=%7B%22name%22%3A%22Zoe%22%7D");
    browser.open(&service.url_of(&compare)).await;
    browser.until(".diff .added").await;
    let text = browser.page_text().await;
    assert!(
        text.contains("Eins Zoe") && text.contains("Deutsch Three Zoe") && !text.contains("Two"),
        "{text}"
    );
    browser.screenshot(&pictures().join("template-compare-any.png")).await;
    browser.fill("input[name=from]", "2").await;
    browser.click("form.search button").await;
    browser.until_text("Version 2 to 3").await;
    assert_eq!(service.get(&format!("{path}/compare?from=1&to=9"), &cookie).await.status, 404);
}

#[tokio::test]
async fn the_test_mail_form_suggests_a_sender_and_the_browser_asks_before_unsaved_texts_are_lost() {
    let service = DevService::start();
    let key = service.ready("api_key");
    let new =
        json!({ "name": "Bill", "html_body": "<p>Old</p>\r\n<p>Two</p>", "subject": "x", "publish": true });
    let id = call(&service, "x-server-api-key", &key, "templates/create", &new).await["id"].clone();
    let browser = service.signed_in_browser().await;
    let server = server_of(&browser).await;
    let page = service.url_of(&format!("/servers/{server}/templates/{id}"));
    browser.open(&page).await;
    assert_eq!(
        browser.attribute("form[action$='/send_test'] input[name=from]", "value").await.as_deref(),
        Some("hello@example.test")
    );
    let asks_before_leaving = async || {
        let script = "const leaving = new Event('beforeunload', { cancelable: true }); dispatchEvent(leaving); \
                      return leaving.defaultPrevented";
        browser.run(script).await.as_bool().unwrap()
    };
    assert!(!asks_before_leaving().await);
    browser.fill("textarea[name=html_body]", "<p>New</p>").await;
    assert!(asks_before_leaving().await);
    // The texts of a check are not saved either.
    browser.click("button[formaction$='/check']").await;
    browser.until_text("No mistakes").await;
    assert!(asks_before_leaving().await);
    // The page with the result of the check can save the texts too.
    browser.click("button[name=publish]").await;
    browser.until_text("Version 2 published").await;
    assert!(!asks_before_leaving().await);
    browser.click("form[action$='/send_test'] button").await;
    browser.until("#message").await;
}

#[tokio::test]
async fn a_test_mail_is_sent_from_an_unpublished_draft() {
    let service = DevService::start();
    let (browser, key) = (service.signed_in_browser().await, service.ready("api_key"));
    let server = server_of(&browser).await;
    let call = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    let new = json!({
        "name": "Bill", "alias": "bill", "subject": "Bill {{ n }}", "html_body": "<p>First {{ n }}</p>",
        "sample_model": { "n": 7 }, "locales": { "de": { "subject": "Rechnung {{ n }}" } },
    });
    let id = call("templates/create", new).await["id"].clone();
    let editor = service.url_of(&format!("/servers/{server}/templates/{id}"));
    let send = async |page: &str, subject: &str| {
        browser.open(page).await;
        browser.click("form[action$='/send_test'] button").await;
        browser.until("#message").await;
        browser.until_text(subject).await;
    };
    // Nothing is published yet.
    send(&editor, "Bill 7").await;
    call("templates/publish", json!({ "id": id, "version": 1 })).await;
    call("templates/update", json!({ "id": id, "subject": "Draft {{ n }}", "sample_model": { "n": 8 } }))
        .await;
    // The version shown is preselected; `version` in the query selects another.
    send(&editor, "Draft 8").await;
    send(&format!("{editor}?version=1"), "Bill 7").await;
    browser.open(&editor).await;
    let labels = browser.text("select[name=version]").await;
    assert!(labels.contains("2, not published") && labels.contains("1, published"), "{labels}");
    browser.run("document.querySelector('select[name=version]').scrollIntoView()").await;
    browser.screenshot(&pictures().join("template-send-test.png")).await;
    let cookie = service.sign_in().await;
    let path = format!("/servers/{server}/templates/{id}/send_test");
    let form = "from=shop@example.test&to=ann@example.net&locale=de&version=2";
    let sent = service.submit(&path, &cookie, form).await;
    let sent = service.get(sent.headers["location"].to_str().unwrap(), &cookie).await.text();
    assert!(sent.contains("Rechnung 8"), "{sent}");
    let unknown = "from=shop@example.test&to=ann@example.net&version=9";
    assert_eq!(service.submit(&path, &cookie, unknown).await.status, 404);
}

#[tokio::test]
async fn a_template_is_rolled_back_and_older_versions_are_previewed() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let key = service.ready("api_key");
    let call = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    let new = json!({ "name": "Bill", "alias": "bill", "subject": "x", "html_body": "<p>Text of one</p>", "publish": true });
    let id = call("templates/create", new).await["id"].clone();
    let change = json!({ "id": id, "html_body": "<p>Text of two</p>", "publish": true });
    call("templates/update", change).await;
    let path = format!("{server}/templates/{id}");
    let page = service.get(&format!("{path}?version=1"), &cookie).await.text();
    assert!(page.contains("Preview of version 1") && page.contains("The newest is"), "{page}");
    let preview = format!("{path}/preview?version=1");
    assert!(page.contains(&format!("src=\"{preview}\"")), "{page}");
    assert!(service.get(&preview, &cookie).await.text().contains("Text of one"));
    let page = service.get(&path, &cookie).await.text();
    assert!(page.contains("Preview of version 2") && !page.contains("The newest is"), "{page}");
    assert!(page.contains("Roll back to version 1"), "{page}");
    for _ in 0..2 {
        assert_eq!(service.submit(&format!("{path}/rollback"), &cookie, "version=1").await.status, 303);
        let page = service.get(&path, &cookie).await.text();
        assert!(page.contains("Version 1 published"), "{page}");
    }
}
