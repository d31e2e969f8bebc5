//! A person: create, find, list.

use std::fmt;

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject, Timestamp, UserId, UserRole};

use crate::error::StoreError;
use crate::setup::object_counts;
use crate::sql::{Row, Sql};
use crate::{Result, Store};

#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub account_id: AccountId,
    pub account_name: String,
    /// In lower case.
    pub email: String,
    pub name: String,
    pub role: UserRole,
    /// Whether the person has the operator's rights as well.
    pub operator: bool,
    pub password_hash: Option<String>,
    /// Sealed seed of the authenticator app.
    pub totp_seed: Option<Vec<u8>>,
    /// Sealed seed of an authenticator app that is being set up.
    pub totp_pending: Option<Vec<u8>>,
    pub last_sign_in_at: Option<Timestamp>,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Why the account is suspended or deleted, if it is.
    pub suspended_reason: Option<String>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("id", &self.id).field("role", &self.role).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct NewUser {
    pub account_id: AccountId,
    /// In lower case.
    pub email: String,
    pub name: String,
    pub role: UserRole,
    pub operator: bool,
    pub password_hash: Option<String>,
}

impl fmt::Debug for NewUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewUser").field("role", &self.role).finish_non_exhaustive()
    }
}

/// People to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    pub account_id: Option<AccountId>,
    /// In lower case.
    pub email: Option<String>,
    pub role: Option<UserRole>,
}

/// A query for people, with the columns that `read` reads.
macro_rules! users_where {
    ($rest:literal) => {
        concat!(
            "SELECT u.id, u.account_id, a.name, u.email, u.name, u.role, u.operator, u.password_hash, u.totp_seed, u.totp_pending,
                    u.last_sign_in_at, u.version, u.created_at, u.updated_at,
                    coalesce(a.suspended_reason, CASE WHEN a.delete_at IS NOT NULL THEN 'deleted' END)
             FROM users u JOIN accounts a ON a.id = u.account_id WHERE ",
            $rest
        )
    };
}

/// SQL text of a page of people; `$by` is the condition that uses an index.
macro_rules! page_text {
    ($by:literal) => {
        concat!(
            users_where!($by),
            " (CAST($1 AS BIGINT) IS NULL OR u.account_id = $1) AND (CAST($2 AS TEXT) IS NULL OR u.email = $2)
              AND (CAST($3 AS TEXT) IS NULL OR u.role = $3) AND u.id > $4 ORDER BY u.id LIMIT $5"
        )
    };
}

#[boxed_futures]
impl Store {
    /// `Conflict` if the address is in use, `NotFound` without the account, `CeilingReached` if the account may have no
    /// more users.
    pub async fn create_user(&self, new: NewUser) -> Result<User> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(create(sql, new, now))).await
    }

    pub async fn find_user(&self, id: UserId) -> Result<Option<User>> {
        self.read(move |sql| Box::pin(find(sql, id))).await
    }

    /// Finds a person by the address in lower case.
    pub async fn find_user_by_email(&self, email: String) -> Result<Option<User>> {
        self.fetch_opt(users_where!("u.email = $1"), vec![email.into()], read).await
    }

    /// People after `after`, in the order of their ids.
    pub async fn list_users(
        &self,
        filter: UserFilter,
        after: Option<UserId>,
        limit: usize,
    ) -> Result<Vec<User>> {
        // One SQL text for each index.
        let text = match &filter {
            UserFilter { email: Some(_), .. } => page_text!("u.email = $2 AND"),
            UserFilter { account_id: Some(_), .. } => page_text!("u.account_id = $1 AND"),
            _ => page_text!(""),
        };
        let params = vec![
            filter.account_id.map(|id| id.0).into(),
            filter.email.into(),
            filter.role.map(UserRole::as_str).into(),
            after.map_or(0, |id| id.0).into(),
            (limit as i64).into(),
        ];
        self.fetch_all(text, params, read).await
    }

    /// Whether the installation has any person.
    pub async fn has_users(&self) -> Result<bool> {
        let found = self.fetch_opt("SELECT id FROM users ORDER BY id LIMIT 1", Vec::new(), |row| row.int(0));
        Ok(found.await?.is_some())
    }
}

async fn create(sql: &Sql<'_>, new: NewUser, now: Timestamp) -> Result<User, StoreError> {
    object_counts::check_ceiling(sql, new.account_id, LimitedObject::Users, now).await?;
    insert(sql, new, now).await
}

/// Inserts a person without checking the ceiling: for invited people, `create_invitation` has checked it.
pub(super) async fn insert(sql: &Sql<'_>, new: NewUser, now: Timestamp) -> Result<User, StoreError> {
    let changed_at = new.password_hash.as_ref().map(|_| now);
    let inserted = sql
        .query_opt(
            "INSERT INTO users (account_id, email, name, role, operator, password_hash, password_changed_at, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING id",
            &[
                new.account_id.0.into(),
                new.email.into(),
                new.name.into(),
                new.role.as_str().into(),
                new.operator.into(),
                new.password_hash.into(),
                changed_at.into(),
                now.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    object_counts::adjust_count(sql, new.account_id, LimitedObject::Users, 1).await?;
    find(sql, UserId(inserted.int(0)?)).await?.ok_or(StoreError::NotFound)
}

pub(super) async fn find(sql: &Sql<'_>, id: UserId) -> Result<Option<User>, StoreError> {
    let row = sql.query_opt(users_where!("u.id = $1"), &[id.0.into()]).await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<User, StoreError> {
    let blob = |at| match row.value(at) {
        crate::sql::Value::Null => Ok(None),
        _ => row.blob(at).map(Some),
    };
    Ok(User {
        id: UserId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        email: row.text(3)?,
        name: row.text(4)?,
        role: row.parsed(5, UserRole::parse)?,
        operator: row.flag(6)?,
        password_hash: row.text_opt(7)?,
        totp_seed: blob(8)?,
        totp_pending: blob(9)?,
        last_sign_in_at: row.time_opt(10)?,
        version: row.int(11)?,
        created_at: row.time(12)?,
        updated_at: row.time(13)?,
        suspended_reason: row.text_opt(14)?,
    })
}
