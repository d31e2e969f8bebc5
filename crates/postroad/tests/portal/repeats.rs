//! Forms that are sent twice, by a reload or by two people: a change is made once, and nobody's change is lost.

use std::collections::HashMap;

use serde_json::json;

use crate::hostile::in_query;
use crate::pages::{self, PAGES};
use crate::roles::{call, filled};
use crate::routes::{For, Kind, ROUTES};
use crate::site::{Site, form_token, hidden};
use crate::unscripted::{attribute, forms};

/// Forms that do more when they are sent again, and why that is intended.
const REPEATED: &[(&str, &str)] = &[(
    "/servers/{server}/domains/{name}/share",
    "each click asks for a link of its own; they are listed and revoked",
)];

/// Pages that list what forms create.
const COUNTED: &[&str] = &[
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
    let site = Site::start();
    let names = pages::fill(&site).await;
    let cookie = site.cookie().await;
    // The page `doctor` is left out: its check-up takes long.
    let searched = PAGES.iter().filter(|(name, _, _, _)| *name != "doctor");
    let all: Vec<String> =
        searched.map(|(_, route, query, _)| pages::path_of(&names, route, query)).collect();
    let lists = PAGES.iter().filter(|(name, _, _, _)| COUNTED.contains(name));
    let lists: Vec<String> = lists.map(|(_, route, query, _)| pages::path_of(&names, route, query)).collect();
    assert_eq!(lists.len(), COUNTED.len());
    let rows = async || {
        let mut counts = Vec::new();
        for list in &lists {
            let text = site.get(list, &cookie).await.text();
            counts.push((list.clone(), text.matches("<tr").count()));
        }
        counts
    };
    let mut sent = 0;
    for (kind, route, fields, whose) in ROUTES {
        if *kind != Kind::Form || *whose == For::Anybody || *route == "/sign_out" {
            continue;
        }
        let path = filled(&names, route);
        let body = whole_form(&site, &cookie, &all, &path, &filled(&names, fields)).await;
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        let first = site.post(&path, &headers, &body).await;
        let before = rows().await;
        let second = site.post(&path, &headers, &body).await;
        assert!(first.status < 500 && second.status < 500, "{path}: {}", second.text());
        sent += usize::from(first.status < 400);
        if !REPEATED.iter().any(|(repeated, _)| repeated == route) {
            assert_eq!(rows().await, before, "{path} with {body}");
        }
    }
    assert!(sent > 40, "most forms did something: {sent}");
}

#[tokio::test]
async fn a_form_that_is_sent_twice_sends_one_message() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let new = json!({ "name": "Bill", "alias": "bill", "subject": "Your bill", "plain_body": "Hi", "publish": true });
    let template = call(&site, "x-server-api-key", &site.ready("api_key"), "templates/create", &new).await;
    let template = format!("{server}/templates/{}", template["id"]);
    for (page, action, subject) in [
        (
            format!("{server}/first_message?since=0"),
            format!("{server}/first_message"),
            ">A first message from Postroad</a>",
        ),
        (template.clone(), format!("{template}/send_test"), ">Your bill</a>"),
    ] {
        let once = hidden(&site.get(&page, &cookie).await.text(), "once");
        let sent =
            async || site.get(&format!("{server}/messages"), &cookie).await.text().matches(subject).count();
        for (to, expected) in [("ann", 1), ("ann", 1), ("bob", 2)] {
            let form = format!("once={once}&from=shop@example.test&to={to}@example.net");
            let reply = site.submit(&action, &cookie, &form).await;
            assert_eq!(reply.status, 303, "{}", reply.text());
            assert_eq!(sent().await, expected, "{action} to {to}");
        }
    }
}

#[tokio::test]
async fn a_test_send_in_another_language_is_another_message() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let new = json!({
        "name": "Bill", "alias": "bill", "subject": "Your bill", "plain_body": "Hi", "publish": true,
        "locales": { "de": { "subject": "Ihre Rechnung", "plain_body": "Hallo" } },
    });
    let template = call(&site, "x-server-api-key", &site.ready("api_key"), "templates/create", &new).await;
    let page = format!("{server}/templates/{}", template["id"]);
    let once = hidden(&site.get(&page, &cookie).await.text(), "once");
    for (locale, subject) in
        [("", ">Your bill</a>"), ("de", ">Ihre Rechnung</a>"), ("de", ">Ihre Rechnung</a>")]
    {
        let form = format!("once={once}&from=shop@example.test&to=ann@example.net&locale={locale}");
        let reply = site.submit(&format!("{page}/send_test"), &cookie, &form).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        let list = site.get(&format!("{server}/messages"), &cookie).await.text();
        assert_eq!(list.matches(subject).count(), 1, "{locale}: {list}");
    }
}

/// Fields of a form: hidden fields as the first page with this form has them, and the fields of the example.
async fn whole_form(site: &Site, cookie: &str, pages: &[String], path: &str, fields: &str) -> String {
    let mut all: HashMap<String, String> = HashMap::new();
    for page in pages {
        let html = site.get(page, cookie).await.text();
        let form = forms(&html).into_iter().find(|form| {
            attribute(form.split('>').next().unwrap(), "action").is_some_and(|action| action == path)
        });
        if let Some(form) = form {
            for input in form.split("<input").skip(1).filter(|input| input.contains("type=\"hidden\"")) {
                let tag = input.split('>').next().unwrap();
                let (Some(name), Some(value)) = (attribute(tag, "name"), attribute(tag, "value")) else {
                    continue;
                };
                all.insert(name, in_query(&value));
            }
            break;
        }
    }
    let given: HashMap<&str, &str> = fields.split('&').filter_map(|pair| pair.split_once('=')).collect();
    all.retain(|name, _| !given.contains_key(name.as_str()));
    if !all.contains_key("csrf") {
        all.insert("csrf".to_owned(), form_token(&site.get("/servers", cookie).await));
    }
    let mut pairs: Vec<String> = all.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.push(fields.to_owned());
    pairs.join("&")
}

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
    let once = hidden(&site.get(&webhooks, &cookie).await.text(), "once");
    let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    let first = site.submit(&webhooks, &cookie, &form).await;
    assert!(first.text().contains("not shown again"), "{}", first.text());
    let second = site.submit(&webhooks, &cookie, &form).await;
    assert_eq!(second.status, 303, "{}", second.text());
    let list = site.get(&webhooks, &cookie).await.text();
    assert_eq!(list.matches("/twice</a>").count(), 1, "{list}");
    // A new form makes another webhook to the same address.
    let once = hidden(&list, "once");
    let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Ftwice");
    assert_eq!(site.submit(&webhooks, &cookie, &form).await.status, 200);

    for path in ["/account/keys", "/operator/keys"] {
        let once = hidden(&site.get(path, &cookie).await.text(), "once");
        let form = format!("once={once}&name=twice&scopes=read");
        let first = site.submit(path, &cookie, &form).await;
        assert!(first.text().contains("not shown again"), "{path}: {}", first.text());
        let second = site.submit(path, &cookie, &form).await;
        assert!(second.text().contains("shown once already"), "{path}: {}", second.text());
        let list = site.get(path, &cookie).await.text();
        assert_eq!(list.matches(">twice<").count(), 1, "{path}: {list}");
    }
}

/// Two clicks without JavaScript: both requests arrive before one is answered.
#[tokio::test]
async fn forms_that_are_sent_twice_at_once_act_once() {
    let site = Site::start();
    let cookie = site.cookie().await;
    let server = site.server_path(&cookie).await;
    let webhooks = format!("{server}/webhooks");
    for round in 0..5 {
        let once = hidden(&site.get(&webhooks, &cookie).await.text(), "once");
        let form = format!("once={once}&url=http%3A%2F%2F127.0.0.1%3A9%2Fround{round}");
        let (one, other) =
            tokio::join!(site.submit(&webhooks, &cookie, &form), site.submit(&webhooks, &cookie, &form));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 303], "{} {}", one.text(), other.text());
        let list = site.get(&webhooks, &cookie).await.text();
        assert_eq!(list.matches(&format!("/round{round}</a>")).count(), 1, "{list}");

        for path in ["/account/keys", "/operator/keys"] {
            let once = hidden(&site.get(path, &cookie).await.text(), "once");
            let form = format!("once={once}&name=round{round}&scopes=read");
            let (one, other) =
                tokio::join!(site.submit(path, &cookie, &form), site.submit(path, &cookie, &form));
            let texts = [one.text(), other.text()];
            let shown = texts.iter().filter(|text| text.contains("not shown again")).count();
            assert_eq!(shown, 1, "{path}: {texts:?}");
            let list = site.get(path, &cookie).await.text();
            assert_eq!(list.matches(&format!(">round{round}<")).count(), 1, "{path}: {list}");
        }
    }
    let hook = json!({ "url": "http://127.0.0.1:9/hook", "events": "all" });
    let id =
        call(&site, "x-server-api-key", &site.ready("api_key"), "webhooks/create", &hook).await["id"].clone();
    let path = format!("{server}/webhooks/{id}");
    for _ in 0..5 {
        let mark = hidden(&site.get(&path, &cookie).await.text(), "secret_mark");
        let (rotate, form) = (format!("{path}/rotate_secret"), format!("secret_mark={mark}"));
        let (one, other) =
            tokio::join!(site.submit(&rotate, &cookie, &form), site.submit(&rotate, &cookie, &form));
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 303], "one new secret");
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
    assert!(
        text.contains("Another change was made since this page was opened, so yours was not saved"),
        "{text}"
    );
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
    assert!(
        refused.status == 422 && refused.text().contains("Another change was made"),
        "{}",
        refused.text()
    );

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
async fn a_key_that_is_edited_keeps_its_expiry() {
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
