//! Invitations of people to an account. The person is created when the invitation is accepted.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, InvitationId, LimitedObject, Timestamp, UserRole};

use super::user::{self, NewUser, User};
use crate::error::StoreError;
use crate::setup::{KeyHash, object_counts};
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewInvitation {
    pub account_id: AccountId,
    /// In lower case.
    pub email: String,
    pub role: UserRole,
    pub operator: bool,
    pub token_hash: KeyHash,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: InvitationId,
    pub account_id: AccountId,
    pub account_name: String,
    pub email: String,
    pub role: UserRole,
    pub operator: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

macro_rules! invitations_where {
    ($rest:literal) => {
        concat!(
            "SELECT i.id, i.account_id, a.name, i.email, i.role, i.operator, i.created_at, i.expires_at
             FROM invitations i JOIN accounts a ON a.id = i.account_id WHERE ",
            $rest
        )
    };
}

/// Invitations to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct InvitationFilter {
    /// In lower case.
    pub email: Option<String>,
    pub role: Option<UserRole>,
}

#[boxed_futures]
impl Store {
    /// Creates an invitation. The new invitation replaces an earlier one of the same address, whose link stops working.
    /// `Conflict` if the person is already in the account, `CeilingReached` if the account may have no more users.
    pub async fn create_invitation(&self, new: NewInvitation) -> Result<Invitation> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, now))).await
    }

    /// An open invitation, by the hash of its token.
    pub async fn find_invitation(&self, token_hash: KeyHash) -> Result<Option<Invitation>> {
        let text = invitations_where!("i.token_hash = $1 AND i.expires_at > $2 AND a.delete_at IS NULL");
        let params = vec![token_hash.0.to_vec().into(), self.clock.now().into()];
        self.fetch_opt(text, params, read).await
    }

    /// An open invitation of the account.
    pub async fn find_invitation_of(
        &self,
        account_id: AccountId,
        id: InvitationId,
    ) -> Result<Option<Invitation>> {
        let text = invitations_where!("i.account_id = $1 AND i.id = $2 AND i.expires_at > $3");
        let params = vec![account_id.0.into(), id.0.into(), self.clock.now().into()];
        self.fetch_opt(text, params, read).await
    }

    /// Open invitations after `after`, in the order of their ids.
    pub async fn list_invitations(
        &self,
        account_id: AccountId,
        filter: InvitationFilter,
        after: Option<InvitationId>,
        limit: usize,
    ) -> Result<Vec<Invitation>> {
        let text = invitations_where!(
            "i.account_id = $1 AND i.id > $2 AND i.expires_at > $3 AND (CAST($5 AS TEXT) IS NULL OR i.email = $5)
             AND (CAST($6 AS TEXT) IS NULL OR i.role = $6) ORDER BY i.id LIMIT $4"
        );
        let after = after.map_or(0, |id| id.0);
        let now = self.clock.now();
        let params = vec![
            account_id.0.into(),
            after.into(),
            now.into(),
            (limit as i64).into(),
            filter.email.into(),
            filter.role.map(UserRole::as_str).into(),
        ];
        self.fetch_all(text, params, read).await
    }

    /// `NotFound` if the account has no such invitation.
    pub async fn remove_invitation(&self, account_id: AccountId, id: InvitationId) -> Result<()> {
        let text = "DELETE FROM invitations WHERE account_id = $1 AND id = $2";
        self.execute_one(text, vec![account_id.0.into(), id.0.into()]).await
    }

    /// Creates the person. `NotFound` without an open invitation; `Conflict` if the address is already in use, and then
    /// the invitation stays.
    pub async fn accept_invitation(
        &self,
        token_hash: KeyHash,
        name: String,
        password_hash: String,
    ) -> Result<User> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(accept(sql, token_hash, name, password_hash, now))).await
    }
}

async fn create(sql: &Sql<'_>, new: NewInvitation, now: Timestamp) -> Result<Invitation, StoreError> {
    let text = "SELECT id FROM users WHERE email = $1 AND account_id = $2";
    if sql.query_opt(text, &[new.email.as_str().into(), new.account_id.0.into()]).await?.is_some() {
        return Err(StoreError::Conflict);
    }
    let text = "SELECT id FROM invitations WHERE account_id = $1 AND email = $2 AND expires_at > $3";
    let params = [new.account_id.0.into(), new.email.as_str().into(), now.into()];
    if sql.query_opt(text, &params).await?.is_none() {
        object_counts::check_ceiling(sql, new.account_id, LimitedObject::Users, now).await?;
    }
    let row = sql
        .query_opt(
            "INSERT INTO invitations (account_id, email, role, operator, token_hash, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (account_id, email) DO UPDATE
             SET role = excluded.role, operator = excluded.operator, token_hash = excluded.token_hash,
                 created_at = excluded.created_at, expires_at = excluded.expires_at
             RETURNING id",
            &[
                new.account_id.0.into(),
                new.email.into(),
                new.role.as_str().into(),
                new.operator.into(),
                new.token_hash.0.to_vec().into(),
                now.into(),
                new.expires_at.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    let found = sql.query_opt(invitations_where!("i.id = $1"), &[row.int(0)?.into()]).await?;
    read(&found.ok_or(StoreError::NotFound)?)
}

async fn accept(
    sql: &Sql<'_>,
    token_hash: KeyHash,
    name: String,
    password_hash: String,
    now: Timestamp,
) -> Result<User, StoreError> {
    let row = sql
        .query_opt(
            "DELETE FROM invitations WHERE token_hash = $1 AND expires_at > $2
                 AND EXISTS (SELECT 1 FROM accounts WHERE id = invitations.account_id AND delete_at IS NULL)
             RETURNING account_id, email, role, operator",
            &[token_hash.0.to_vec().into(), now.into()],
        )
        .await?
        .ok_or(StoreError::NotFound)?;
    let new = NewUser {
        account_id: AccountId(row.int(0)?),
        email: row.text(1)?,
        name,
        role: row.parsed(2, UserRole::parse)?,
        operator: row.flag(3)?,
        password_hash: Some(password_hash),
    };
    user::insert(sql, new, now).await
}

fn read(row: &Row) -> Result<Invitation, StoreError> {
    Ok(Invitation {
        id: InvitationId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        email: row.text(3)?,
        role: row.parsed(4, UserRole::parse)?,
        operator: row.flag(5)?,
        created_at: row.time(6)?,
        expires_at: row.time(7)?,
    })
}
