//! Forms that are sent twice, by a reload or by two people: a change is made once, and nobody's is lost.

use serde_json::json;

use crate::roles::call;
use crate::site::{Site, hidden};

#[tokio::test]
async fn a_secret_is_replaced_once_by_a_form_that_is_sent_twice() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let hook = json!({ "url": "http://127.0.0.1:9/hook", "events": "all" });
    let id =
        call(&site, "x-server-api-key", &site.ready("api_key"), "webhooks/create", &hook).await["id"].clone();
    let path = format!("{server}/webhooks/{id}");
    let mark = hidden(&site.get(&path, &cookie).await.text(), "secret_mark");
    let form = format!("secret_mark={mark}");
    let first = site.submit(&format!("{path}/rotate_secret"), &cookie, &form).await;
    assert!(first.text().contains("not shown again"), "{}", first.text());
    let new_mark = hidden(&first.text(), "secret_mark");
    assert_ne!(new_mark, mark);
    let second = site.submit(&format!("{path}/rotate_secret"), &cookie, &form).await;
    assert_eq!(second.status, 303, "{}", second.text());
    let page = site.get(second.headers["location"].to_str().unwrap(), &cookie).await.text();
    assert!(page.contains("The secret was replaced since this page was opened"), "{page}");
    assert_eq!(hidden(&page, "secret_mark"), new_mark, "the new secret is still the secret");
}

#[tokio::test]
async fn a_webhook_and_keys_are_created_once_by_forms_that_are_sent_twice() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let webhooks = format!("{server}/webhooks");
    let opened_at = hidden(&site.get(&webhooks, &cookie).await.text(), "opened_at");
    let form = format!("opened_at={opened_at}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    let first = site.submit(&webhooks, &cookie, &form).await;
    assert!(first.text().contains("not shown again"), "{}", first.text());
    let second = site.submit(&webhooks, &cookie, &form).await;
    assert_eq!(second.status, 303, "{}", second.text());
    let list = site.get(&webhooks, &cookie).await.text();
    assert_eq!(list.matches("/twice</a>").count(), 1, "{list}");
    // A new form makes another webhook to the same address.
    let opened_at = hidden(&list, "opened_at");
    let form = format!("opened_at={opened_at}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    assert_eq!(site.submit(&webhooks, &cookie, &form).await.status, 200);

    for (path, field) in [("/account/keys", "once"), ("/operator/keys", "opened_at")] {
        let value = hidden(&site.get(path, &cookie).await.text(), field);
        let form = format!("{field}={value}&name=twice&scopes=read");
        let first = site.submit(path, &cookie, &form).await;
        assert!(first.text().contains("not shown again"), "{path}: {}", first.text());
        let second = site.submit(path, &cookie, &form).await;
        assert!(second.text().contains("shown once already"), "{path}: {}", second.text());
        let list = site.get(path, &cookie).await.text();
        assert_eq!(list.matches(">twice<").count(), 1, "{path}: {list}");
    }
}

#[tokio::test]
async fn settings_of_two_people_do_not_overwrite_each_other() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let settings = format!("{server}/settings");
    let version = hidden(&site.get(&settings, &cookie).await.text(), "version");
    let form = |limit: u32| format!("version={version}&name=dev&mode=live&hourly_limit={limit}");
    assert_eq!(site.submit(&settings, &cookie, &form(1234)).await.status, 303);
    let refused = site.submit(&settings, &cookie, &form(5678)).await;
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(text.contains("Somebody changed it since this page was opened. Nothing was saved"), "{text}");
    assert!(text.contains("value=\"1234\"") && !text.contains("5678"), "{text}");

    let operator = site.ready("operator_api_key");
    let by_operator =
        async |path: &str, body| call(&site, "x-operator-api-key", &operator, path, &body).await;
    let pool = by_operator("ip_pools/create", json!({ "name": "dedicated" })).await["id"].clone();
    let address =
        json!({ "pool": pool, "address": "192.0.2.9", "helo": "a.example", "weight": 1, "warm_up": true });
    by_operator("ip_pools/add_address", address).await;
    let page = site.get("/account/pools/address?address=192.0.2.9", &cookie).await.text();
    let form = |weight: u32| {
        format!("version={}&address=192.0.2.9&helo=a.example&weight={weight}", hidden(&page, "version"))
    };
    let update = "/account/pools/address/update";
    assert_eq!(site.submit(update, &cookie, &form(5)).await.status, 303);
    let refused = site.submit(update, &cookie, &form(7)).await;
    assert!(refused.status == 422 && refused.text().contains("Somebody changed it"), "{}", refused.text());

    // The pool of the server, by its own form.
    let page = site.get(&settings, &cookie).await.text();
    assert!(page.contains(">dedicated</option>"), "{page}");
    let form = format!("version={}&pool={pool}", hidden(&page, "version"));
    assert_eq!(site.submit(&format!("{server}/pool"), &cookie, &form).await.status, 303);
    assert_eq!(
        site.submit(&format!("{server}/pool"), &cookie, &form.replace(&format!("pool={pool}"), "pool="))
            .await
            .status,
        422
    );
    let page = site.get(&settings, &cookie).await.text();
    assert!(page.contains(&format!("<option value=\"{pool}\" selected>")), "{page}");
}

#[tokio::test]
async fn a_key_that_is_edited_keeps_its_end() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let account_key = site.ready("account_api_key");
    let call = async |path: &str, body| call(&site, "x-account-api-key", &account_key, path, &body).await;
    let id: i64 = server.rsplit('/').next().unwrap().parse().unwrap();
    let wanted =
        json!({ "server": id, "name": "deploy", "scope": "send", "expires_at": "2090-01-31T15:30:00Z" });
    let key = call("credentials/create", wanted).await["id"].clone();
    let end_of = async || call("credentials/get", json!({ "id": key })).await["expires_at"].clone();
    let path = format!("{server}/keys/{key}");
    let edit = async |last_day: &str| {
        let page = site.get(&format!("{server}/keys"), &cookie).await.text();
        assert!(page.contains("Last day (UTC)"), "{page}");
        let (_, row) = page.split_once(&format!("action=\"{path}\"")).unwrap();
        let (version, had) = (hidden(row, "version"), hidden(row, "had_last_day"));
        let last_day = if last_day.is_empty() { had.as_str() } else { last_day };
        let form = format!("version={version}&had_last_day={had}&name=other&expires_at={last_day}");
        site.submit(&path, &cookie, &form).await
    };
    assert_eq!(edit("").await.status, 303);
    let end = end_of().await;
    assert!(end.as_str().unwrap().starts_with("2090-01-31T15:30:00"), "{end}");
    // The last day is a whole day.
    assert_eq!(edit("2090-02-01").await.status, 303);
    let end = end_of().await;
    assert!(end.as_str().unwrap().starts_with("2090-02-02T00:00:00"), "{end}");
    assert_eq!(edit("").await.status, 303);
    assert_eq!(end_of().await, end);
    // A problem is shown above the table, in words of the form.
    let refused = edit("2001-01-31").await;
    let text = refused.text();
    assert_eq!(refused.status, 422, "{text}");
    assert!(text.find("class=\"problem\"").unwrap() < text.find("<table").unwrap(), "{text}");
    assert!(text.contains("The last day is in the past."), "{text}");
}
