//! Admin commands for people who sign in to the portal.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Timestamp, UserRole};
use postroad_store::User;
use serde_json::{Value, json};

use super::AdminError;
use crate::App;
use crate::accounts::Requester;
use crate::users::{NewPersonRequest, PersonChangeRequest, UserRefusal};

/// People that one list shows.
const LISTED_MAX: usize = 10_000;

#[boxed_futures]
impl App {
    /// With a link by which the person chooses a password.
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
        let given = NewPersonRequest { account, email, name, role, operator, password: None };
        let user = self.create_user(&by, given).await?;
        let mut answer = shown(&user);
        answer["link"] = self.reset_link_of(&by, user.id).await?.into();
        Ok(answer)
    }

    pub async fn show_users(&self, account: Option<&str>) -> Result<Value, AdminError> {
        let account = match account {
            Some(account) => Some(self.find_account(account).await?.id),
            None => None,
        };
        let (users, _) = self.list_users(&Requester::command_line(), account, None, LISTED_MAX).await?;
        Ok(users.iter().map(shown).collect())
    }

    pub async fn change_user(&self, email: &str, given: PersonChangeRequest) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(shown(&self.update_user(&Requester::command_line(), id, given).await?))
    }

    pub async fn give_reset_link(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(json!({ "link": self.reset_link_of(&Requester::command_line(), id).await? }))
    }

    pub async fn end_totp_of(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        self.disable_totp_of(&Requester::command_line(), id).await?;
        Ok(shown(&self.user_by_email(email).await?))
    }

    pub async fn end_sessions_of(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        let ended = self.revoke_sessions_of(&Requester::command_line(), id, None).await?;
        Ok(json!({ "sessions_ended": ended }))
    }

    pub async fn delete_user(&self, email: &str) -> Result<Value, AdminError> {
        let id = self.user_by_email(email).await?.id;
        Ok(shown(&self.remove_user(&Requester::command_line(), id).await?))
    }

    pub async fn give_set_up_link(&self) -> Result<Value, AdminError> {
        match self.set_up_url().await? {
            Some(link) => Ok(json!({ "link": link })),
            None => Err(AdminError::refused(
                "there are people already; `postroad admin user create` makes another",
            )),
        }
    }

    async fn user_by_email(&self, email: &str) -> Result<User, AdminError> {
        let key = postroad_model::EmailAddress::parse(email.trim()).map(|address| address.mailbox_key());
        let found = match key {
            Ok(key) => self.inner.store.find_user_by_email(key).await?,
            Err(_) => None,
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

fn shown(user: &User) -> Value {
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
