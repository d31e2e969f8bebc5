//! JSON forms of people, invitations and sessions.

use crate::documented::ToSchema;
use postroad_app::users::CreatedInvitation;
use postroad_model::{Timestamp, UserRole};
use postroad_store::{Invitation, User, UserSession};
use serde::Serialize;

use crate::fields::{Fields, Findings};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserOut {
    id: i64,
    /// Id of the account.
    account: i64,
    email: String,
    name: String,
    /// `owner`, `admin`, `member` or `read-only`.
    role: String,
    /// Whether the person has the operator's rights as well.
    operator: bool,
    /// Whether the person signs in with a code of an authenticator app.
    two_factor: bool,
    last_sign_in_at: Option<String>,
    /// Incremented by every change.
    version: i64,
    created_at: String,
    updated_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvitationOut {
    id: i64,
    /// Id of the account.
    account: i64,
    email: String,
    /// `owner`, `admin`, `member` or `read-only`.
    role: String,
    /// Whether the person will have the operator's rights as well.
    operator: bool,
    created_at: String,
    expires_at: String,
}

/// A new invitation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvitedOut {
    #[serde(flatten)]
    invitation: InvitationOut,
    /// Link to the page where the person chooses a password; shown only to the operator, and only once. Null for others, and
    /// if an earlier call with the same idempotency key created the invitation.
    link: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UninvitedOut {
    pub(crate) id: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionOut {
    id: i64,
    /// IP address from which the person signed in; for IPv6, its network.
    address: Option<String>,
    user_agent: String,
    created_at: String,
    last_seen_at: String,
    /// When it ends at the latest; an unused session ends earlier.
    expires_at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedSessionsOut {
    /// Number of ended sessions.
    pub(crate) ended: u64,
}

impl From<User> for UserOut {
    fn from(user: User) -> Self {
        Self {
            id: user.id.0,
            account: user.account_id.0,
            email: user.email,
            name: user.name,
            role: user.role.to_string(),
            operator: user.operator,
            two_factor: user.totp_seed.is_some(),
            last_sign_in_at: user.last_sign_in_at.map(Timestamp::to_rfc3339),
            version: user.version,
            created_at: user.created_at.to_rfc3339(),
            updated_at: user.updated_at.to_rfc3339(),
        }
    }
}

impl From<Invitation> for InvitationOut {
    fn from(invitation: Invitation) -> Self {
        Self {
            id: invitation.id.0,
            account: invitation.account_id.0,
            email: invitation.email,
            role: invitation.role.to_string(),
            operator: invitation.operator,
            created_at: invitation.created_at.to_rfc3339(),
            expires_at: invitation.expires_at.to_rfc3339(),
        }
    }
}

impl From<CreatedInvitation> for InvitedOut {
    fn from(invited: CreatedInvitation) -> Self {
        Self { invitation: invited.invitation.into(), link: invited.link }
    }
}

impl From<UserSession> for SessionOut {
    fn from(session: UserSession) -> Self {
        Self {
            id: session.id.0,
            address: session.address,
            user_agent: session.user_agent,
            created_at: session.created_at.to_rfc3339(),
            last_seen_at: session.last_seen_at.to_rfc3339(),
            expires_at: session.expires_at.to_rfc3339(),
        }
    }
}

/// Takes `role`; an unknown role is recorded as a problem.
pub(crate) fn read_role(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<UserRole> {
    let text = fields.text("role", findings)?;
    let role = UserRole::parse(&text);
    if role.is_none() {
        findings
            .problem(fields.pointer("role"), "`role` should be `owner`, `admin`, `member` or `read-only`");
    }
    role
}
