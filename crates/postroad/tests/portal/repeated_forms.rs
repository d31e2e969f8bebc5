//! Forms that are sent twice, by a reload or by two people: a change is made once, and nobody's change is lost.

use std::collections::HashMap;

use serde_json::json;

use crate::hostile_texts::percent_encoded;
use crate::pages::{self, PAGES};
use crate::roles::{call, with_values};
use crate::routes::{Access, Kind, ROUTES};
use crate::service::{DevService, form_token, hidden_field};
use crate::without_javascript::{attribute, forms};

/// Forms that create another object when they are sent again, and why that is intended.
const REPEATABLE_FORMS: &[(&str, &str)] = &[(
    "/servers/{server}/domains/{name}/share",
    "each click asks for a link of its own; they are listed and revoked",
)];

/// Pages that list what forms create.
const LIST_PAGES: &[&str] = &[
    "servers",
    "messages",
    "templates",
    "template",
    "domains",
    "domain",
    "webhooks",
    "suppressions",
    "keys",
    "people",
    "account-domains",
    "pools",
    "account-keys",
    "operator-accounts",
    "operator-keys",
];

/// A reload, or two clicks without JavaScript, sends the same bytes again.
#[tokio::test]
async fn no_form_creates_or_sends_more_when_it_is_sent_again() {
    let service = DevService::start();
    let placeholders = pages::create_objects(&service).await;
    let cookie = service.sign_in().await;
    // The page `doctor` is left out: its check-up takes long.
    let visited = PAGES.iter().filter(|(name, _, _, _)| *name != "doctor");
    let all: Vec<String> =
        visited.map(|(_, route, query, _)| pages::path_of(&placeholders, route, query)).collect();
    let lists = PAGES.iter().filter(|(name, _, _, _)| LIST_PAGES.contains(name));
    let lists: Vec<String> =
        lists.map(|(_, route, query, _)| pages::path_of(&placeholders, route, query)).collect();
    assert_eq!(lists.len(), LIST_PAGES.len());
    let rows = async || {
        let mut counts = Vec::new();
        for list in &lists {
            let text = service.get(list, &cookie).await.text();
            counts.push((list.clone(), text.matches("<tr").count()));
        }
        counts
    };
    let mut sent = 0;
    for (kind, route, fields, access) in ROUTES {
        if *kind != Kind::Form || *access == Access::Anybody || *route == "/sign_out" {
            continue;
        }
        let path = with_values(&placeholders, route);
        let body = form_body(&service, &cookie, &all, &path, &with_values(&placeholders, fields)).await;
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let first = service.post(&path, &headers, &body).await;
        let before = rows().await;
        let second = service.post(&path, &headers, &body).await;
        assert!(first.status < 500 && second.status < 500, "{path}: {}", second.text());
        sent += usize::from(first.status < 400);
        if !REPEATABLE_FORMS.iter().any(|(repeated, _)| repeated == route) {
            assert_eq!(rows().await, before, "{path} with {body}");
        }
    }
    assert!(sent > 40, "most forms did something: {sent}");
}

#[tokio::test]
async fn a_form_that_is_sent_twice_sends_one_message() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let new = json!({ "name": "Bill", "alias": "bill", "subject": "Your bill", "plain_body": "Hi", "publish": true });
    let template =
        call(&service, "x-server-api-key", &service.ready("api_key"), "templates/create", &new).await;
    let template = format!("{server}/templates/{}", template["id"]);
    for (page, action, subject) in [
        (
            format!("{server}/first_message?since=0"),
            format!("{server}/first_message"),
            ">A first message from Postroad</a>",
        ),
        (template.clone(), format!("{template}/send_test"), ">Your bill</a>"),
    ] {
        let once = hidden_field(&service.get(&page, &cookie).await.text(), "once");
        let sent = async || {
            service.get(&format!("{server}/messages"), &cookie).await.text().matches(subject).count()
        };
        for (to, expected) in [("ann", 1), ("ann", 1), ("bob", 2)] {
            let form = format!("once={once}&from=shop@example.test&to={to}@example.net");
            let reply = service.submit(&action, &cookie, &form).await;
            assert_eq!(reply.status, 303, "{}", reply.text());
            assert_eq!(sent().await, expected, "{action} to {to}");
        }
    }
}

#[tokio::test]
async fn a_test_send_in_another_language_is_another_message() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let new = json!({
        "name": "Bill", "alias": "bill", "subject": "Your bill", "plain_body": "Hi", "publish": true,
        "locales": { "de": { "subject": "Ihre Rechnung", "plain_body": "Hallo" } },
    });
    let template =
        call(&service, "x-server-api-key", &service.ready("api_key"), "templates/create", &new).await;
    let page = format!("{server}/templates/{}", template["id"]);
    let once = hidden_field(&service.get(&page, &cookie).await.text(), "once");
    for (locale, subject) in
        [("", ">Your bill</a>"), ("de", ">Ihre Rechnung</a>"), ("de", ">Ihre Rechnung</a>")]
    {
        let form = format!("once={once}&from=shop@example.test&to=ann@example.net&locale={locale}");
        let reply = service.submit(&format!("{page}/send_test"), &cookie, &form).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let list = service.get(&format!("{server}/messages"), &cookie).await.text();
        assert_eq!(list.matches(subject).count(), 1, "{locale}: {list}");
    }
}

/// Body of a form: its hidden fields, from the first page that has the form, and the fields of the example.
async fn form_body(service: &DevService, cookie: &str, pages: &[String], path: &str, fields: &str) -> String {
    let mut all: HashMap<String, String> = HashMap::new();
    for page in pages {
        let html = service.get(page, cookie).await.text();
        let form = forms(&html).into_iter().find(|form| {
            attribute(form.split('>').next().unwrap(), "action").is_some_and(|action| action == path)
        });
        if let Some(form) = form {
            for input in form.split("<input").skip(1).filter(|input| input.contains("type=\"hidden\"")) {
                let tag = input.split('>').next().unwrap();
                let (Some(name), Some(value)) = (attribute(tag, "name"), attribute(tag, "value")) else {
                    continue;
                };
                all.insert(name, percent_encoded(&value));
            }
            break;
        }
    }
    let example_fields: HashMap<&str, &str> =
        fields.split('&').filter_map(|pair| pair.split_once('=')).collect();
    all.retain(|name, _| !example_fields.contains_key(name.as_str()));
    if !all.contains_key("csrf") {
        all.insert("csrf".to_owned(), form_token(&service.get("/servers", cookie).await));
    }
    let mut pairs: Vec<String> = all.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.push(fields.to_owned());
    pairs.join("&")
}

#[tokio::test]
async fn a_form_sent_twice_replaces_a_secret_once() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let hook = json!({ "url": "http://127.0.0.1:9/hook", "events": "all" });
    let id =
        call(&service, "x-server-api-key", &service.ready("api_key"), "webhooks/create", &hook).await["id"]
            .clone();
    let path = format!("{server}/webhooks/{id}");
    let secret_mark = hidden_field(&service.get(&path, &cookie).await.text(), "secret_mark");
    let form = format!("secret_mark={secret_mark}");
    let first = service.submit(&format!("{path}/rotate_secret"), &cookie, &form).await;
    assert!(first.text().contains("not shown again"), "{}", first.text());
    let new_secret_mark = hidden_field(&first.text(), "secret_mark");
    assert_ne!(new_secret_mark, secret_mark);
    let second = service.submit(&format!("{path}/rotate_secret"), &cookie, &form).await;
    assert_eq!(second.status, 303, "{}", second.text());
    let page = service.get(second.headers["location"].to_str().unwrap(), &cookie).await.text();
    assert!(page.contains("The secret was replaced since this page was opened"), "{page}");
    assert_eq!(hidden_field(&page, "secret_mark"), new_secret_mark, "the new secret is still the secret");
}

#[tokio::test]
async fn a_webhook_and_keys_are_created_once_by_forms_that_are_sent_twice() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let webhooks = format!("{server}/webhooks");
    let once = hidden_field(&service.get(&webhooks, &cookie).await.text(), "once");
    let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    let first = service.submit(&webhooks, &cookie, &form).await;
    assert!(first.text().contains("not shown again"), "{}", first.text());
    let second = service.submit(&webhooks, &cookie, &form).await;
    assert_eq!(second.status, 303, "{}", second.text());
    let list = service.get(&webhooks, &cookie).await.text();
    assert_eq!(list.matches("/twice</a>").count(), 1, "{list}");
    // A newly loaded form creates another webhook with the same URL.
    let once = hidden_field(&list, "once");
    let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    assert_eq!(service.submit(&webhooks, &cookie, &form).await.status, 200);

    for path in ["/account/keys", "/operator/keys"] {
        let once = hidden_field(&service.get(path, &cookie).await.text(), "once");
        let form = format!("once={once}&name=twice&scopes=read");
        let first = service.submit(path, &cookie, &form).await;
        assert!(first.text().contains("not shown again"), "{path}: {}", first.text());
        let second = service.submit(path, &cookie, &form).await;
        assert!(second.text().contains("shown once already"), "{path}: {}", second.text());
        let list = service.get(path, &cookie).await.text();
        assert_eq!(list.matches(">twice<").count(), 1, "{path}: {list}");
    }
}

/// Two clicks without JavaScript: both requests arrive before one is answered.
#[tokio::test]
async fn forms_sent_twice_at_the_same_time_act_once() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let webhooks = format!("{server}/webhooks");
    for round in 0..5 {
        let once = hidden_field(&service.get(&webhooks, &cookie).await.text(), "once");
        let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Fround{round}");
        let (one, other) = tokio::join!(
            service.submit(&webhooks, &cookie, &form),
            service.submit(&webhooks, &cookie, &form)
        );
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 303], "{} {}", one.text(), other.text());
        let list = service.get(&webhooks, &cookie).await.text();
        assert_eq!(list.matches(&format!("/round{round}</a>")).count(), 1, "{list}");

        for path in ["/account/keys", "/operator/keys"] {
            let once = hidden_field(&service.get(path, &cookie).await.text(), "once");
            let form = format!("once={once}&name=round{round}&scopes=read");
            let (one, other) =
                tokio::join!(service.submit(path, &cookie, &form), service.submit(path, &cookie, &form));
            let texts = [one.text(), other.text()];
            let shown = texts.iter().filter(|text| text.contains("not shown again")).count();
            assert_eq!(shown, 1, "{path}: {texts:?}");
            let list = service.get(path, &cookie).await.text();
            assert_eq!(list.matches(&format!(">round{round}<")).count(), 1, "{path}: {list}");
        }
    }
    let hook = json!({ "url": "http://127.0.0.1:9/hook", "events": "all" });
    let id =
        call(&service, "x-server-api-key", &service.ready("api_key"), "webhooks/create", &hook).await["id"]
            .clone();
    let path = format!("{server}/webhooks/{id}");
    for _ in 0..5 {
        let secret_mark = hidden_field(&service.get(&path, &cookie).await.text(), "secret_mark");
        let (rotate, form) = (format!("{path}/rotate_secret"), format!("secret_mark={secret_mark}"));
        let (one, other) =
            tokio::join!(service.submit(&rotate, &cookie, &form), service.submit(&rotate, &cookie, &form));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 303], "one new secret");
    }
}

#[tokio::test]
async fn settings_of_two_people_do_not_overwrite_each_other() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let settings = format!("{server}/settings");
    let version = hidden_field(&service.get(&settings, &cookie).await.text(), "version");
    let form = |limit: u32| format!("version={version}&name=dev&mode=live&hourly_limit={limit}");
    assert_eq!(service.submit(&settings, &cookie, &form(1234)).await.status, 303);
    let refused = service.submit(&settings, &cookie, &form(5678)).await;
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(
        text.contains("Another change was made since this page was opened, so yours was not saved"),
        "{text}"
    );
    assert!(text.contains("value=\"1234\"") && !text.contains("5678"), "{text}");

    let operator = service.ready("operator_api_key");
    let by_operator =
        async |path: &str, body| call(&service, "x-operator-api-key", &operator, path, &body).await;
    let pool = by_operator("ip_pools/create", json!({ "name": "dedicated" })).await["id"].clone();
    let address =
        json!({ "pool": pool, "address": "192.0.2.9", "helo": "a.example", "weight": 1, "warm_up": true });
    by_operator("ip_pools/add_address", address).await;
    let page = service.get("/account/pools/address?address=192.0.2.9", &cookie).await.text();
    let form = |weight: u32| {
        format!("version={}&address=192.0.2.9&helo=a.example&weight={weight}", hidden_field(&page, "version"))
    };
    let update = "/account/pools/address/update";
    assert_eq!(service.submit(update, &cookie, &form(5)).await.status, 303);
    let refused = service.submit(update, &cookie, &form(7)).await;
    assert!(
        refused.status == 422 && refused.text().contains("Another change was made"),
        "{}",
        refused.text()
    );

    // The pool of the server has a form of its own, which refuses an old version too.
    let page = service.get(&settings, &cookie).await.text();
    assert!(page.contains(">dedicated</option>"), "{page}");
    let form = format!("version={}&pool={pool}", hidden_field(&page, "version"));
    assert_eq!(service.submit(&format!("{server}/pool"), &cookie, &form).await.status, 303);
    assert_eq!(
        service
            .submit(&format!("{server}/pool"), &cookie, &form.replace(&format!("pool={pool}"), "pool="))
            .await
            .status,
        422
    );
    let page = service.get(&settings, &cookie).await.text();
    assert!(page.contains(&format!("<option value=\"{pool}\" selected>")), "{page}");
}

#[tokio::test]
async fn a_key_that_is_edited_keeps_its_expiry() {
    let service = DevService::start();
    let cookie = service.sign_in().await;
    let server = service.server_path(&cookie).await;
    let account_key = service.ready("account_api_key");
    let call = async |path: &str, body| call(&service, "x-account-api-key", &account_key, path, &body).await;
    let id: i64 = server.rsplit('/').next().unwrap().parse().unwrap();
    let wanted =
        json!({ "server": id, "name": "deploy", "scope": "send", "expires_at": "2090-01-31T15:30:00Z" });
    let key = call("credentials/create", wanted).await["id"].clone();
    let expires_at = async || call("credentials/get", json!({ "id": key })).await["expires_at"].clone();
    let path = format!("{server}/keys/{key}");
    let edit = async |last_day: &str| {
        let page = service.get(&format!("{server}/keys"), &cookie).await.text();
        assert!(page.contains("Last day (UTC)"), "{page}");
        let (_, row) = page.split_once(&format!("action=\"{path}\"")).unwrap();
        let (version, had) = (hidden_field(row, "version"), hidden_field(row, "had_last_day"));
        let last_day = if last_day.is_empty() { had.as_str() } else { last_day };
        let form = format!("version={version}&had_last_day={had}&name=other&expires_at={last_day}");
        service.submit(&path, &cookie, &form).await
    };
    assert_eq!(edit("").await.status, 303);
    let end = expires_at().await;
    assert!(end.as_str().unwrap().starts_with("2090-01-31T15:30:00"), "{end}");
    // The key works until the end of its last day.
    assert_eq!(edit("2090-02-01").await.status, 303);
    let end = expires_at().await;
    assert!(end.as_str().unwrap().starts_with("2090-02-02T00:00:00"), "{end}");
    assert_eq!(edit("").await.status, 303);
    assert_eq!(expires_at().await, end);
    // A problem is shown above the table, in words of the form.
    let refused = edit("2001-01-31").await;
    let text = refused.text();
    assert_eq!(refused.status, 422, "{text}");
    assert!(text.find("class=\"problem\"").unwrap() < text.find("<table").unwrap(), "{text}");
    assert!(text.contains("The last day is in the past."), "{text}");
}
