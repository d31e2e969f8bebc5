//! The page of a person's own sign-in.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::users::ProposedTotp;

use super::qr_code;
use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::visit::Visit;

struct SessionRow {
    id: i64,
    address: String,
    user_agent: String,
    last_seen_at: When,
    is_this: bool,
}

/// Result of the last form, in addition to the page itself.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) problem: Option<String>,
    /// An app that is being set up.
    pub(super) proposed: Option<ProposedTotp>,
    /// New recovery codes, shown only once.
    pub(super) codes: Vec<String>,
}

#[derive(Template)]
#[template(path = "profile/show.html")]
struct ProfilePage {
    layout: Layout,
    name: String,
    email: String,
    role: String,
    account: String,
    has_password: bool,
    has_app: bool,
    codes_left: usize,
    sessions: Vec<SessionRow>,
    /// QR code for the app that is being set up.
    qr_code: Option<String>,
    outcome: Outcome,
}

pub(super) async fn show(visit: Visit) -> Answer {
    page_of(&visit, Outcome::default()).await
}

pub(super) async fn page_of(visit: &Visit, outcome: Outcome) -> Answer {
    let layout = visit.layout("You", Section::You).await?;
    let person = &visit.person;
    let this = person.session.id;
    let sessions = visit.app().list_own_sessions(person).await?;
    let sessions = sessions.into_iter().map(|session| SessionRow {
        id: session.id.0,
        address: session.address.unwrap_or_default(),
        user_agent: session.user_agent,
        last_seen_at: When(session.last_seen_at),
        is_this: session.id == this,
    });
    let has_app = person.user.totp_seed.is_some() || !outcome.codes.is_empty();
    let status = if outcome.problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = ProfilePage {
        layout,
        name: person.user.name.clone(),
        email: person.user.email.clone(),
        role: person.user.role.to_string(),
        account: person.user.account_name.clone(),
        has_password: person.user.password_hash.is_some(),
        has_app,
        codes_left: if has_app { visit.app().count_recovery_codes(person).await? } else { 0 },
        sessions: sessions.collect(),
        qr_code: outcome.proposed.as_ref().and_then(|proposed| qr_code::svg(&proposed.url)),
        outcome,
    };
    page_with_status(status, &page)
}
