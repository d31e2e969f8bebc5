//! People: signing in, sessions, second factor, links by mail, invitations; on both engines, with a clock that the
//! tests move.

#![expect(clippy::unwrap_used, reason = "in a test a failed unwrap is a failed test")]

use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use postroad_app::access::Actor;
use postroad_app::accounts::{AccountRefusal, CreationKey, Requester};
use postroad_app::users::{
    InvitationRequest, NewPersonRequest, NewSession, SignInOutcome, SignInRequest, SignedInPerson,
    UserChangeRequest, UserRefusal, Visitor,
};
use postroad_app::{App, Settings as AppSettings};
use postroad_model::{AccountId, Clock as _, DomainName, UserRole};
use postroad_store::{
    AuditFilter, Database, InvitationFilter, QueueFilter, Role, Settings, Store, User, UserFilter,
};
use postroad_testkit::{ManualClock, eventually, totp_code};
use tempfile::TempDir;

const PASSWORD: &str = "correct horse battery";
const ANNA: &str = "anna@example.com";

struct Fixture {
    app: App,
    store: Store,
    clock: ManualClock,
    account: AccountId,
    _folder: TempDir,
    _database: Option<postroad_testkit::Database>,
}

impl Fixture {
    async fn new(is_postgres: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let database = is_postgres.then(postroad_testkit::Database::create);
        let store_database = match &database {
            Some(database) => Database::Postgres(database.url().to_owned()),
            None => Database::Sqlite(folder.path().join("postroad.db")),
        };
        let settings = Settings {
            database: store_database,
            disk_reserve_bytes: 0,
            reader_threads: 2,
            postgres_connections: 4,
            postgres_ca_file: None,
        };
        let clock = ManualClock::default();
        let role = Role::Node { identity: "the node of the test".to_owned() };
        let store = Store::open(settings, role, Arc::new(clock.clone())).await.unwrap();
        let account = store.create_account("Acme".into()).await.unwrap().id;
        let settings = AppSettings::of(DomainName::parse("mail.example.com").unwrap());
        let app = App::with_settings(store.clone(), Arc::new(clock.clone()), settings);
        Self { app, store, clock, account, _folder: folder, _database: database }
    }

    async fn create_person(&self, email: &str, role: UserRole) -> User {
        let new = NewPersonRequest {
            account: self.account,
            email: email.to_owned(),
            name: "Anna".to_owned(),
            role,
            operator: false,
            password: Some(PASSWORD.to_owned()),
        };
        self.app.create_user(&Requester::command_line(), new).await.unwrap()
    }

    async fn sign_in(&self, email: &str, password: &str, from: &str) -> Result<SignInOutcome, UserRefusal> {
        let request = SignInRequest { email: email.to_owned(), password: password.to_owned() };
        self.app.sign_in(request, &visitor(from)).await
    }

    async fn start_session(&self, email: &str, password: &str) -> NewSession {
        match self.sign_in(email, password, "192.0.2.1").await.unwrap() {
            SignInOutcome::Done(session) => *session,
            SignInOutcome::NeedsCode { .. } => panic!("no code is expected"),
        }
    }

    async fn signed_in(&self, email: &str) -> SignedInPerson {
        let session = self.start_session(email, PASSWORD).await;
        self.app.find_session(&session.token, usual_address()).await.unwrap().unwrap()
    }

    /// Text of the newest mail of the service itself to `to`, once it is queued.
    async fn mail_to(&self, to: &str) -> String {
        let entry = eventually(async || {
            let all = self.store.list_queue(QueueFilter::default(), None, 100).await.unwrap();
            let own = all.into_iter().filter(|entry| entry.rcpt_to == to);
            own.max_by_key(|entry| entry.message_id).ok_or_else(|| format!("no mail to {to} is queued"))
        })
        .await;
        let message = self.store.find_message(entry.server_id, entry.message_id).await.unwrap().unwrap();
        let send = &message.send;
        let body = self.store.read_body(entry.server_id, send.id, send.size).await.unwrap();
        String::from_utf8(body).unwrap().replace("=\r\n", "").replace("=3D", "=")
    }

    /// Operations in the audit log, except signing in and out.
    async fn list_changes(&self) -> Vec<String> {
        let is_change = |name: &String| !["person/sign_in", "person/sign_out"].contains(&name.as_str());
        self.list_operations().await.into_iter().filter(is_change).collect()
    }

    async fn list_operations(&self) -> Vec<String> {
        let all =
            self.store.list_audit(self.account, AuditFilter::default(), None, 100).await.unwrap().entries;
        all.iter().rev().map(|entry| entry.operation.clone()).collect()
    }
}

macro_rules! both_engines {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name(super::Fixture::new(false).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name(super::Fixture::new(true).await).await;
            }
        }
    )+};
}

both_engines! {
    a_session_begins_with_the_password_and_ends_by_sign_out_revocation_age_or_suspension,
    every_sign_in_and_sign_out_is_recorded_and_a_wrong_password_is_not,
    attempts_are_limited_by_person_and_network,
    codes_of_an_app_work_once_and_so_do_recovery_codes,
    a_link_by_mail_sets_a_new_password_once,
    an_invitation_makes_a_person_of_its_role,
    invitations_by_mail_are_limited_except_those_of_the_operator,
    an_invitation_whose_mail_was_not_stored_is_mailed_when_the_call_is_repeated,
    nobody_grants_more_rights_than_their_own,
    the_first_person_is_created_with_the_set_up_link,
}

fn visitor(from: &str) -> Visitor {
    let address: IpAddr = from.parse().unwrap();
    Visitor { address, user_agent: "Firefox\n".to_owned(), previous_token: None }
}

/// Address of most requests.
fn usual_address() -> IpAddr {
    IpAddr::from([192, 0, 2, 1])
}

fn token_in(text: &str) -> String {
    let (_, rest) = text.split_once("?token=").unwrap_or_else(|| panic!("a link: {text}"));
    rest.chars().take_while(char::is_ascii_alphanumeric).collect()
}

async fn every_sign_in_and_sign_out_is_recorded_and_a_wrong_password_is_not(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Member).await;
    assert!(fixture.sign_in(ANNA, "wrong", "192.0.2.1").await.is_err());
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(fixture.start_session(ANNA, PASSWORD).await);
    }
    app.sign_out(&sessions[0].token, usual_address()).await.unwrap();
    app.sign_out(&sessions[0].token, usual_address()).await.unwrap();
    let person = app.find_session(&sessions[1].token, usual_address()).await.unwrap().unwrap();
    assert_eq!(app.revoke_other_sessions(&person).await.unwrap(), 1);
    assert_eq!(app.revoke_other_sessions(&person).await.unwrap(), 0);
    let id = person.session.id;
    app.revoke_sessions_of(&Requester::command_line(), person.user.id, Some(id)).await.unwrap();
    let expected = [
        "users/create",
        "person/sign_in",
        "person/sign_in",
        "person/sign_in",
        "person/sign_out",
        "person/revoke_session",
        "users/revoke_session",
    ];
    assert_eq!(fixture.list_operations().await, expected);
    let filter = AuditFilter { operation: Some("person/sign_in".to_owned()), ..AuditFilter::default() };
    let entries = fixture.store.list_audit(fixture.account, filter, None, 1).await.unwrap().entries;
    assert_eq!((entries[0].actor.as_str(), entries[0].actor_id), ("user", Some(person.user.id.0)));
    assert_eq!((entries[0].subject.as_str(), entries[0].subject_id), ("user", Some(person.user.id.0)));
    assert!(entries[0].address.is_some() && entries[0].before.is_none());
    let after = entries[0].after.as_ref().unwrap();
    assert!(after["session"].is_i64() && after["email"] == ANNA, "{after}");
    assert_eq!(fixture.store.verify_audit(fixture.account, 0, "").await.unwrap().broken_at, None);
}

async fn a_session_begins_with_the_password_and_ends_by_sign_out_revocation_age_or_suspension(
    fixture: Fixture,
) {
    let app = &fixture.app;
    fixture.create_person("Anna@Example.com", UserRole::Member).await;
    for (email, password) in
        [(ANNA, "wrong"), (ANNA, ""), ("nobody@example.com", PASSWORD), ("no address", PASSWORD)]
    {
        let refused = fixture.sign_in(email, password, "192.0.2.1").await;
        assert!(matches!(refused, Err(UserRefusal::WrongCredentials)), "{email}: {refused:?}");
    }
    let first = fixture.start_session("ANNA@example.COM", PASSWORD).await;
    let found = app.find_session(&first.token, usual_address()).await.unwrap().unwrap();
    assert_eq!(found.user.email, ANNA);
    assert_eq!(found.session.user_agent, "Firefox");
    assert!(matches!(found.actor(), Actor::User { role: UserRole::Member, operator: false, .. }));
    assert!(app.find_session("made up", usual_address()).await.unwrap().is_none());

    // Signing in again in the same browser ends the previous session.
    let again = Visitor { previous_token: Some(first.token.clone()), ..visitor("192.0.2.1") };
    let request = SignInRequest { email: ANNA.to_owned(), password: PASSWORD.to_owned() };
    let SignInOutcome::Done(second) = app.sign_in(request, &again).await.unwrap() else { panic!("no code") };
    assert!(app.find_session(&first.token, usual_address()).await.unwrap().is_none());
    assert_ne!(first.token, second.token);

    // Sessions are listed, and ended one by one or all but this one.
    let third = fixture.start_session(ANNA, PASSWORD).await;
    let second_person = app.find_session(&second.token, usual_address()).await.unwrap().unwrap();
    assert_eq!(app.list_own_sessions(&second_person).await.unwrap().len(), 2);
    assert_eq!(app.revoke_other_sessions(&second_person).await.unwrap(), 1);
    assert!(app.find_session(&third.token, usual_address()).await.unwrap().is_none());
    app.sign_out(&second.token, usual_address()).await.unwrap();
    app.sign_out(&second.token, usual_address()).await.unwrap();
    assert!(app.find_session(&second.token, usual_address()).await.unwrap().is_none());

    // A session ends when it is unused for a day, or fourteen days old.
    let idle = fixture.start_session(ANNA, PASSWORD).await;
    fixture.clock.advance(Duration::from_hours(24));
    assert!(app.find_session(&idle.token, usual_address()).await.unwrap().is_none());
    let busy = fixture.start_session(ANNA, PASSWORD).await;
    for hours in 0..15 * 2 {
        let found = app.find_session(&busy.token, usual_address()).await.unwrap();
        assert_eq!(found.is_some(), hours < 14 * 2, "{hours}");
        if let Some(found) = found {
            fixture.store.touch_user_sessions(vec![(found.session.id, fixture.clock.now())]).await.unwrap();
        }
        fixture.clock.advance(Duration::from_hours(12));
    }

    // People of a suspended account cannot sign in, and their sessions end.
    let last = fixture.start_session(ANNA, PASSWORD).await;
    fixture.store.set_account_suspended(fixture.account, Some("unpaid".into())).await.unwrap();
    assert!(app.find_session(&last.token, usual_address()).await.unwrap().is_none());
    assert!(matches!(fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await, Err(UserRefusal::AccountSuspended)));
}

async fn attempts_are_limited_by_person_and_network(fixture: Fixture) {
    fixture.create_person(ANNA, UserRole::Member).await;
    fixture.create_person("bob@example.com", UserRole::Member).await;
    fixture.start_session(ANNA, PASSWORD).await;
    let (attacker, home) = ("203.0.113.9", "192.0.2.1");
    for _ in 0..10 {
        let refused = fixture.sign_in(ANNA, "a wrong password", attacker).await;
        assert!(matches!(refused, Err(UserRefusal::WrongCredentials)));
    }
    // The attacker's address is refused even with the right password. Anna's known address is not, nor are other people
    // at the attacker's address.
    let Err(UserRefusal::TooManyAttempts { retry_after }) = fixture.sign_in(ANNA, PASSWORD, attacker).await
    else {
        panic!("the eleventh is refused");
    };
    assert!(
        retry_after <= Duration::from_mins(15) && retry_after > Duration::from_mins(14),
        "{retry_after:?}"
    );
    assert!(fixture.sign_in(ANNA, PASSWORD, home).await.is_ok());
    assert!(fixture.sign_in("bob@example.com", PASSWORD, attacker).await.is_ok());

    // After attempts from many addresses Anna is refused at new addresses, but not where she has signed in before.
    for number in 10..55 {
        let _ = fixture.sign_in(ANNA, "a wrong password", &format!("198.51.100.{number}")).await;
    }
    let new_place = fixture.sign_in(ANNA, PASSWORD, "198.51.100.200").await;
    assert!(matches!(new_place, Err(UserRefusal::TooManyAttempts { .. })), "{new_place:?}");
    assert!(fixture.sign_in(ANNA, PASSWORD, home).await.is_ok());
    fixture.clock.advance(Duration::from_mins(16));
    assert!(fixture.sign_in(ANNA, PASSWORD, "198.51.100.200").await.is_ok());
    assert!(fixture.sign_in(ANNA, PASSWORD, attacker).await.is_ok());
}

async fn codes_of_an_app_work_once_and_so_do_recovery_codes(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Member).await;
    let person = fixture.signed_in(ANNA).await;
    let now = || fixture.clock.now().as_micros() / 1_000_000;
    let proposed = app.propose_totp(&person).await.unwrap();
    assert!(proposed.url.starts_with("otpauth://totp/Postroad:anna%40example.com?secret="));
    assert!(matches!(app.enable_totp(&person, "000000").await, Err(UserRefusal::WrongCode)));
    assert!(
        matches!(fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await, Ok(SignInOutcome::Done(_))),
        "a proposed seed is not in force yet"
    );
    let first_code = totp_code(&proposed.secret, now());
    let recovery = app.enable_totp(&person, &first_code).await.unwrap();
    assert_eq!(recovery.len(), 10);
    let stored = fixture.store.find_user(person.user.id).await.unwrap().unwrap();
    assert!(stored.totp_seed.is_some_and(|seed| seed.len() > 20), "the seed is stored sealed");

    let sign_in_with = async |code: &str| {
        let Ok(SignInOutcome::NeedsCode { token }) = fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await
        else {
            panic!("a code is needed");
        };
        app.sign_in_with_code(&token, code, &visitor("192.0.2.1")).await.map(|session| (session, token))
    };
    assert!(
        matches!(sign_in_with(&first_code).await, Err(UserRefusal::WrongCode)),
        "used when it was set up"
    );
    fixture.clock.advance(Duration::from_secs(30));
    let next = totp_code(&proposed.secret, now());
    let (session, token) = sign_in_with(&next).await.unwrap();
    assert!(app.find_session(&session.token, usual_address()).await.unwrap().is_some());
    assert!(matches!(sign_in_with(&next).await, Err(UserRefusal::WrongCode)), "a code is taken once");
    let again = app.sign_in_with_code(&token, &next, &visitor("192.0.2.1")).await;
    assert!(matches!(again, Err(UserRefusal::CodeTooLate)), "and so is the token of the first step");
    let spaced = format!("{} {}", &recovery[0][..6], &recovery[0][6..].to_uppercase());
    sign_in_with(&spaced).await.unwrap();
    assert!(matches!(sign_in_with(&recovery[0]).await, Err(UserRefusal::WrongCode)));
    assert_eq!(app.count_recovery_codes(&person).await.unwrap(), 9);

    // Wrong codes count as attempts.
    for _ in 0..10 {
        let _ = try_sign_in_with(&fixture, "123456").await;
    }
    assert!(matches!(try_sign_in_with(&fixture, "123456").await, Err(UserRefusal::TooManyAttempts { .. })));
    fixture.clock.advance(Duration::from_mins(16));

    assert!(matches!(app.propose_totp(&find_anna(&fixture).await).await, Err(UserRefusal::TotpEnabled)));
    assert!(matches!(app.disable_totp(&person, "000000").await, Err(UserRefusal::WrongCode)));
    // Guesses in a browser left open count as well.
    for _ in 0..9 {
        assert!(matches!(app.disable_totp(&person, "000000").await, Err(UserRefusal::WrongCode)));
    }
    let guessed = app.disable_totp(&person, &recovery[1]).await;
    assert!(matches!(guessed, Err(UserRefusal::TooManyAttempts { .. })), "{guessed:?}");
    fixture.clock.advance(Duration::from_mins(16));
    // A person who knows the code is not locked out by signing in often.
    for code in &recovery[2..8] {
        sign_in_with(code).await.unwrap();
    }
    app.disable_totp(&person, &recovery[1]).await.unwrap();
    assert!(matches!(fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await, Ok(SignInOutcome::Done(_))));
    let kinds = ["users/create", "person/enable_totp", "person/disable_totp"];
    assert_eq!(fixture.list_changes().await, kinds);
}

async fn try_sign_in_with(fixture: &Fixture, code: &str) -> Result<NewSession, UserRefusal> {
    match fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await? {
        SignInOutcome::NeedsCode { token } => {
            fixture.app.sign_in_with_code(&token, code, &visitor("192.0.2.1")).await
        }
        SignInOutcome::Done(session) => Ok(*session),
    }
}

/// Anna with her newest session, as they are stored.
async fn find_anna(fixture: &Fixture) -> SignedInPerson {
    let user = fixture.store.find_user_by_email(ANNA.to_owned()).await.unwrap().unwrap();
    let since = fixture.clock.now().minus(Duration::from_hours(24));
    let session = fixture.store.list_user_sessions(user.id, since, None, 10).await.unwrap().remove(0);
    SignedInPerson { session, user, address: usual_address() }
}

async fn a_link_by_mail_sets_a_new_password_once(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Member).await;
    let before = fixture.start_session(ANNA, PASSWORD).await;
    let home = visitor("192.0.2.1");
    // The answer does not reveal whether the person exists.
    app.request_password_reset("nobody@example.com", &home).await.unwrap();
    app.request_password_reset("no address", &home).await.unwrap();
    app.request_password_reset("Anna@example.com", &home).await.unwrap();
    let mail = fixture.mail_to(ANNA).await;
    assert!(
        mail.contains("From: Postroad <postroad@mail.example.com>")
            || mail.contains("From: \"Postroad\" <postroad@mail.example.com>"),
        "{mail}"
    );
    assert!(mail.contains("https://mail.example.com/reset_password?token="), "{mail}");
    let token = token_in(&mail);
    app.check_reset_link(&token).await.unwrap();
    for weak in ["short", "password123"] {
        assert!(matches!(app.reset_password(&token, weak, &home).await, Err(UserRefusal::Password(_))));
    }
    fixture.clock.advance(Duration::from_secs(1));
    let session = app.reset_password(&token, "another long password", &home).await.unwrap().unwrap();
    assert!(app.find_session(&session.token, usual_address()).await.unwrap().is_some());
    assert!(
        app.find_session(&before.token, usual_address()).await.unwrap().is_none(),
        "the reset ended other sessions"
    );
    assert!(matches!(
        app.reset_password(&token, "a third long password", &home).await,
        Err(UserRefusal::LinkInvalid)
    ));
    assert!(matches!(fixture.sign_in(ANNA, PASSWORD, "192.0.2.1").await, Err(UserRefusal::WrongCredentials)));
    fixture.start_session(ANNA, "another long password").await;
    let queued = fixture.store.list_queue(QueueFilter::default(), None, 100).await.unwrap();
    assert_eq!(queued.len(), 1, "no mail to unknown addresses");

    // A link from the operator expires too.
    let id = session.user.id;
    let link = app.reset_link_of(&Requester::command_line(), id).await.unwrap();
    fixture.clock.advance(Duration::from_mins(61));
    assert!(matches!(app.check_reset_link(&token_in(&link)).await, Err(UserRefusal::LinkInvalid)));
    let person = find_anna(&fixture).await;
    assert!(matches!(
        app.change_password(&person, "wrong", "yet another password").await,
        Err(UserRefusal::WrongCredentials)
    ));
    app.change_password(&person, "another long password", "yet another password").await.unwrap();
    assert!(
        app.find_session(&session.token, usual_address()).await.unwrap().is_none(),
        "only the session that changed the password stays"
    );
    let changes =
        ["users/create", "person/change_password", "users/reset_password", "person/change_password"];
    assert_eq!(fixture.list_changes().await, changes);
}

async fn an_invitation_makes_a_person_of_its_role(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Owner).await;
    let owner = fixture.signed_in(ANNA).await;
    let by = owner.requester();
    let first = app.invite_user(&by, invite("Bob@example.com", UserRole::ReadOnly)).await.unwrap();
    assert!(first.value.link.is_none(), "only the invited address gets the link");
    let first = token_in(&fixture.mail_to("bob@example.com").await);
    let by_hand = InvitationRequest { mail: false, ..invite("bob@example.com", UserRole::Admin) };
    let refused = app.invite_user(&by, by_hand.clone()).await;
    assert!(matches!(refused, Err(AccountRefusal::Refused(_))), "only the operator passes links on");
    let by_hand = InvitationRequest { account: Some(fixture.account), ..by_hand };
    let operator = Requester::command_line();
    let second = app.invite_user(&operator, by_hand).await.unwrap().value.link.expect("for the operator");
    assert_eq!(
        app.list_invitations(&by, None, InvitationFilter::default(), None, 10).await.unwrap().0.len(),
        1
    );
    let home = visitor("192.0.2.7");
    let old = app.accept_invitation(&first, "Bob", PASSWORD, &home).await;
    assert!(matches!(old, Err(UserRefusal::LinkInvalid)), "the second replaced the first");
    let token = token_in(&second);
    assert_eq!(app.find_invitation(&token).await.unwrap().account_name, "Acme");
    let session = app.accept_invitation(&token, " Bob ", PASSWORD, &home).await.unwrap();
    assert_eq!((session.user.role, session.user.name.as_str()), (UserRole::Admin, "Bob"));
    assert!(matches!(app.find_invitation(&token).await, Err(UserRefusal::LinkInvalid)), "works once");
    let taken = app.invite_user(&by, invite("bob@example.com", UserRole::Member)).await;
    assert!(matches!(taken, Err(AccountRefusal::Exists(_))));

    // Inviting a person of another account reveals nothing; that person learns it from the link.
    let other = fixture.store.create_account("Other".into()).await.unwrap().id;
    let elsewhere = InvitationRequest { account: Some(other), mail: false, ..invite(ANNA, UserRole::Member) };
    let link = app.invite_user(&operator, elsewhere).await.unwrap().value.link.unwrap();
    let accepted = app.accept_invitation(&token_in(&link), "Anna", PASSWORD, &home).await;
    assert!(matches!(accepted, Err(UserRefusal::EmailTaken)));

    let carl = InvitationRequest {
        account: Some(fixture.account),
        mail: false,
        ..invite("carl@example.com", UserRole::Member)
    };
    let late = app.invite_user(&operator, carl.clone()).await.unwrap().value;
    app.uninvite_user(&by, None, late.invitation.id).await.unwrap();
    let gone = app.find_invitation(&token_in(&late.link.unwrap())).await;
    assert!(matches!(gone, Err(UserRefusal::LinkInvalid)));
    let late = app.invite_user(&operator, carl).await.unwrap().value.link.unwrap();
    fixture.clock.advance(Duration::from_hours(7 * 24));
    assert!(matches!(app.find_invitation(&token_in(&late)).await, Err(UserRefusal::LinkInvalid)));
}

fn invite(email: &str, role: UserRole) -> InvitationRequest {
    InvitationRequest {
        account: None,
        email: email.to_owned(),
        role,
        operator: false,
        mail: true,
        idempotency_key: None,
    }
}

async fn invitations_by_mail_are_limited_except_those_of_the_operator(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Owner).await;
    let by = fixture.signed_in(ANNA).await.requester();
    let bob = invite("bob@example.com", UserRole::Member);
    for _ in 0..5 {
        app.invite_user(&by, bob.clone()).await.unwrap();
    }
    let Err(AccountRefusal::TooManyCalls { problem, limit }) = app.invite_user(&by, bob.clone()).await else {
        panic!("the sixth mail is refused")
    };
    assert_eq!(problem.pointer, "/email");
    assert!(problem.message.contains("try again in 15 minutes"), "{problem:?}");
    assert_eq!((limit.limit, limit.remaining), (5, 0));
    let operator = Requester::command_line();
    let by_operator = InvitationRequest { account: Some(fixture.account), ..bob.clone() };
    app.invite_user(&operator, by_operator).await.unwrap();
    // Others can be invited, up to the account's limit of 100. Bob's sixth mail counts although it was refused; the
    // operator's does not count.
    let person = |number: usize| invite(&format!("p{number}@example.com"), UserRole::Member);
    for number in 0..94 {
        app.invite_user(&by, person(number)).await.unwrap();
    }
    let refused = app.invite_user(&by, person(94)).await;
    assert!(matches!(refused, Err(AccountRefusal::TooManyCalls { .. })), "{refused:?}");
    let mails = fixture.store.list_queue(QueueFilter::default(), None, 200).await.unwrap().len();
    assert_eq!(mails, 100, "5 to bob, one by the operator, 94 to others");
    fixture.clock.advance(Duration::from_mins(16));
    app.invite_user(&by, bob).await.unwrap();
}

async fn an_invitation_whose_mail_was_not_stored_is_mailed_when_the_call_is_repeated(fixture: Fixture) {
    let app = &fixture.app;
    fixture.create_person(ANNA, UserRole::Owner).await;
    let by = fixture.signed_in(ANNA).await.requester();
    let key = CreationKey { key: "once".to_owned(), fingerprint: [1; 32] };
    let bob = InvitationRequest { idempotency_key: Some(key), ..invite("bob@example.com", UserRole::Member) };
    // The call is dropped after the invitation is stored and before the mail is, as if the process had ended.
    let mut first = app.invite_user(&by, bob.clone());
    while fixture
        .store
        .list_invitations(fixture.account, InvitationFilter::default(), None, 1)
        .await
        .unwrap()
        .is_empty()
    {
        let state = std::future::poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx))).await;
        assert!(state.is_pending(), "{state:?}");
    }
    drop(first);
    let second = app.invite_user(&by, bob.clone()).await.unwrap();
    assert!(second.is_replay, "the invitation is that of the first call");
    let token = token_in(&fixture.mail_to("bob@example.com").await);
    assert_eq!(app.find_invitation(&token).await.unwrap().id, second.value.invitation.id);
    assert!(app.invite_user(&by, bob).await.unwrap().is_replay);
    let mails = fixture.store.list_queue(QueueFilter::default(), None, 10).await.unwrap().len();
    assert_eq!(mails, 1);
}

async fn nobody_grants_more_rights_than_their_own(fixture: Fixture) {
    let app = &fixture.app;
    let owner = fixture.create_person(ANNA, UserRole::Owner).await;
    fixture.create_person("admin@example.com", UserRole::Admin).await;
    let member = fixture.create_person("member@example.com", UserRole::Member).await;
    let admin = fixture.signed_in("admin@example.com").await.requester();
    let by_member = fixture.signed_in("member@example.com").await.requester();
    let anna = fixture.signed_in(ANNA).await.requester();
    let role = |role| UserChangeRequest { role: Some(role), ..UserChangeRequest::default() };
    let operator = UserChangeRequest { operator: Some(true), ..UserChangeRequest::default() };
    let refused = |done: Result<User, AccountRefusal>| matches!(done, Err(AccountRefusal::Refused(_)));
    assert!(refused(app.update_user(&admin, member.id, role(UserRole::Owner)).await));
    assert!(refused(app.update_user(&admin, owner.id, role(UserRole::Member)).await));
    assert!(refused(app.remove_user(&admin, owner.id).await));
    assert!(refused(app.update_user(&anna, member.id, operator.clone()).await));
    let denied = app.update_user(&by_member, member.id, role(UserRole::Admin)).await;
    assert!(matches!(denied, Err(AccountRefusal::Denied(_))), "{denied:?}");
    assert!(app.list_users(&by_member, UserFilter::default(), None, 10).await.unwrap().0.len() == 3);
    // The last owner stays an owner.
    assert!(matches!(
        app.update_user(&anna, owner.id, role(UserRole::Admin)).await,
        Err(AccountRefusal::LastOwner)
    ));
    assert!(matches!(app.remove_user(&anna, owner.id).await, Err(AccountRefusal::LastOwner)));
    app.update_user(&anna, member.id, role(UserRole::Owner)).await.unwrap();
    app.remove_user(&anna, owner.id).await.unwrap();
    // A person of another account is reported as unknown.
    let other = fixture.store.create_account("Other".into()).await.unwrap().id;
    let new = NewPersonRequest {
        account: other,
        email: "x@example.com".to_owned(),
        name: String::new(),
        role: UserRole::Member,
        operator: false,
        password: None,
    };
    let stranger = app.create_user(&Requester::command_line(), new).await.unwrap();
    let foreign = app.remove_user(&admin, stranger.id).await;
    assert!(matches!(foreign, Err(AccountRefusal::NotFound(_))), "{foreign:?}");
    // The operator may change people of every account.
    app.update_user(&Requester::command_line(), stranger.id, operator).await.unwrap();
    let entries = ["users/create", "users/create", "users/create", "users/update", "users/remove"];
    assert_eq!(fixture.list_changes().await, entries);
}

async fn the_first_person_is_created_with_the_set_up_link(fixture: Fixture) {
    let app = &fixture.app;
    let home = visitor("192.0.2.1");
    let (one, other) = (app.set_up_url().await.unwrap().unwrap(), app.set_up_url().await.unwrap().unwrap());
    assert!(one.starts_with("https://mail.example.com/set_up?token="));
    let (one, other) = (token_in(&one), token_in(&other));
    assert!(matches!(
        app.set_up("made up", "New", ANNA, PASSWORD, &home).await,
        Err(UserRefusal::LinkInvalid)
    ));
    assert!(matches!(app.set_up(&one, "New", ANNA, "short", &home).await, Err(UserRefusal::Password(_))));
    let session = app.set_up(&one, "New", ANNA, PASSWORD, &home).await.unwrap();
    assert_eq!((session.user.role, session.user.operator), (UserRole::Owner, true));
    assert_eq!(session.user.account_name, "New");
    let again = app.set_up(&other, "New", "b@example.com", PASSWORD, &home).await;
    assert!(matches!(again, Err(UserRefusal::LinkInvalid)));
    assert!(app.set_up_url().await.unwrap().is_none());
}
