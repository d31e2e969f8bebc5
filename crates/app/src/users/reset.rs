//! Password reset by a mailed link.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::EmailAddress;
use postroad_store::{AuditSubject, Store, StoreError, User, UserTokenKind};

use super::visitor::Visitor;
use super::{NewSession, UserRefusal, parse_email};
use crate::App;
use crate::access::{Actor, Operation};
use crate::accounts::Requester;
use crate::secrets::{hash, new_key};

/// The link works for this long.
pub(super) const RESET_LINK_TIME: Duration = Duration::from_hours(1);

#[boxed_futures]
impl App {
    /// Mails a link if the person exists. If not, the answer is the same and takes the same time.
    pub async fn request_password_reset(&self, email: &str, visitor: &Visitor) -> Result<(), UserRefusal> {
        let Ok(email) = parse_email(email) else { return Ok(()) };
        if !self.count_reset(email.as_str(), visitor.address).await? {
            return Ok(());
        }
        let permit =
            self.inner.reset_mail_permits.clone().try_acquire_owned().map_err(|_| UserRefusal::Busy)?;
        let app = self.clone();
        tokio::spawn(async move {
            if let Err(error) = app.mail_reset_link(email).await {
                tracing::error!(%error, "password reset not mailed; the person has to ask again");
            }
            drop(permit);
        });
        Ok(())
    }

    /// Refuses a link that no longer works; called before the person types a password.
    pub async fn check_reset_link(&self, token: &str) -> Result<(), UserRefusal> {
        self.user_of_token(UserTokenKind::PasswordReset, token).await.map(drop)
    }

    /// Sets the password and ends all sessions. Begins a new session unless the person uses an authenticator app.
    pub async fn reset_password(
        &self,
        token: &str,
        password: &str,
        visitor: &Visitor,
    ) -> Result<Option<NewSession>, UserRefusal> {
        let user = self.user_of_token(UserTokenKind::PasswordReset, token).await?;
        let password_hash = self.hash_new_password(password, &user.email).await?;
        let actor = user_actor(&user);
        let by = Requester { actor, address: Some(visitor.address) };
        let store = self.audited_store(&by, Operation::PersonChangePassword, AuditSubject::User(user.id));
        let user = match store.reset_user_password(user.id, hash(token), password_hash).await {
            Err(StoreError::NotFound) => return Err(UserRefusal::LinkInvalid),
            reset => reset?,
        };
        if user.totp_seed.is_some() {
            return Ok(None);
        }
        self.begin_session(user, visitor).await.map(Some)
    }

    async fn mail_reset_link(&self, email: EmailAddress) -> Result<(), UserRefusal> {
        let Some(user) = self.inner.store.find_user_by_email(email.as_str().to_owned()).await? else {
            return Ok(());
        };
        if user.suspended_reason.is_some() {
            return Ok(());
        }
        let link = self.new_reset_link(&self.inner.store, &user).await?;
        let text = format!(
            "Somebody asked to set a new password for {email}.\n\n\
             To set it, open this link within an hour:\n\n{link}\n\n\
             If it was not you, ignore this mail: your password stays as it is.\n"
        );
        Ok(self.send_notice(email, "Set a new password", &text, None).await?)
    }

    pub(super) async fn new_reset_link(&self, store: &Store, user: &User) -> Result<String, UserRefusal> {
        let token = new_key();
        let new = self.new_token(UserTokenKind::PasswordReset, Some(user), &token, RESET_LINK_TIME);
        store.create_user_token(new).await?;
        Ok(self.reset_link(&token))
    }
}

pub(super) fn user_actor(user: &User) -> Actor {
    let User { id, account_id, role, operator, .. } = *user;
    Actor::User { id, account_id, role, operator }
}
