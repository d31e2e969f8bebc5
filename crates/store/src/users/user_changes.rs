//! Changes of a person: name, role, operator's rights, password, removal.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject, Timestamp, UserId, UserRole, UserSessionId};

use super::user::{self, User};
use crate::error::StoreError;
use crate::setup::object_counts;
use crate::sql::Sql;
use crate::{Result, Store};

/// Changes of a person; `None` keeps a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserChange {
    pub name: Option<String>,
    pub role: Option<UserRole>,
    pub operator: Option<bool>,
}

/// Result of a change of a person.
#[derive(Debug, Clone)]
pub enum UserUpdateResult {
    Done(Box<User>),
    /// Nothing was changed: the account would be left without an owner.
    LastOwner,
    /// Nothing was changed: the person has this version.
    OtherVersion(i64),
}

#[boxed_futures]
impl Store {
    /// Changes a person; equal values leave the version as it is.
    pub async fn update_user(
        &self,
        id: UserId,
        if_version: Option<i64>,
        change: UserChange,
    ) -> Result<UserUpdateResult> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(update(sql, id, if_version, change, now))).await
    }

    /// Removes a person with all sessions. `may_be_last` allows removing the last owner.
    pub async fn remove_user(&self, id: UserId, may_be_last: bool) -> Result<UserUpdateResult> {
        self.write(move |sql| Box::pin(remove(sql, id, may_be_last))).await
    }

    /// Sets the password, ends all sessions except the session `except`, and invalidates all links except that of
    /// `postroad dev`.
    pub async fn set_user_password(
        &self,
        id: UserId,
        password_hash: String,
        except: Option<UserSessionId>,
    ) -> Result<User> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(set_password(sql, id, password_hash, except, now))).await
    }
}

async fn update(
    sql: &Sql<'_>,
    id: UserId,
    if_version: Option<i64>,
    change: UserChange,
    now: Timestamp,
) -> Result<UserUpdateResult, StoreError> {
    let found = lock(sql, id).await?;
    if if_version.is_some_and(|version| version != found.version) {
        return Ok(UserUpdateResult::OtherVersion(found.version));
    }
    let steps_down = found.role == UserRole::Owner && change.role.is_some_and(|role| role != UserRole::Owner);
    if steps_down && !has_other_owner(sql, found.account_id, id).await? {
        return Ok(UserUpdateResult::LastOwner);
    }
    let is_same = change.name.as_ref().is_none_or(|name| *name == found.name)
        && change.role.is_none_or(|role| role == found.role)
        && change.operator.is_none_or(|operator| operator == found.operator);
    if is_same {
        return Ok(UserUpdateResult::Done(Box::new(found)));
    }
    sql.execute_one(
        "UPDATE users SET name = coalesce($2, name), role = coalesce($3, role), operator = coalesce($4, operator),
             version = version + 1, updated_at = $5
         WHERE id = $1",
        &[
            id.0.into(),
            change.name.into(),
            change.role.map(UserRole::as_str).into(),
            change.operator.into(),
            now.into(),
        ],
    )
    .await?;
    let changed = user::find(sql, id).await?.ok_or(StoreError::NotFound)?;
    Ok(UserUpdateResult::Done(Box::new(changed)))
}

async fn remove(sql: &Sql<'_>, id: UserId, may_be_last: bool) -> Result<UserUpdateResult, StoreError> {
    let found = lock(sql, id).await?;
    let is_owner = found.role == UserRole::Owner;
    if is_owner && !may_be_last && !has_other_owner(sql, found.account_id, id).await? {
        return Ok(UserUpdateResult::LastOwner);
    }
    for text in [
        "DELETE FROM user_sessions WHERE user_id = $1",
        "DELETE FROM user_tokens WHERE user_id = $1",
        "DELETE FROM user_recovery_codes WHERE user_id = $1",
        "DELETE FROM user_addresses WHERE user_id = $1",
        "DELETE FROM saved_searches WHERE user_id = $1",
        "DELETE FROM users WHERE id = $1",
    ] {
        sql.execute(text, &[id.0.into()]).await?;
    }
    object_counts::adjust_count(sql, found.account_id, LimitedObject::Users, -1).await?;
    Ok(UserUpdateResult::Done(Box::new(found)))
}

pub(super) async fn set_password(
    sql: &Sql<'_>,
    id: UserId,
    password_hash: String,
    except: Option<UserSessionId>,
    now: Timestamp,
) -> Result<User, StoreError> {
    sql.execute_one(
        "UPDATE users SET password_hash = $2, password_changed_at = $3, version = version + 1, updated_at = $3
         WHERE id = $1",
        &[id.0.into(), password_hash.into(), now.into()],
    )
    .await?;
    let except = except.map_or(0, |id| id.0);
    let text = "DELETE FROM user_sessions WHERE user_id = $1 AND id <> $2";
    sql.execute(text, &[id.0.into(), except.into()]).await?;
    // Keeps the link of `postroad dev`, which can be used repeatedly.
    sql.execute("DELETE FROM user_tokens WHERE user_id = $1 AND kind <> 'sign_in'", &[id.0.into()]).await?;
    user::find(sql, id).await?.ok_or(StoreError::NotFound)
}

/// Reads the person and locks the people of the account against other changes.
async fn lock(sql: &Sql<'_>, id: UserId) -> Result<User, StoreError> {
    sql.execute_one(
        "UPDATE accounts SET updated_at = updated_at WHERE id = (SELECT account_id FROM users WHERE id = $1)",
        &[id.0.into()],
    )
    .await?;
    user::find(sql, id).await?.ok_or(StoreError::NotFound)
}

async fn has_other_owner(sql: &Sql<'_>, account_id: AccountId, id: UserId) -> Result<bool, StoreError> {
    let text =
        "SELECT id FROM users WHERE account_id = $1 AND role = 'owner' AND id <> $2 ORDER BY id LIMIT 1";
    Ok(sql.query_opt(text, &[account_id.0.into(), id.0.into()]).await?.is_some())
}
