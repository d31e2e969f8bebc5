//! Refused forms come back with what was typed, below the menu; other problems have the menu and a link back.

use std::time::Duration;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::Reply;
use serde_json::json;

use crate::roles::call;
use crate::service::{DevService, form_token, hidden_field};

/// Sends a form as a browser does from a page of the portal.
async fn submit_from(service: &DevService, page: &str, path: &str, cookie: &str, fields: &str) -> Reply {
    let token = form_token(&service.get("/servers", cookie).await);
    let referer = service.url_of(page);
    let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin"), ("referer", referer.as_str())];
    service.post(path, &headers, &format!("csrf={token}&{fields}")).await
}

#[tokio::test]
async fn a_refused_form_comes_back_on_its_page_with_what_was_typed() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let key = service.ready("api_key");
    let by_key = async |path: &str, body| call(&service, "x-server-api-key", &key, path, &body).await;
    let content = json!({ "name": "Welcome", "alias": "welcome", "subject": "Hi", "plain_body": "Hi", "publish": true });
    let template = by_key("templates/create", content).await["id"].as_i64().unwrap();
    by_key("suppressions/add", json!({ "address": "gone@example.net", "reason": "manual" })).await;
    let held = service.send(json!({ "to": ["gone@example.net"] })).await;
    service.until_status(held, "Held").await;
    let tomorrow = SystemClock.now().plus(Duration::from_hours(24)).to_rfc3339();
    service.send(json!({ "send_at": tomorrow })).await;
    service.submit("/account/pools", &cookie, "name=first").await;
    service.submit("/account/pools", &cookie, "name=second").await;
    let pools = service.get("/account/pools", &cookie).await.text();
    let pool = pools.rsplit("name=\"pool\" value=\"").next().unwrap().split('"').next().unwrap().to_owned();
    let keys = service.get(&format!("{server}/keys"), &cookie).await.text();
    let edit = keys.split(&format!("action=\"{server}/keys/")).nth(1).unwrap();
    let key_id = edit.split(['"', '/']).next().unwrap();
    let message = format!("{server}/messages/{held}");
    // Page, action of its form, fields, text of the problem, and a part of the form that is shown again.
    let forms: Vec<(String, String, String, &str, &str)> = vec![
        (
            message.clone(),
            format!("{message}/act"),
            "act=release".into(),
            "The recipient is suppressed",
            ">Release<",
        ),
        (
            format!("{server}/messages?tab=held&q=to%3Agone"),
            format!("{server}/messages/bulk"),
            "act=release&tab=held&q=to%3Agone".into(),
            "No message is ticked",
            "value=\"to:gone\"",
        ),
        (
            format!("{server}/suppressions"),
            format!("{server}/suppressions/remove"),
            String::new(),
            "No address is ticked",
            "gone@example.net",
        ),
        (
            format!("{server}/messages?tab=scheduled"),
            format!("{server}/messages/reschedule"),
            "tag=nobody&send_at=2100-01-01T00%3A00%3A00Z".into(),
            "within the next 30 days",
            "value=\"nobody\"",
        ),
        (
            format!("{server}/templates/{template}"),
            format!("{server}/templates/{template}/send_test"),
            "from=me%40elsewhere.test&to=typed%40example.net".into(),
            "elsewhere.test",
            "value=\"typed@example.net\"",
        ),
        (
            format!("{server}/domains/example.test"),
            format!("{server}/domains/example.test/rotate_dkim"),
            "private_key=-----BEGIN+NOTHING-----&selector=mine".into(),
            "private key",
            "-----BEGIN NOTHING-----</textarea>",
        ),
        (
            format!("{server}/domains"),
            format!("{server}/domains"),
            "name=new.example&private_key=-----BEGIN+NOTHING-----&selector=mine".into(),
            "private key",
            "value=\"new.example\"",
        ),
        (
            format!("{server}/settings"),
            format!("{server}/delete"),
            "name=wrong".into(),
            "Type the name of the server",
            "value=\"wrong\"",
        ),
        (
            format!("{server}/keys"),
            format!("{server}/keys/{key_id}"),
            "version=1&name=typed+name&allow=nowhere".into(),
            "not a network",
            "value=\"typed name\"",
        ),
        (
            format!("{server}/queue"),
            format!("{server}/queue/suspend"),
            "reason=typed+reason&hours=soon".into(),
            "The number of hours",
            "value=\"typed reason\"",
        ),
        (
            "/operator".into(),
            "/operator/suspend".into(),
            "scope=everything&reason=typed+reason&hours=soon".into(),
            "The number of hours",
            "value=\"typed reason\"",
        ),
        (
            "/account/keys".into(),
            "/account/keys".into(),
            "name=typed+key&scopes=wrong".into(),
            "Scopes are full",
            "value=\"typed key\"",
        ),
        (
            "/operator/keys".into(),
            "/operator/keys".into(),
            "name=typed+key&scopes=wrong".into(),
            "Scopes are full",
            "value=\"typed key\"",
        ),
        (
            "/account/pools".into(),
            "/account/pools/address".into(),
            format!("pool={pool}&address=192.0.2.300&helo=typed.example"),
            "The address should look like",
            "value=\"typed.example\"",
        ),
        (
            "/account/people".into(),
            "/account/people".into(),
            "email=typed&role=admin".into(),
            "role=\"alert\"",
            "value=\"typed\"",
        ),
    ];
    for (page, path, fields, expected_problem, expected_part) in &forms {
        // Without a Referer the answer has at least the menu. The page with the form is found only if its path is a
        // parent of the action.
        let bare = service.submit(path, &cookie, fields).await;
        assert!(bare.text().contains("class=\"side\""), "{path}: {}", bare.text());
        let reply = submit_from(&service, page, path, &cookie, fields).await;
        let text = reply.text();
        assert_eq!(reply.status, 422, "{path}: {text}");
        assert!(
            text.contains("class=\"side\"") && text.contains(expected_problem),
            "{path}: {expected_problem}: {text}"
        );
        assert_eq!(text.matches("role=\"alert\"").count(), 1, "{path}: {text}");
        assert!(text.contains(expected_part), "{path}: {expected_part}: {text}");
    }
    // If several forms of a page have the same action, only the submitted one is refilled. The page of pools has a form
    // for new addresses at each pool; `forms[13]` is one of them.
    let text =
        submit_from(&service, "/account/pools", "/account/pools/address", &cookie, &forms[13].2).await.text();
    assert_eq!(text.matches("value=\"typed.example\"").count(), 1, "{text}");
    // Links on the refilled page are based on the page's path, not on the form's action.
    let text =
        submit_from(&service, &message, &format!("{message}/act"), &cookie, "act=release").await.text();
    assert!(text.contains(&format!("href=\"{message}?view=events\"")), "{text}");
    // The page of the held message links to the suppression of its recipient.
    let link = format!("{server}/suppressions?address=gone%40example.net");
    assert!(service.get(&message, &cookie).await.text().contains(&link));
    assert!(service.get(&link, &cookie).await.text().contains("Remove"));
}

#[tokio::test]
async fn a_problem_has_the_menu_and_links_back_only_to_our_own_pages() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let path = format!("{server}/messages/999999999999");
    let load_missing_page = async |referer: &str, more: Option<(&str, &str)>| {
        let mut headers = vec![("cookie", cookie.as_str()), ("referer", referer)];
        headers.extend(more);
        let method = postroad_testkit::http::Method::GET;
        let reply = service.client.request(method, &path, &headers, Vec::new().into()).await.unwrap();
        assert_eq!(reply.status, 404, "{referer}");
        reply.text()
    };
    let own = service.url_of("/servers?done=saved&q=%22%3E");
    let text = load_missing_page(&own, None).await;
    assert!(text.contains("class=\"side\"") && text.contains("There is nothing here"), "{text}");
    assert!(text.contains("href=\"/servers?q=%22%3E\">Go back</a>"), "{text}");
    assert!(!text.contains("class=\"notice\""), "{text}");
    let foreign =
        ["https://evil.example/servers", "//evil.example/", "javascript:alert(1)", ""].map(ToOwned::to_owned);
    for foreign in foreign
        .into_iter()
        .chain([format!("{}//evil.example/", service.url), format!("{}.evil.example/x", service.url)])
    {
        let text = load_missing_page(&foreign, None).await;
        assert!(!text.contains("Go back") && !text.contains("evil"), "{foreign}: {text}");
    }
    // A frame or a script gets no menu.
    assert!(!load_missing_page(&own, Some(("sec-fetch-dest", "iframe"))).await.contains("class=\"side\""));
    // A wrong token is refused below the menu; a person who is not signed in is sent to the sign-in page.
    let stale = service
        .post("/servers", &[("cookie", &cookie), ("sec-fetch-site", "same-origin")], "csrf=x&name=a")
        .await;
    assert!(stale.status == 403 && stale.text().contains("class=\"side\""), "{}", stale.text());
    let nobody = service.post("/servers", &[("sec-fetch-site", "same-origin")], "csrf=x&name=a").await;
    assert_eq!(nobody.status, 303);
}

#[tokio::test]
async fn refused_forms_of_a_server_keep_what_was_typed() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let refused = async |path: &str, form: &str| {
        let reply = service.submit(&format!("{server}{path}"), &cookie, form).await;
        assert_eq!(reply.status, 422, "{path}: {}", reply.text());
        reply.text()
    };
    let version = hidden_field(&service.get(&format!("{server}/settings"), &cookie).await.text(), "version");
    let form = format!(
        "version={version}&name=Other+name&mode=development&send_rate=quickly&hourly_limit=77&track_opens=1&excluded_hosts=a.example"
    );
    let text = refused("/settings", &form).await;
    for part in [
        "name=\"send_rate\" value=\"quickly\"",
        "value=\"Other name\"",
        "value=\"77\"",
        "a.example</textarea>",
        "value=\"development\" checked",
        "name=\"track_opens\" value=\"1\" checked",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = refused("/ceilings", &format!("version={version}&send_rate=quickly&messages_days=33")).await;
    assert!(text.contains("value=\"33\"") && text.contains("<details open"), "{text}");
    let text = refused("/suppressions/import", "csv=ann%40example.net%0D%0Anobody&reason=complaint").await;
    assert!(text.contains("ann@example.net\r\nnobody</textarea>"), "{text}");
    assert!(text.contains("<details open class=\"below\"><summary>Import a list"), "{text}");
    let text = refused("/suppressions", "address=nobody&details=because&reason=complaint").await;
    assert!(text.contains("value=\"nobody\"") && text.contains("value=\"because\""), "{text}");
    let text = refused("/keys", "name=deploy&scope=send&allow=nonsense").await;
    assert!(text.contains("value=\"deploy\"") && text.contains("value=\"nonsense\""), "{text}");
    let text = refused("/webhooks", "url=ftp%3A%2F%2Fx&event=message.held&format=standard").await;
    assert!(text.contains("value=\"ftp://x\"") && text.contains("value=\"message.held\" checked"), "{text}");
}
