//! Signing in: by password, with a code if the person uses an authenticator app, or by the link of `postroad dev`.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{User, UserToken, UserTokenKind};

use super::password::{PASSWORD_BYTES_MAX, normalise};
use super::{NewSession, UserRefusal, Visitor, parse_email};
use crate::App;
use crate::secrets::{hash, new_key};

/// Time to enter the code after the password.
const CODE_TIME: std::time::Duration = std::time::Duration::from_mins(10);

#[derive(Clone)]
pub struct SignInRequest {
    pub email: String,
    pub password: String,
}

impl std::fmt::Debug for SignInRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignInRequest").finish_non_exhaustive()
    }
}

/// Result of a correct password.
#[derive(Debug, Clone)]
pub enum SignInOutcome {
    Done(Box<NewSession>),
    /// A code of the authenticator app is needed; `token` is for `sign_in_with_code`.
    NeedsCode {
        token: String,
    },
}

#[boxed_futures]
impl App {
    /// Signs in by password. An unknown address costs the same time as a wrong password.
    pub async fn sign_in(
        &self,
        request: SignInRequest,
        visitor: &Visitor,
    ) -> Result<SignInOutcome, UserRefusal> {
        let Ok(email) = parse_email(&request.email) else { return Err(UserRefusal::WrongCredentials) };
        if request.password.len() > PASSWORD_BYTES_MAX {
            return Err(UserRefusal::WrongCredentials);
        }
        let email = email.as_str();
        let user = self.inner.store.find_user_by_email(email.to_owned()).await?;
        let attempt = self.count_sign_in(email, user.as_ref().map(|user| user.id), visitor.address).await?;
        let stored = user.as_ref().and_then(|user| user.password_hash.clone());
        let is_right = self.inner.password_hasher.verify(normalise(&request.password), stored).await?;
        let Some(user) = user.filter(|_| is_right) else { return Err(UserRefusal::WrongCredentials) };
        check_not_suspended(&user)?;
        if user.totp_seed.is_some() {
            let token = new_key();
            self.store_token(UserTokenKind::SecondFactor, Some(&user), &token, CODE_TIME).await?;
            return Ok(SignInOutcome::NeedsCode { token });
        }
        self.forgive_sign_in(attempt).await?;
        Ok(SignInOutcome::Done(Box::new(self.begin_session(user, visitor).await?)))
    }

    /// The second step: a code of the authenticator app, or a recovery code. Each code can be used once.
    pub async fn sign_in_with_code(
        &self,
        token: &str,
        code: &str,
        visitor: &Visitor,
    ) -> Result<NewSession, UserRefusal> {
        let user = self.user_of_token(UserTokenKind::SecondFactor, token).await.map_err(as_code_refusal)?;
        let attempt = self.count_sign_in(&user.email, Some(user.id), visitor.address).await?;
        self.take_code(&user, code).await?;
        self.take_token(UserTokenKind::SecondFactor, token).await.map_err(as_code_refusal)?;
        // The password step was counted as well: forgive both attempts.
        self.forgive_sign_in(attempt.clone()).await?;
        self.forgive_sign_in(attempt).await?;
        self.begin_session(user, visitor).await
    }

    /// Signs in with the link of `postroad dev`, which can be used several times.
    pub async fn sign_in_by_link(&self, token: &str, visitor: &Visitor) -> Result<NewSession, UserRefusal> {
        let user = self.user_of_token(UserTokenKind::SignIn, token).await?;
        self.begin_session(user, visitor).await
    }

    pub(super) async fn store_token(
        &self,
        kind: UserTokenKind,
        user: Option<&User>,
        token: &str,
        valid_for: std::time::Duration,
    ) -> Result<(), UserRefusal> {
        let new = self.new_token(kind, user, token, valid_for);
        Ok(self.inner.store.create_user_token(new).await?)
    }

    pub(super) fn new_token(
        &self,
        kind: UserTokenKind,
        user: Option<&User>,
        token: &str,
        valid_for: std::time::Duration,
    ) -> UserToken {
        let expires_at = self.inner.clock.now().plus(valid_for);
        UserToken { token_hash: hash(token), kind, user_id: user.map(|user| user.id), expires_at }
    }

    /// The person whom a token of this kind belongs to. Refuses if the token is unknown or expired, or the account is
    /// suspended.
    pub(super) async fn user_of_token(&self, kind: UserTokenKind, token: &str) -> Result<User, UserRefusal> {
        let store = &self.inner.store;
        let found = store.find_user_token(kind, hash(token)).await?.flatten();
        let Some(id) = found else { return Err(UserRefusal::LinkInvalid) };
        let user = store.find_user(id).await?.ok_or(UserRefusal::LinkInvalid)?;
        check_not_suspended(&user)?;
        Ok(user)
    }

    /// Uses up a token: it cannot be used again.
    pub(super) async fn take_token(&self, kind: UserTokenKind, token: &str) -> Result<(), UserRefusal> {
        match self.inner.store.take_user_token(kind, hash(token)).await {
            Err(postroad_store::StoreError::NotFound) => Err(UserRefusal::LinkInvalid),
            taken => Ok(taken?),
        }
    }
}

pub(super) fn check_not_suspended(user: &User) -> Result<(), UserRefusal> {
    if user.suspended_reason.is_some() { Err(UserRefusal::AccountSuspended) } else { Ok(()) }
}

/// Replaces `LinkInvalid` by the refusal for the code step, in which the person has no link.
fn as_code_refusal(refusal: UserRefusal) -> UserRefusal {
    match refusal {
        UserRefusal::LinkInvalid => UserRefusal::CodeTooLate,
        other => other,
    }
}
