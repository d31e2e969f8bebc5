//! Requests every route as a person of a second account, with ids of the first: the answers are those for missing objects.

use std::collections::HashMap;

use postroad_testkit::Reply;
use serde_json::json;

use crate::roles::{call, create_objects_with_held_message, send_request, with_values};
use crate::routes::{Access, Person, ROUTES};
use crate::service::{DevService, form_token};

#[tokio::test]
async fn objects_of_another_account_are_answered_like_missing_ones_on_sqlite() {
    objects_of_another_account_are_answered_like_missing_ones(DevService::start()).await;
}

#[tokio::test]
async fn objects_of_another_account_are_answered_like_missing_ones_on_postgres() {
    objects_of_another_account_are_answered_like_missing_ones(DevService::start_on_postgres()).await;
}

/// Creates a second account with a server and an owner; returns the owner's session cookie.
async fn create_second_account(service: &DevService) -> String {
    let key = service.ready("operator_api_key");
    let by_operator = async |path: &str, body| call(service, "x-operator-api-key", &key, path, &body).await;
    let account = by_operator("accounts/create", json!({ "name": "rival" })).await["id"].clone();
    by_operator("servers/create", json!({ "account": account, "name": "theirs" })).await;
    let wanted = json!({ "account": account, "email": "rita@rival.example", "role": "owner", "mail": false });
    let link = by_operator("users/invite", wanted).await["link"].as_str().unwrap().to_owned();
    let form =
        format!("token={}&name=Rita&password=a+road+of+seven+posts", link.split_once("token=").unwrap().1);
    let reply = service.post("/invitation", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

/// Status, redirect target and text of an answer, without the requested path, in which the two requests differ.
fn comparable_answer(reply: &Reply, path: &str) -> (u16, String, String) {
    let location = reply.header("location").unwrap_or_default().replace(path, "…");
    (reply.status, location, reply.text().replace(path, "…"))
}

async fn objects_of_another_account_are_answered_like_missing_ones(service: DevService) {
    let operator = service.sign_in().await;
    let placeholders = create_objects_with_held_message(&service, &operator).await;
    let absent: HashMap<&'static str, String> = placeholders
        .iter()
        .map(|(name, value)| {
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            (*name, if is_number { "888888".to_owned() } else { "absent.example".to_owned() })
        })
        .collect();
    let before = service.get("/account/audit", &operator).await.text();
    let cookie = create_second_account(&service).await;
    let token = form_token(&service.get("/servers", &cookie).await);
    let mut calls = 0;
    for (kind, route, fields, access) in ROUTES {
        let is_for_customers = matches!(access, Access::AtLeast(least) if *least < Person::Operator);
        if !is_for_customers || !(route.contains('{') || fields.contains('{')) {
            continue;
        }
        let mut answers = Vec::new();
        for placeholders in [&placeholders, &absent] {
            let (path, fields) = (with_values(placeholders, route), with_values(placeholders, fields));
            let reply = send_request(&service, *kind, &path, &fields, &cookie, &token).await;
            let answer = comparable_answer(&reply, &path);
            answers.push((path, answer));
        }
        let [(path, foreign), (_, missing)] = answers.as_slice() else { panic!("two answers") };
        assert_eq!(foreign, missing, "{kind:?} {path} {fields}");
        assert!([404, 422, 303].contains(&foreign.0), "{kind:?} {path} {fields}: {foreign:?}");
        calls += 1;
    }
    assert!(calls > 80, "{calls}");
    assert_eq!(service.get("/account/audit", &operator).await.text(), before, "nothing was changed");
}
