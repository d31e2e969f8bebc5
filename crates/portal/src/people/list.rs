//! List of people and open invitations.

use askama::Template;
use postroad_app::users::{grantable_roles, may_change_user};
use postroad_model::{EmailAddress, InvitationId, UserId, UserRole};
use postroad_store::{Invitation, InvitationFilter, User, UserFilter};

use super::own_account;
use crate::answer::{Answer, page};
use crate::display::When;
use crate::layout::Layout;
use crate::path::Path;
use crate::query::query;
use crate::viewed_account::ViewedAccount;
use crate::visit::Visit;

/// Rows of people, and of invitations, on one page. Few, because each row has forms.
const PAGE_ROWS: usize = 20;

struct Row {
    id: i64,
    name: String,
    email: String,
    role: UserRole,
    is_operator: bool,
    has_totp: bool,
    is_self: bool,
    /// Whether the viewer has at least the person's rights, or is the person.
    is_changeable: bool,
    last_sign_in_at: Option<When>,
}

impl Row {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn has(&self, role: &UserRole) -> bool {
        self.role == *role
    }
}

struct InvitationRow {
    id: i64,
    email: String,
    role: UserRole,
    is_operator: bool,
    expires_at: When,
}

#[derive(Template)]
#[template(path = "people/list.html")]
struct ListPage {
    layout: Layout,
    account: ViewedAccount,
    rows: Vec<Row>,
    next: Option<String>,
    /// Address to search for.
    address: String,
    role: Option<UserRole>,
    /// Open invitations; `None` if the viewer may not see them.
    invitations: Option<Vec<InvitationRow>>,
    next_invitations: Option<String>,
    roles: [UserRole; 4],
    /// Roles that the viewer can give.
    grantable: Vec<UserRole>,
    /// Link of a new invitation.
    link: Option<String>,
}

impl ListPage {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn is_searched(&self, role: &UserRole) -> bool {
        self.role == Some(*role)
    }

    fn is_searching(&self) -> bool {
        !self.address.is_empty() || self.role.is_some()
    }
}

pub(super) async fn show(visit: Visit) -> Answer {
    list(&visit, own_account(&visit), None).await
}

pub(super) async fn of_customer(Path(account): Path<i64>, visit: Visit) -> Answer {
    let account = ViewedAccount::of_customer(&visit, account).await?;
    list(&visit, account, None).await
}

pub(super) async fn list(visit: &Visit, account: ViewedAccount, link: Option<String>) -> Answer {
    let layout = visit.layout("People", account.section).await?;
    let (address, role) = (visit.query.text("q").to_owned(), UserRole::parse(visit.query.text("role")));
    let filter = UserFilter {
        account_id: Some(account.id),
        email: Some(address.to_lowercase()).filter(|address| !address.is_empty()),
        role,
    };
    let after = visit.query.number("after").map(UserId);
    let email = EmailAddress::parse(&address).ok().map(|email| email.as_str().to_owned());
    // No person has an invalid address.
    let is_invalid = !address.is_empty() && email.is_none();
    let (people, has_more) = if is_invalid {
        (Vec::new(), false)
    } else {
        visit.app().list_users(&visit.requester, filter, after, PAGE_ROWS).await?
    };
    let role_name = role.map_or("", UserRole::as_str);
    let next = people.last().filter(|_| has_more);
    let next =
        next.map(|last| query(&[("q", &address), ("role", role_name), ("after", &last.id.to_string())]));
    // Only people who may invite see the open invitations.
    let after = visit.query.number("invited_after").map(InvitationId);
    let filter = InvitationFilter { email, role };
    let found =
        visit.app().list_invitations(&visit.requester, Some(account.id), filter, after, PAGE_ROWS).await.ok();
    let next_invitations = match &found {
        Some((found, true)) => found.last().map(|last| {
            query(&[("q", &address), ("role", role_name), ("invited_after", &last.id.to_string())])
        }),
        _ => None,
    };
    let invitations = found.map(|(found, _)| found.into_iter().map(invitation_row).collect());
    let rows = people.into_iter().map(|user| row(visit, user)).collect();
    let roles = UserRole::ALL;
    let grantable = grantable_roles(&visit.requester.actor);
    page(&ListPage {
        layout,
        account,
        rows,
        next,
        address,
        role,
        invitations,
        next_invitations,
        roles,
        grantable,
        link,
    })
}

fn invitation_row(invitation: Invitation) -> InvitationRow {
    InvitationRow {
        id: invitation.id.0,
        email: invitation.email,
        role: invitation.role,
        is_operator: invitation.operator,
        expires_at: When(invitation.expires_at),
    }
}

fn row(visit: &Visit, user: User) -> Row {
    Row {
        id: user.id.0,
        role: user.role,
        is_operator: user.operator,
        has_totp: user.totp_seed.is_some(),
        is_self: user.id == visit.person.user.id,
        is_changeable: may_change_user(&visit.requester.actor, &user),
        last_sign_in_at: user.last_sign_in_at.map(When),
        name: user.name,
        email: user.email,
    }
}
