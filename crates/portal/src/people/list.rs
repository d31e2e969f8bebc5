//! List of people and open invitations.

use askama::Template;
use axum::http::StatusCode;
use postroad_model::{UserId, UserRole};
use postroad_store::{InvitationFilter, User, UserFilter};

use crate::answer::{Answer, page_with};
use crate::layout::{Layout, Section};
use crate::query::query;
use crate::shown::When;
use crate::visit::Visit;

const PAGE_ROWS: usize = 100;

struct Row {
    id: i64,
    name: String,
    email: String,
    role: UserRole,
    is_operator: bool,
    has_totp: bool,
    is_self: bool,
    last_sign_in_at: Option<When>,
}

impl Row {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn has(&self, role: &UserRole) -> bool {
        self.role == *role
    }
}

struct Invited {
    id: i64,
    email: String,
    role: UserRole,
    expires_at: When,
}

#[derive(Template)]
#[template(path = "people/list.html")]
struct ListPage {
    layout: Layout,
    rows: Vec<Row>,
    next: Option<String>,
    /// `None` if the person may not see them.
    invitations: Option<Vec<Invited>>,
    roles: [UserRole; 4],
    problem: Option<String>,
    /// Link of a new invitation.
    link: Option<String>,
    email: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, StatusCode::OK, None, None, "").await
}

pub(super) async fn list(
    visit: &Visit,
    status: StatusCode,
    problem: Option<String>,
    link: Option<String>,
    email: &str,
) -> Answer {
    let layout = visit.layout("People", Section::People).await?;
    let account = Some(visit.person.user.account_id);
    let after = visit.query.number("after").map(UserId);
    let filter = UserFilter { account_id: account, ..UserFilter::default() };
    let (people, has_more) = visit.app().list_users(&visit.by, filter, after, PAGE_ROWS).await?;
    let next = people.last().filter(|_| has_more).map(|last| query(&[("after", &last.id.to_string())]));
    // Only those who may invite see whom others invited.
    let invitations = visit
        .app()
        .list_invitations(&visit.by, account, InvitationFilter::default(), None, PAGE_ROWS)
        .await
        .ok();
    let invitations = invitations.map(|(found, _)| {
        let invited = |one: postroad_store::Invitation| Invited {
            id: one.id.0,
            email: one.email,
            role: one.role,
            expires_at: When(one.expires_at),
        };
        found.into_iter().map(invited).collect()
    });
    let own = visit.person.user.id;
    let rows = people.into_iter().map(|user| row(user, own)).collect();
    let roles = UserRole::ALL;
    page_with(
        status,
        &ListPage { layout, rows, next, invitations, roles, problem, link, email: email.to_owned() },
    )
}

fn row(user: User, own: UserId) -> Row {
    Row {
        id: user.id.0,
        role: user.role,
        is_operator: user.operator,
        has_totp: user.totp_seed.is_some(),
        is_self: user.id == own,
        last_sign_in_at: user.last_sign_in_at.map(When),
        name: user.name,
        email: user.email,
    }
}
