//! Tokens of links and sign-in steps, most of them for a single use, and the first person of an installation.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Timestamp, UserId};

use super::user::{self, NewUser, User};
use super::user_changes;
use crate::error::StoreError;
use crate::setup::{KeyHash, accounts};
use crate::sql::Sql;
use crate::{ChangeDescription, Result, Store};

/// Purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserTokenKind {
    /// Sets a new password.
    PasswordReset,
    /// The password was correct; the code of the authenticator app is still needed.
    SecondFactor,
    /// Signs in and can be used repeatedly: the link of `postroad dev`.
    SignIn,
    /// Creates the first person.
    SetUp,
}

impl UserTokenKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::PasswordReset => "password_reset",
            Self::SecondFactor => "second_factor",
            Self::SignIn => "sign_in",
            Self::SetUp => "set_up",
        }
    }
}

#[derive(Debug, Clone)]
pub struct UserToken {
    pub token_hash: KeyHash,
    pub kind: UserTokenKind,
    /// `None` for `SetUp`.
    pub user_id: Option<UserId>,
    pub expires_at: Timestamp,
}

/// The first person, and the name of the person's account. The account is created unless an account of this name
/// exists.
#[derive(Debug, Clone)]
pub struct FirstUser {
    pub account_name: String,
    pub email: String,
    pub name: String,
    pub password_hash: String,
}

#[boxed_futures]
impl Store {
    /// Creates a token, which replaces the person's other tokens of the kind, except for `SignIn`.
    pub async fn create_user_token(&self, new: UserToken) -> Result<()> {
        let now = self.clock.now();
        self.write_described(move |sql| {
            Box::pin(async move {
                let link = ("link".to_owned(), new.kind.as_str().into());
                create(sql, new, now).await?;
                Ok(((), Some(ChangeDescription::from_iter([link]))))
            })
        })
        .await
    }

    /// The person of an unexpired token; `Some(None)` for a token without a person.
    pub async fn find_user_token(
        &self,
        kind: UserTokenKind,
        token_hash: KeyHash,
    ) -> Result<Option<Option<UserId>>> {
        let text = "SELECT user_id FROM user_tokens WHERE token_hash = $1 AND kind = $2 AND expires_at > $3";
        let params = vec![token_hash.0.to_vec().into(), kind.as_str().into(), self.clock.now().into()];
        self.fetch_opt(text, params, |row| Ok(row.int_opt(0)?.map(UserId))).await
    }

    /// Removes a person's tokens of one kind.
    pub async fn remove_user_tokens(&self, kind: UserTokenKind, id: UserId) -> Result<()> {
        let text = "DELETE FROM user_tokens WHERE user_id = $1 AND kind = $2";
        self.execute(text, vec![id.0.into(), kind.as_str().into()]).await?;
        Ok(())
    }

    /// Removes a token; `NotFound` if it was used or has expired.
    pub async fn take_user_token(&self, kind: UserTokenKind, token_hash: KeyHash) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(take(sql, kind, token_hash, now))).await
    }

    /// Sets the password with a mailed link, which works once. Ends all sessions.
    pub async fn reset_user_password(
        &self,
        id: UserId,
        token_hash: KeyHash,
        password_hash: String,
    ) -> Result<User> {
        let now = self.clock.now();
        self.write(move |sql| {
            Box::pin(async move {
                take(sql, UserTokenKind::PasswordReset, token_hash, now).await?;
                user_changes::set_password(sql, id, password_hash, None, now).await
            })
        })
        .await
    }

    /// Creates the first person, an owner and operator. `NotFound` without the token, or if a person already exists.
    pub async fn create_first_user(&self, token_hash: KeyHash, first: FirstUser) -> Result<User> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create_first(sql, token_hash, first, now))).await
    }
}

async fn create(sql: &Sql<'_>, new: UserToken, now: Timestamp) -> Result<(), StoreError> {
    let kind = new.kind.as_str();
    if let Some(id) = new.user_id.filter(|_| new.kind != UserTokenKind::SignIn) {
        let text = "DELETE FROM user_tokens WHERE user_id = $1 AND kind = $2";
        sql.execute(text, &[id.0.into(), kind.into()]).await?;
    }
    sql.execute(
        "INSERT INTO user_tokens (token_hash, kind, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
        &[
            new.token_hash.0.to_vec().into(),
            kind.into(),
            new.user_id.map(|id| id.0).into(),
            now.into(),
            new.expires_at.into(),
        ],
    )
    .await?;
    Ok(())
}

async fn take(
    sql: &Sql<'_>,
    kind: UserTokenKind,
    token_hash: KeyHash,
    now: Timestamp,
) -> Result<(), StoreError> {
    let text = "DELETE FROM user_tokens WHERE token_hash = $1 AND kind = $2 AND expires_at > $3";
    sql.execute_one(text, &[token_hash.0.to_vec().into(), kind.as_str().into(), now.into()]).await
}

async fn create_first(
    sql: &Sql<'_>,
    token_hash: KeyHash,
    first: FirstUser,
    now: Timestamp,
) -> Result<User, StoreError> {
    take(sql, UserTokenKind::SetUp, token_hash, now).await?;
    // Every node has its own set-up token: none of these tokens may create another first user.
    sql.execute("DELETE FROM user_tokens WHERE kind = $1", &[UserTokenKind::SetUp.as_str().into()]).await?;
    if sql.query_opt("SELECT id FROM users ORDER BY id LIMIT 1", &[]).await?.is_some() {
        return Err(StoreError::NotFound);
    }
    let text = "SELECT id FROM accounts WHERE name = $1 ORDER BY id LIMIT 1";
    let account_id = match sql.query_opt(text, &[first.account_name.as_str().into()]).await? {
        Some(row) => postroad_model::AccountId(row.int(0)?),
        None => accounts::create(sql, first.account_name, now).await?.id,
    };
    let new = NewUser {
        account_id,
        email: first.email,
        name: first.name,
        role: postroad_model::UserRole::Owner,
        operator: true,
        password_hash: Some(first.password_hash),
    };
    user::insert(sql, new, now).await
}
