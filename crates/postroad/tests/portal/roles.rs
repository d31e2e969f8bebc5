//! Pages and forms that each role may use. Pages show no form and no link that the role may not use.

use std::collections::{BTreeSet, HashMap};

use postroad_testkit::Reply;
use postroad_testkit::http::Method;
use serde_json::{Value, json};

use crate::routes::{Access, Kind, Person, ROUTES};
use crate::service::{DevService, SecondServer, form_token};

#[tokio::test]
async fn each_person_reads_and_does_what_the_role_allows_on_sqlite() {
    each_person_reads_and_does_what_the_role_allows(DevService::start()).await;
}

#[tokio::test]
async fn each_person_reads_and_does_what_the_role_allows_on_postgres() {
    each_person_reads_and_does_what_the_role_allows(DevService::start_on_postgres()).await;
}

async fn each_person_reads_and_does_what_the_role_allows(service: DevService) {
    let operator = service.sign_in().await;
    let placeholders = create_objects_with_held_message(&service, &operator).await;
    // Without a session, every route that is not for anybody leads to the sign-in form.
    for (kind, route, fields, access) in ROUTES {
        let (path, fields) = (with_values(&placeholders, route), with_values(&placeholders, fields));
        let reply = send_request(&service, *kind, &path, &fields, "", "").await;
        let leads_to_sign_in = reply.status == 303 && location(&reply).starts_with("/sign_in");
        match access {
            Access::Anybody => assert!(!leads_to_sign_in && reply.status < 500, "{route}: {}", reply.status),
            Access::AtLeast(_) => assert!(leads_to_sign_in, "{kind:?} {route}: {}", reply.status),
        }
    }
    for person in [Person::ReadOnly, Person::Member, Person::Admin, Person::Owner, Person::Operator] {
        let cookie = match person {
            Person::ReadOnly => join(&service, "read-only", "read-only").await.1,
            Person::Member => join(&service, "member", "member").await.1,
            Person::Admin => join(&service, "admin", "admin").await.1,
            Person::Owner => join(&service, "owner", "owner").await.1,
            Person::Operator => operator.clone(),
        };
        let start = service.get("/servers", &cookie).await;
        let token = form_token(&start);
        let sees_operator = start.text().contains("\"/operator\"") && start.text().contains("\"/inbox\"");
        assert_eq!(sees_operator, person == Person::Operator, "the menu of {person:?}");
        let mut followed = BTreeSet::new();
        for (kind, route, fields, access) in ROUTES {
            let Access::AtLeast(least) = access else { continue };
            let (path, fields) = (with_values(&placeholders, route), with_values(&placeholders, fields));
            let reply = send_request(&service, *kind, &path, &fields, &cookie, &token).await;
            let what = format!("{person:?}: {kind:?} {path} {fields}: {}", reply.status);
            if person < *least {
                assert_eq!(reply.status, 403, "{what}");
            } else if *kind == Kind::Form {
                // An object that an earlier person removed is not found, or cannot be changed.
                assert!([200, 303, 404, 422].contains(&reply.status), "{what}: {}", reply.text());
            } else {
                let good = if *route == "/" { 303 } else { 200 };
                assert_eq!(reply.status, good, "{what}: {}", reply.text());
                for (action, act) in forms(&reply.text()) {
                    let least = lowest_role_for(&action, act.as_deref());
                    assert!(least.is_none_or(|least| person >= least), "{what} shows {action} {act:?}");
                }
                for link in links(&reply.text(), &path) {
                    if followed.insert(link.clone()) {
                        let found = service.get(&link, &cookie).await.status;
                        assert!(found != 403 && found < 500, "{what} has a link to {link}: {found}");
                    }
                }
            }
        }
        assert!(followed.len() > 40, "{person:?} found {followed:?}");
        assert_eq!(service.get("/servers", &cookie).await.status, 303, "{person:?} is signed out");
    }
}

/// Paths of the page's POST forms: an entry for each button, with its act if it names one.
fn forms(page: &str) -> Vec<(String, Option<String>)> {
    let forms = page.split("<form ").skip(1).map(|rest| rest.split("</form>").next().unwrap());
    let mut found = Vec::new();
    for form in forms.filter(|form| form.contains("method=\"post\"")) {
        let action = form.split('>').next().and_then(|tag| tag.split("action=\"").nth(1));
        let Some(action) = action.and_then(|rest| rest.split('"').next()) else { continue };
        for button in form.split("<button").skip(1) {
            let attribute = |start: &str| {
                let rest = button.split('>').next().and_then(|tag| tag.split(start).nth(1));
                rest.and_then(|rest| rest.split('"').next()).map(str::to_owned)
            };
            let action = attribute("formaction=\"").unwrap_or_else(|| action.to_owned());
            found.push((action, attribute("name=\"act\" value=\"")));
        }
    }
    found
}

/// Targets of the links on a page.
fn links(page: &str, path: &str) -> Vec<String> {
    let found = page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let found = found.map(|target| target.replace("&#38;", "&").replace("&amp;", "&"));
    let within = found.filter_map(|target| match target.as_bytes() {
        [b'/', b'/', ..] => None,
        [b'/', ..] => Some(target),
        [b'?', ..] => Some(format!("{path}{target}")),
        _ => None,
    });
    within.collect()
}

/// The lowest role that may send a form; `None` if everybody may.
fn lowest_role_for(action: &str, act: Option<&str>) -> Option<Person> {
    let fits = |route: &str| {
        let route = route.replace("example.org", "{name}");
        let (parts, wanted): (Vec<&str>, Vec<&str>) =
            (action.split('/').collect(), route.split('/').collect());
        let is_same = |(part, wanted): (&&str, &&str)| wanted.starts_with('{') || part == wanted;
        parts.len() == wanted.len() && parts.iter().zip(&wanted).all(is_same)
    };
    let rows = ROUTES.iter().filter(|(kind, route, _, _)| *kind == Kind::Form && fits(route));
    let has_act =
        |fields: &str| act.is_some_and(|act| fields.split('&').any(|one| one == format!("act={act}")));
    // Literal routes come before routes with parameters. Of the rows with the same path, the one with the button's act
    // comes first.
    let row = rows.min_by_key(|(_, route, fields, _)| (route.matches('{').count(), !has_act(fields)));
    let (_, _, _, access) = row.unwrap_or_else(|| panic!("no route for {action}"));
    match access {
        Access::Anybody => None,
        Access::AtLeast(person) => Some(*person),
    }
}

/// Sends a request as a browser does: `fields` are the query of a page, or the fields of a form.
pub(crate) async fn send_request(
    service: &DevService,
    kind: Kind,
    path: &str,
    fields: &str,
    cookie: &str,
    token: &str,
) -> Reply {
    let with_query = if fields.is_empty() { path.to_owned() } else { format!("{path}?{fields}") };
    match kind {
        Kind::Page => service.get(&with_query, cookie).await,
        Kind::Stream => {
            let headers = [("cookie", cookie)];
            service.client.request(Method::HEAD, &with_query, &headers, Vec::new().into()).await.unwrap()
        }
        Kind::Form => {
            let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
            service.post(path, &headers, &format!("csrf={token}&{fields}")).await
        }
    }
}

fn location(reply: &Reply) -> String {
    reply.headers.get("location").map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

/// The text with the values of its placeholders, such as `{server}`.
pub(crate) fn with_values(placeholders: &HashMap<&'static str, String>, text: &str) -> String {
    placeholders
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Creates one of everything that the routes need; returns the values of placeholders such as `{server}`, by name.
pub(crate) async fn create_objects(service: &DevService, operator: &str) -> HashMap<&'static str, String> {
    let start = service.get("/", operator).await;
    let server = location(&start).strip_prefix("/servers/").unwrap().to_owned();
    let message = service
        .send(json!({ "html_body": "<p>hi</p>", "attachments": [{ "name": "a.txt", "data": "aGk=" }] }))
        .await;
    service.until_status(message, "Sent").await;
    let key = service.ready("api_key");
    let by_server =
        async |path: &str, body: Value| call(service, "x-server-api-key", &key, path, &body).await;
    let template = json!({ "name": "x", "alias": "x", "subject": "hi", "plain_body": "hi", "publish": true });
    let template = by_server("templates/create", template).await;
    let webhook =
        by_server("webhooks/create", json!({ "url": "http://127.0.0.1:9/", "events": "all" })).await;
    let operator_key = service.ready("operator_api_key");
    let by_operator =
        async |path: &str, body: Value| call(service, "x-operator-api-key", &operator_key, path, &body).await;
    let account_key = service.ready("account_api_key");
    let by_account =
        async |path: &str, body: Value| call(service, "x-account-api-key", &account_key, path, &body).await;
    let account = by_account("account/get", json!({})).await["id"].clone();
    let pool =
        by_operator("ip_pools/create", json!({ "name": "own", "account": account })).await["id"].clone();
    let address =
        json!({ "pool": pool, "address": "192.0.2.9", "helo": "a.example", "weight": 1, "warm_up": true });
    by_operator("ip_pools/add_address", address).await;
    by_account("domains/create", json!({ "name": "common.example" })).await;
    let spare = by_account("servers/create", json!({ "name": "spare" })).await["id"].clone();
    let wanted = json!({ "server": server.parse::<i64>().unwrap(), "name": "other", "scope": "send" });
    let other_key = by_account("credentials/create", wanted).await["id"].clone();
    let (person, _) = join(service, "target", "read-only").await;
    let (colleague, _) = join(service, "colleague", "read-only").await;
    let token = form_token(&service.get("/servers", operator).await);
    let headers = [("cookie", operator), ("sec-fetch-site", "same-origin")];
    let inspector = format!("/servers/{server}/webhooks/inspector");
    assert_eq!(service.post(&inspector, &headers, &format!("csrf={token}")).await.status, 303);
    let form = format!("csrf={token}&tab=held&act=release&all=1&confirmed=1");
    let job = service.post(&format!("/servers/{server}/messages/bulk"), &headers, &form).await;
    let job = location(&job).rsplit_once('/').unwrap().1.to_owned();
    HashMap::from([
        ("server", server),
        ("account", account.to_string()),
        ("message", message.to_string()),
        ("number", "1".to_owned()),
        ("caught", "1".to_owned()),
        ("job", job),
        ("template", template["id"].to_string()),
        ("webhook", webhook["id"].to_string()),
        ("name", "example.test".to_owned()),
        ("key", other_key.to_string()),
        ("spare", spare.to_string()),
        ("pool", pool.to_string()),
        ("common", "common.example".to_owned()),
        ("person", person.to_string()),
        ("colleague", colleague.to_string()),
        ("missing", "999999".to_owned()),
        ("token", "AAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
    ])
}

/// Like `create_objects`, and also a development server that holds a message.
pub(crate) async fn create_objects_with_held_message(
    service: &DevService,
    operator: &str,
) -> HashMap<&'static str, String> {
    let mut placeholders = create_objects(service, operator).await;
    let development = SecondServer::create_development(service).await;
    placeholders.insert("held", development.send(service, json!({})).await.to_string());
    placeholders.insert("development", development.id.to_string());
    placeholders
}

/// Calls an endpoint of the API, which must succeed; returns `data` of the answer.
pub(crate) async fn call(service: &DevService, header: &str, key: &str, path: &str, body: &Value) -> Value {
    let headers = [(header, key), ("content-type", "application/json")];
    let path = format!("/api/v1/{path}");
    let reply = service.client.request(Method::POST, &path, &headers, body.to_string().into()).await.unwrap();
    let answer = reply.json();
    assert_eq!(answer["status"], "success", "{path}: {answer}");
    answer["data"].clone()
}

/// Invites somebody, accepts the invitation, and returns the person's id and the session's cookie.
pub(crate) async fn join(service: &DevService, name: &str, role: &str) -> (i64, String) {
    let key = service.ready("account_api_key");
    let email = format!("{name}@example.com");
    let account = call(service, "x-account-api-key", &key, "account/get", &json!({})).await["id"].clone();
    let wanted = json!({ "account": account, "email": email, "role": role, "mail": false });
    // An account key cannot invite owners.
    let operator_key = service.ready("operator_api_key");
    let invited = call(service, "x-operator-api-key", &operator_key, "users/invite", &wanted).await;
    let link = invited["link"].as_str().unwrap().to_owned();
    let token = link.split_once("token=").unwrap().1;
    let form = format!("token={token}&name={name}&password=a+road+of+seven+posts");
    let reply = service.post("/invitation", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(reply.status, 303, "{}", reply.text());
    let cookie = reply.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let people = call(service, "x-account-api-key", &key, "users/list", &json!({})).await;
    let people = people["items"].as_array().unwrap();
    let id = people.iter().find(|user| user["email"] == email.as_str()).unwrap()["id"].as_i64().unwrap();
    (id, cookie)
}

#[tokio::test]
async fn admins_have_no_buttons_for_people_with_more_rights() {
    let service = DevService::start();
    let (owner, owners_cookie) = join(&service, "owner", "owner").await;
    let (member, _) = join(&service, "member", "member").await;
    let (_, admin) = join(&service, "admin", "admin").await;
    let buttons = async |path: &str, cookie: &str, person: i64| {
        let page = service.get(path, cookie).await.text();
        let of_person =
            |action: &str| format!("{action}/").starts_with(&format!("/account/people/{person}/"));
        forms(&page).into_iter().filter(|(action, _)| of_person(action)).count()
    };
    for (cookie, person, expected) in [
        (&admin, owner, 0),
        (&admin, member, 3),
        (&owners_cookie, member, 3),
        (&service.sign_in().await, owner, 3),
    ] {
        assert_eq!(buttons("/account/people", cookie, person).await, expected, "{person}");
        let on_page = buttons(&format!("/account/people/{person}"), cookie, person).await;
        assert_eq!(on_page > 0, expected > 0, "{person}: {on_page}");
    }
    // An admin cannot invite an owner either.
    let invite = async |cookie: &str| service.get("/account/people", cookie).await.text();
    let invite = (invite(&admin).await, invite(&owners_cookie).await);
    let offers_owner = |page: &str| page.split("Invite somebody").nth(1).unwrap().contains("<option>owner");
    assert_eq!((offers_owner(&invite.0), offers_owner(&invite.1)), (false, true));
}

#[tokio::test]
async fn a_gate_of_the_operator_is_not_lifted_by_an_admin_on_sqlite() {
    a_gate_of_the_operator_is_not_lifted_by_an_admin(DevService::start()).await;
}

#[tokio::test]
async fn a_gate_of_the_operator_is_not_lifted_by_an_admin_on_postgres() {
    a_gate_of_the_operator_is_not_lifted_by_an_admin(DevService::start_on_postgres()).await;
}

async fn a_gate_of_the_operator_is_not_lifted_by_an_admin(service: DevService) {
    let operator = service.sign_in().await;
    let start = service.get("/", &operator).await;
    let server = start.headers["location"].to_str().unwrap().to_owned();
    let id = server.rsplit('/').next().unwrap();
    let (_, admin) = join(&service, "admin", "admin").await;
    let submit = async |cookie: &str, path: &str, fields: &str| {
        let token = form_token(&service.get("/servers", cookie).await);
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        service.post(path, &headers, &format!("csrf={token}&{fields}")).await.status
    };
    let (suspend, resume) = (format!("{server}/queue/suspend"), format!("{server}/queue/resume"));
    assert_eq!(submit(&admin, &suspend, "reason=mine").await, 303);
    assert_eq!(submit(&admin, &resume, "").await, 303);
    let scope = format!("scope=server%3A{id}");
    assert_eq!(submit(&operator, "/operator/suspend", &format!("{scope}&reason=abuse")).await, 303);
    for (path, fields) in [(&resume, ""), (&suspend, "reason=mine&per_minute=1000")] {
        assert_eq!(submit(&admin, path, fields).await, 422, "{path}");
    }
    let queue = service.get(&format!("{server}/queue"), &admin).await.text();
    assert!(queue.contains("abuse") && !queue.contains("mine"), "{queue}");
    assert_eq!(submit(&operator, "/operator/resume", &scope).await, 303);
    assert_eq!(submit(&admin, &suspend, "reason=mine").await, 303);
}
