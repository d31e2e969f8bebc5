//! Admin commands for people who sign in to the portal.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, EmailAddress, LimitedObject, Timestamp, UserRole, UserSessionId};
use postroad_store::{Invitation, InvitationFilter, User, UserFilter, UserSession};
use serde_json::{Value, json};

use super::{AdminError, whole_list};
use crate::App;
use crate::accounts::Requester;
use crate::users::{CreatedInvitation, InvitationRequest, NewPersonRequest, UserChangeRequest, UserRefusal};

/// Maximum number of people, invitations or sessions that one list shows.
const LISTED_MAX: usize = 10_000;

#[boxed_futures]
impl App {
    /// Creates a person; the answer has a link with which the person chooses a password.
    pub async fn add_user(
        &self,
        email: String,
        account: &str,
        role: UserRole,
        name: String,
        operator: bool,
    ) -> Result<Value, AdminError> {
        let by = Requester::command_line();
        let account = self.find_account(account).await?.id;
        let request = NewPersonRequest { account, email, name, role, operator, password: None };
        let user = self.create_user(&by, request).await?;
        let mut answer = user_json(&user);
        answer["link"] = self.reset_link_of(&by, user.id).await?.into();
        self.add_ceiling_warning(&mut answer, account, LimitedObject::Users).await;
        Ok(answer)
    }

    /// Invites a person; the answer has the invitation's link, which is shown only once.
    pub async fn add_invitation(
        &self,
        email: String,
        account: &str,
        role: UserRole,
        operator: bool,
        mail: bool,
    ) -> Result<Value, AdminError> {
        let account = self.find_account(account).await?.id;
        let request =
            InvitationRequest { account: Some(account), email, role, operator, mail, idempotency_key: None };
        let CreatedInvitation { invitation, link, .. } =
            self.invite_user(&Requester::command_line(), request).await?.value;
        let mut answer = invitation_json(&invitation);
        answer["link"] = link.into();
        self.add_ceiling_warning(&mut answer, account, LimitedObject::Users).await;
        Ok(answer)
    }

    pub async fn show_invitations(&self, account: &str) -> Result<Value, AdminError> {
        let account = self.find_account(account).await?.id;
        Ok(self.invitations_of(account).await?.iter().map(invitation_json).collect())
    }

    pub async fn end_invitation(&self, email: &str, account: &str) -> Result<Value, AdminError> {
        let account = self.find_account(account).await?.id;
        let key = email_key(email);
        let open = self.invitations_of(account).await?;
        let found = open.into_iter().find(|invitation| Some(&invitation.email) == key.as_ref());
        let Some(found) = found else {
            let text = format!("`{email}` is not invited; `postroad admin user invitations` shows who is");
            return Err(AdminError::refused(text));
        };
        self.uninvite_user(&Requester::command_line(), Some(account), found.id).await?;
        Ok(invitation_json(&found))
    }

    async fn invitations_of(&self, account: AccountId) -> Result<Vec<Invitation>, AdminError> {
        let by = Requester::command_line();
        let found =
            self.list_invitations(&by, Some(account), InvitationFilter::default(), None, LISTED_MAX).await?;
        whole_list(found, "invitations", "users/invitations")
    }

    /// Sessions of a person, newest first.
    pub async fn show_sessions(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        let (sessions, _) = self.list_sessions_of(&Requester::command_line(), id, None, LISTED_MAX).await?;
        let session_json = |session: &UserSession| {
            json!({
                "id": session.id,
                "address": session.address,
                "user_agent": session.user_agent,
                "created_at": session.created_at.to_rfc3339(),
                "last_seen_at": session.last_seen_at.to_rfc3339(),
                "expires_at": session.expires_at.to_rfc3339(),
            })
        };
        Ok(sessions.iter().map(session_json).collect())
    }

    pub async fn show_users(&self, account: Option<&str>) -> Result<Value, AdminError> {
        let account_id = match account {
            Some(account) => Some(self.find_account(account).await?.id),
            None => None,
        };
        let filter = UserFilter { account_id, ..UserFilter::default() };
        let found = self.list_users(&Requester::command_line(), filter, None, LISTED_MAX).await?;
        let users = whole_list(found, "people", "users/list")?;
        Ok(users.iter().map(user_json).collect())
    }

    pub async fn change_user(&self, email: &str, request: UserChangeRequest) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(user_json(&self.update_user(&Requester::command_line(), id, request).await?))
    }

    pub async fn create_reset_link(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(json!({ "link": self.reset_link_of(&Requester::command_line(), id).await? }))
    }

    pub async fn end_totp_of(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        self.disable_totp_of(&Requester::command_line(), id).await?;
        Ok(user_json(&self.user_by_email(email).await?))
    }

    /// Ends one session of a person, or all of them.
    pub async fn end_sessions_of(
        &self,
        email: &str,
        session: Option<UserSessionId>,
    ) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        let ended = self.revoke_sessions_of(&Requester::command_line(), id, session).await?;
        Ok(json!({ "sessions_ended": ended }))
    }

    pub async fn delete_user(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(user_json(&self.remove_user(&Requester::command_line(), id).await?))
    }

    pub async fn create_set_up_link(&self) -> Result<Value, AdminError> {
        match self.set_up_url().await? {
            Some(link) => Ok(json!({ "link": link })),
            None => Err(AdminError::refused(
                "there are people already; `postroad admin user create` makes another",
            )),
        }
    }

    async fn user_by_email(&self, email: &str) -> Result<User, AdminError> {
        let found = match email_key(email) {
            Some(key) => self.inner.store.find_user_by_email(key).await?,
            None => None,
        };
        found.ok_or_else(|| {
            let text = format!("there is no person `{email}`; `postroad admin user list` shows them");
            AdminError::refused(text)
        })
    }
}

impl From<UserRefusal> for AdminError {
    fn from(refusal: UserRefusal) -> Self {
        match refusal {
            UserRefusal::Store(error) => error.into(),
            UserRefusal::Account(refusal) => refusal.into(),
            other => Self::refused(other.to_string()),
        }
    }
}

/// Normal form of a person's address; `None` if `email` is not an address.
fn email_key(email: &str) -> Option<String> {
    EmailAddress::parse(email.trim()).ok().map(|address| address.mailbox_key())
}

fn invitation_json(invitation: &Invitation) -> Value {
    json!({
        "id": invitation.id,
        "account": invitation.account_name,
        "email": invitation.email,
        "role": invitation.role,
        "operator": invitation.operator,
        "created_at": invitation.created_at.to_rfc3339(),
        "expires_at": invitation.expires_at.to_rfc3339(),
    })
}

fn user_json(user: &User) -> Value {
    json!({
        "id": user.id,
        "account": user.account_name,
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "operator": user.operator,
        "has_password": user.password_hash.is_some(),
        "two_factor": user.totp_seed.is_some(),
        "last_sign_in_at": user.last_sign_in_at.map(Timestamp::to_rfc3339),
        "created_at": user.created_at.to_rfc3339(),
    })
}
