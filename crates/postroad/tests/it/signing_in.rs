//! Signing in to the portal over plain HTTP: attempts, second factor, links by mail, passwords and sessions.

use std::net::IpAddr;

use postroad_model::{Clock as _, SystemClock};
use postroad_testkit::http::{Bytes, Client, Method, Reply};
use postroad_testkit::totp_code;
use serde_json::{Value, json};

use crate::accounts::{ACCOUNT, OPERATOR, call_ok, ready_field};
use crate::world::{World, both_engines};

pub(crate) const PASSWORD: &str = "a road of seven posts";
const OWNER_ADDRESS: [u8; 4] = [127, 0, 0, 1];
const OTHER_ADDRESS: [u8; 4] = [127, 0, 0, 2];

/// A browser at an IP address, with the cookie of its session.
pub(crate) struct Visitor {
    client: Client,
    pub(crate) cookie: String,
}

impl Visitor {
    pub(crate) fn at(world: &World, address: [u8; 4]) -> Self {
        let client = Client::new(ready_field(world, "url")).from_address(IpAddr::from(address));
        Self { client, cookie: String::new() }
    }

    /// The same session at another IP address, as after its cookie was stolen.
    fn with_stolen_cookie(&self, world: &World, address: [u8; 4]) -> Self {
        Self { cookie: self.cookie.clone(), ..Self::at(world, address) }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let headers = [("cookie", self.cookie.as_str())];
        self.client.request(Method::GET, path, &headers, Bytes::new()).await.unwrap()
    }

    /// Sends a form of this site. A cookie that the answer sets is kept.
    pub(crate) async fn send(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let form: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", value.replace(' ', "+"))).collect();
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("sec-fetch-site", "same-origin"),
            ("cookie", self.cookie.as_str()),
        ];
        let reply = self.client.request(Method::POST, path, &headers, form.join("&").into()).await.unwrap();
        if let Some(cookie) = reply.header("set-cookie") {
            cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        reply
    }

    /// Sends a form of a signed-in person.
    async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let token = between(&self.get("/account/you").await.text(), "name=\"csrf\" value=\"", "\"");
        let mut all = vec![("csrf", token.as_str())];
        all.extend_from_slice(fields);
        self.send(path, &all).await
    }

    pub(crate) async fn sign_in(&mut self, email: &str, password: &str) -> Reply {
        self.send("/sign_in", &[("email", email), ("password", password)]).await
    }

    async fn is_signed_in(&self) -> bool {
        self.get("/account/you").await.status == 200
    }
}

fn between(text: &str, start: &str, end: &str) -> String {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start} in {text}"));
    rest.split(end).next().unwrap().to_owned()
}

/// Invites a person to the account of `dev`; returns the browser, at `OWNER_ADDRESS`, in which that person has joined.
pub(crate) async fn join(world: &World, email: &str) -> Visitor {
    let account =
        call_ok(world, (ACCOUNT, ready_field(world, "account_api_key")), "account/get", &json!({})).await;
    let wanted = json!({"account": account["id"], "email": email, "role": "owner", "mail": false});
    let operator = (OPERATOR, ready_field(world, "operator_api_key"));
    let link = call_ok(world, operator, "users/invite", &wanted).await["link"].as_str().unwrap().to_owned();
    let token = link.split_once("token=").unwrap().1;
    let mut person = Visitor::at(world, OWNER_ADDRESS);
    let fields = [("token", token), ("name", "Ann"), ("password", PASSWORD)];
    assert_eq!(person.send("/invitation", &fields).await.status, 303);
    person
}

/// Audit entries of the account whose operation begins with `prefix`, oldest first.
async fn audit_entries(world: &World, prefix: &str) -> Vec<Value> {
    let account_key = (ACCOUNT, ready_field(world, "account_api_key"));
    let log = call_ok(world, account_key, "account/audit", &json!({"limit": 100})).await["items"].clone();
    let is_wanted = |entry: &&Value| entry["operation"].as_str().unwrap().starts_with(prefix);
    log.as_array().unwrap().iter().rev().filter(is_wanted).cloned().collect()
}

both_engines!(
    changes_that_a_person_makes_are_audited_with_the_ip_address_of_the_request,
    a_stolen_cookie_does_not_lock_the_owner_out,
    failed_sign_ins_are_limited_by_ip_address,
    each_code_of_the_authenticator_app_and_each_recovery_code_signs_in_once,
    a_mailed_link_sets_a_new_password_once,
    sessions_end_by_the_sessions_form_and_when_the_password_is_changed,
    the_sign_in_link_of_dev_still_works_after_a_password_is_set
);

async fn changes_that_a_person_makes_are_audited_with_the_ip_address_of_the_request(world: World) {
    let person = join(&world, "ann@example.com").await;
    let server = person.get("/").await.header("location").unwrap().to_owned();
    let mut other = person.with_stolen_cookie(&world, OTHER_ADDRESS);
    for (path, fields) in [
        ("/account/you/name".to_owned(), [("name", "Anna")]),
        ("/account/you/sessions".to_owned(), [("id", "999999")]),
        (format!("{server}/messages/searches"), [("q", "status:held")]),
    ] {
        let reply = other.submit(&path, &fields).await;
        assert!([303, 404, 422].contains(&reply.status), "{path}: {}", reply.text());
    }
    let changed =
        other.submit("/account/you/password", &[("old", PASSWORD), ("new", "another road of posts")]);
    assert_eq!(changed.await.status, 303);
    assert_eq!(other.submit("/sign_out", &[]).await.status, 303);
    let made = audit_entries(&world, "person/").await;
    let from: Vec<(&str, &str)> = made
        .iter()
        .map(|entry| (entry["operation"].as_str().unwrap(), entry["address"].as_str().unwrap()))
        .collect();
    let expected = [
        ("person/accept_invitation", "127.0.0.1"),
        ("person/sign_in", "127.0.0.1"),
        ("person/update", "127.0.0.2"),
        ("person/save_search", "127.0.0.2"),
        ("person/change_password", "127.0.0.2"),
        ("person/sign_out", "127.0.0.2"),
    ];
    assert_eq!(from, expected, "{made:?}");
}

async fn a_stolen_cookie_does_not_lock_the_owner_out(world: World) {
    let mut person = join(&world, "ann@example.com").await;
    let mut thief = person.with_stolen_cookie(&world, OTHER_ADDRESS);
    for attempt in 0..12 {
        let guess = [("old", "a wrong guess of it"), ("new", "a new password of theirs")];
        let reply = thief.submit("/account/you/password", &guess).await;
        let is_limited = reply.text().contains("too many attempts");
        assert_eq!((reply.status, is_limited), (422, attempt >= 10), "{attempt}: {}", reply.text());
    }
    let mut owner = Visitor::at(&world, OWNER_ADDRESS);
    assert_eq!(owner.sign_in("ann@example.com", PASSWORD).await.status, 303);
    let change = [("old", PASSWORD), ("new", "another road of posts")];
    assert_eq!(person.submit("/account/you/password", &change).await.status, 303);
}

async fn failed_sign_ins_are_limited_by_ip_address(world: World) {
    join(&world, "ann@example.com").await;
    let mut attacker = Visitor::at(&world, OTHER_ADDRESS);
    for _ in 0..10 {
        let reply = attacker.sign_in("ann@example.com", "a wrong guess of it").await;
        assert!(reply.status == 422 && reply.text().contains("is wrong"), "{}", reply.text());
    }
    let reply = attacker.sign_in("ann@example.com", PASSWORD).await;
    assert!(reply.status == 422 && reply.text().contains("too many attempts"), "{}", reply.text());
    assert_eq!(Visitor::at(&world, OWNER_ADDRESS).sign_in("ann@example.com", PASSWORD).await.status, 303);
    // For an unknown e-mail address the answers are the same.
    for _ in 0..10 {
        let reply = attacker.sign_in("nobody@example.com", PASSWORD).await;
        assert!(reply.status == 422 && reply.text().contains("is wrong"), "{}", reply.text());
    }
    let reply = attacker.sign_in("nobody@example.com", PASSWORD).await;
    assert!(reply.text().contains("too many attempts"), "{}", reply.text());
}

async fn each_code_of_the_authenticator_app_and_each_recovery_code_signs_in_once(world: World) {
    let mut person = join(&world, "ann@example.com").await;
    let page = person.submit("/account/you/app", &[]).await.text();
    let secret = between(&page, "<span class=\"secret\" data-copy>", "<");
    let now = SystemClock.now().as_secs();
    let page = person.submit("/account/you/app/enable", &[("code", &totp_code(&secret, now))]).await.text();
    let codes = between(&page, "<pre class=\"code\" tabindex=\"0\" data-copy>", "</pre>");
    let codes: Vec<&str> = codes.split_whitespace().collect();
    assert_eq!(codes.len(), 10, "{page}");
    let enter = async |code: &str| {
        let mut visitor = Visitor::at(&world, OWNER_ADDRESS);
        let page = visitor.sign_in("ann@example.com", PASSWORD).await;
        assert!(page.status == 200 && visitor.cookie.is_empty(), "the password is not enough");
        let token = between(&page.text(), "name=\"token\" value=\"", "\"");
        visitor.send("/sign_in/code", &[("token", &token), ("code", code)]).await;
        !visitor.cookie.is_empty() && visitor.is_signed_in().await
    };
    // The first code was used to enable the app.
    let next = totp_code(&secret, now + 30);
    for (code, works) in [(next.as_str(), true), (&next, false), (codes[0], true), (codes[0], false)] {
        assert_eq!(enter(code).await, works, "{code}");
    }
    assert!(person.get("/account/you").await.text().contains("9 recovery codes are left"));
}

/// The token of the link in the newest mail to an address.
async fn mailed_token(world: &World, to: &str) -> String {
    let caught = world.client.get(&format!("/dev/messages/wait?to={to}&timeout=30")).await.unwrap().json();
    let raw = world.client.get(&format!("/dev/messages/{}/raw", caught["id"])).await.unwrap();
    let raw = raw.text().replace("=\r\n", "").replace("=3D", "=");
    let (_, link) = raw.split_once("?token=").unwrap_or_else(|| panic!("a link: {raw}"));
    link.chars().take_while(char::is_ascii_alphanumeric).collect()
}

async fn a_mailed_link_sets_a_new_password_once(world: World) {
    let person = join(&world, "ann@example.com").await;
    let mut visitor = Visitor::at(&world, OWNER_ADDRESS);
    let mut answers = Vec::new();
    for email in ["nobody@example.com", "ann@example.com"] {
        let reply = visitor.send("/reset_password", &[("email", email)]).await;
        answers.push((reply.status, reply.header("location").map(ToOwned::to_owned)));
    }
    assert_eq!(answers[0], answers[1], "the answer does not tell who signs in here");
    let token = mailed_token(&world, "ann@example.com").await;
    assert_eq!(visitor.get(&format!("/reset_password?token={token}")).await.status, 200);
    let short = visitor.send("/reset_password", &[("token", &token), ("password", "short")]).await;
    assert_eq!(short.status, 422);
    let new = [("token", token.as_str()), ("password", "a second road of posts")];
    assert_eq!(visitor.send("/reset_password", &new).await.status, 303);
    assert!(visitor.is_signed_in().await && !person.is_signed_in().await, "earlier sessions have ended");
    let mut again = Visitor::at(&world, OWNER_ADDRESS);
    let reply = again.send("/reset_password", &new).await;
    assert!(reply.status == 422 && again.cookie.is_empty(), "{}", reply.text());
    assert_eq!(again.sign_in("ann@example.com", PASSWORD).await.status, 422);
    assert_eq!(again.sign_in("ann@example.com", "a second road of posts").await.status, 303);
}

async fn sessions_end_by_the_sessions_form_and_when_the_password_is_changed(world: World) {
    let mut person = join(&world, "ann@example.com").await;
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = Visitor::at(&world, OWNER_ADDRESS);
        assert_eq!(other.sign_in("ann@example.com", PASSWORD).await.status, 303);
        others.push(other);
    }
    let signed_in = async || {
        let mut shown = Vec::new();
        for other in &others {
            shown.push(other.is_signed_in().await);
        }
        shown
    };
    // The newest session is the first in the list.
    let id = between(&person.get("/account/you").await.text(), "name=\"id\" value=\"", "\"");
    assert_eq!(person.submit("/account/you/sessions", &[("id", &id)]).await.status, 303);
    assert_eq!(signed_in().await, [true, true, false]);
    assert_eq!(person.submit("/account/you/sessions", &[]).await.status, 303);
    assert_eq!(signed_in().await, [false, false, false]);
    let mut other = Visitor::at(&world, OWNER_ADDRESS);
    other.sign_in("ann@example.com", PASSWORD).await;
    assert_eq!(person.submit("/account/you/password", &[("old", "x"), ("new", "x")]).await.status, 422);
    assert!(other.is_signed_in().await);
    let change = [("old", PASSWORD), ("new", "another road of posts")];
    assert_eq!(person.submit("/account/you/password", &change).await.status, 303);
    assert!(person.is_signed_in().await && !other.is_signed_in().await);
    assert_eq!(person.submit("/sign_out", &[]).await.status, 303);
    assert!(!person.is_signed_in().await);
}

async fn the_sign_in_link_of_dev_still_works_after_a_password_is_set(world: World) {
    let link = ready_field(&world, "sign_in_url").strip_prefix(ready_field(&world, "url")).unwrap();
    let open = async || {
        let mut visitor = Visitor::at(&world, OWNER_ADDRESS);
        let reply = visitor.get(link).await;
        assert_eq!(reply.status, 303, "{}", reply.text());
        reply.header("set-cookie").unwrap().split(';').next().unwrap().clone_into(&mut visitor.cookie);
        visitor
    };
    let mut visitor = open().await;
    assert_eq!(visitor.submit("/account/you/password", &[("new", PASSWORD)]).await.status, 303);
    assert!(open().await.is_signed_in().await);
}
