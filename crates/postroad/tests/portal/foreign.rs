//! Calls every route as a person of a second account, with ids of the first: the answers are those for missing objects.

use std::collections::HashMap;

use postroad_testkit::Reply;
use serde_json::json;

use crate::roles::{ask, call, fill_with_development, filled};
use crate::routes::{For, Person, ROUTES};
use crate::site::{Site, form_token};

#[tokio::test]
async fn things_of_another_account_answer_as_absent_ones_on_sqlite() {
    things_of_another_account_answer_as_absent_ones(Site::start()).await;
}

#[tokio::test]
async fn things_of_another_account_answer_as_absent_ones_on_postgres() {
    things_of_another_account_answer_as_absent_ones(Site::start_on_postgres()).await;
}

/// Creates a second account with a server and an owner; returns the owner's session cookie.
async fn create_rival(site: &Site) -> String {
    let key = site.ready("operator_api_key");
    let by_operator = async |path: &str, body| call(site, "x-operator-api-key", &key, path, &body).await;
    let account = by_operator("accounts/create", json!({ "name": "rival" })).await["id"].clone();
    by_operator("servers/create", json!({ "account": account, "name": "theirs" })).await;
    let wanted = json!({ "account": account, "email": "rita@rival.example", "role": "owner", "mail": false });
    let link = by_operator("users/invite", wanted).await["link"].as_str().unwrap().to_owned();
    let form =
        format!("token={}&name=Rita&password=a+road+of+seven+posts", link.split_once("token=").unwrap().1);
    let reply = site.post("/invitation", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

/// Status, redirect target and text, with the requested path replaced.
fn comparable(reply: &Reply, path: &str) -> (u16, String, String) {
    let location = reply.header("location").unwrap_or_default().replace(path, "…");
    (reply.status, location, reply.text().replace(path, "…"))
}

async fn things_of_another_account_answer_as_absent_ones(site: Site) {
    let operator = site.cookie().await;
    let names = fill_with_development(&site, &operator).await;
    let absent: HashMap<&'static str, String> = names
        .iter()
        .map(|(name, value)| {
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            (*name, if is_number { "888888".to_owned() } else { "absent.example".to_owned() })
        })
        .collect();
    let before = site.get("/account/audit", &operator).await.text();
    let cookie = create_rival(&site).await;
    let token = form_token(&site.get("/servers", &cookie).await);
    let mut calls = 0;
    for (kind, route, fields, whose) in ROUTES {
        let is_for_customers = matches!(whose, For::AtLeast(least) if *least < Person::Operator);
        if !is_for_customers || !(route.contains('{') || fields.contains('{')) {
            continue;
        }
        let mut answers = Vec::new();
        for names in [&names, &absent] {
            let (path, fields) = (filled(names, route), filled(names, fields));
            let reply = ask(&site, *kind, &path, &fields, &cookie, &token).await;
            let answer = comparable(&reply, &path);
            answers.push((path, answer));
        }
        let [(path, foreign), (_, nothing)] = answers.as_slice() else { panic!("two answers") };
        assert_eq!(foreign, nothing, "{kind:?} {path} {fields}");
        assert!([404, 422, 303].contains(&foreign.0), "{kind:?} {path} {fields}: {foreign:?}");
        calls += 1;
    }
    assert!(calls > 80, "{calls}");
    assert_eq!(site.get("/account/audit", &operator).await.text(), before, "nothing was changed");
}
