//! One person: name, sessions, and actions of the operator, such as a link for a new password.

use askama::Template;
use axum::http::StatusCode;
use postroad_app::users::{UserChangeRequest, may_change_user};
use postroad_model::{UserId, UserSessionId};
use postroad_store::{User, UserFilter, UserSession};

use crate::answer::{Answer, page_with_status};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::path::Path;
use crate::problem::Problem;
use crate::redirect::see_other;
use crate::visit::{Form, Visit};

/// Maximum number of sessions on the page; more than a person can have.
const SESSION_ROWS_MAX: usize = 100;

struct SessionRow {
    id: i64,
    address: String,
    user_agent: String,
    last_seen_at: When,
}

/// Result of the last form, in addition to the page itself.
#[derive(Default)]
struct Outcome {
    problem: Option<String>,
    /// A link for a new password, shown only once.
    reset_link: Option<String>,
}

#[derive(Template)]
#[template(path = "people/one.html")]
struct PersonPage {
    layout: Layout,
    id: i64,
    name: String,
    email: String,
    role: String,
    account: String,
    /// Path of the list that the person is on.
    list: String,
    version: i64,
    is_self: bool,
    /// Whether the viewer has at least the person's rights, or is the person.
    is_changeable: bool,
    is_operator: bool,
    has_app: bool,
    last_sign_in_at: Option<When>,
    created_at: When,
    sessions: Vec<SessionRow>,
    outcome: Outcome,
}

fn page_path(person: i64, done: &str) -> String {
    format!("/account/people/{person}?done={done}")
}

pub(super) async fn show(Path(person): Path<i64>, visit: Visit) -> Answer {
    page_of(&visit, UserId(person), Outcome::default()).await
}

async fn page_of(visit: &Visit, id: UserId, outcome: Outcome) -> Answer {
    // This call checks the permission too.
    let (sessions, _) = visit.app().list_sessions_of(&visit.requester, id, None, SESSION_ROWS_MAX).await?;
    let user = find(visit, id).await?;
    let title = if user.name.is_empty() { &user.email } else { &user.name };
    let layout = visit.layout(title, Section::People).await?;
    let status = if outcome.problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    page_with_status(
        status,
        &PersonPage {
            layout,
            id: user.id.0,
            role: user.role.to_string(),
            version: user.version,
            is_self: user.id == visit.person.user.id,
            is_changeable: may_change_user(&visit.requester.actor, &user),
            is_operator: user.operator,
            has_app: user.totp_seed.is_some(),
            last_sign_in_at: user.last_sign_in_at.map(When),
            created_at: When(user.created_at),
            sessions: sessions.into_iter().map(session_row).collect(),
            list: if user.account_id == visit.person.user.account_id {
                "/account/people".to_owned()
            } else {
                format!("/operator/accounts/{}/people", user.account_id)
            },
            account: user.account_name,
            name: user.name,
            email: user.email,
            outcome,
        },
    )
}

/// Finds a person in the list of people, which is in the order of their ids.
async fn find(visit: &Visit, id: UserId) -> Result<User, Problem> {
    let own = visit.person.user.account_id;
    let account_id = (!visit.requester.actor.is_operator()).then_some(own);
    let filter = UserFilter { account_id, ..UserFilter::default() };
    let after = Some(UserId(id.0.saturating_sub(1)));
    let (found, _) = visit.app().list_users(&visit.requester, filter, after, 1).await?;
    found.into_iter().find(|user| user.id == id).ok_or(Problem::NotFound)
}

fn session_row(session: UserSession) -> SessionRow {
    SessionRow {
        id: session.id.0,
        address: session.address.unwrap_or_default(),
        user_agent: session.user_agent,
        last_seen_at: When(session.last_seen_at),
    }
}

/// Changes the name and, for the operator, whether the person is an operator too.
pub(super) async fn update(Path(person): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let change = UserChangeRequest {
        if_version: fields.number("version"),
        name: Some(fields.text("name").to_owned()),
        role: None,
        operator: fields.is_ticked("has_operator").then(|| fields.is_ticked("operator")),
    };
    match visit.app().update_user(&visit.requester, UserId(person), change).await {
        Ok(_) => Ok(see_other(&page_path(person, "saved"))),
        Err(refusal) => show_refused(&visit, person, refusal.into()).await,
    }
}

pub(super) async fn end_session(Path(person): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let session = fields.number("id").map(UserSessionId).ok_or(Problem::NotFound)?;
    match visit.app().revoke_sessions_of(&visit.requester, UserId(person), Some(session)).await {
        Ok(_) => Ok(see_other(&page_path(person, "ended"))),
        Err(refusal) => show_refused(&visit, person, refusal.into()).await,
    }
}

/// Creates a link for a new password and shows it: the operator passes it on.
pub(super) async fn reset_link(Path(person): Path<i64>, form: Form) -> Answer {
    let visit = &form.visit;
    match visit.app().reset_link_of(&visit.requester, UserId(person)).await {
        Ok(link) => {
            page_of(visit, UserId(person), Outcome { reset_link: Some(link), ..Outcome::default() }).await
        }
        Err(refusal) => show_refused(visit, person, refusal.into()).await,
    }
}

pub(super) async fn disable_app(Path(person): Path<i64>, form: Form) -> Answer {
    let visit = &form.visit;
    match visit.app().disable_totp_of(&visit.requester, UserId(person)).await {
        Ok(()) => Ok(see_other(&page_path(person, "app-off"))),
        Err(refusal) => show_refused(visit, person, refusal.into()).await,
    }
}

/// The page with the reason why the form was refused.
async fn show_refused(visit: &Visit, person: i64, problem: Problem) -> Answer {
    let problem = Some(problem.into_form_text()?);
    page_of(visit, UserId(person), Outcome { problem, ..Outcome::default() }).await
}
