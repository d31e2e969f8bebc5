//! Sessions: one for each sign-in, identified by the hash of its token.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{Timestamp, UserId, UserSessionId};

use super::user::{self, User};
use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::{Row, Sql};
use crate::{ChangeDescription, Result, Store};

/// Maximum number of sessions of one person; the oldest end when there are more.
const SESSIONS_MAX: i64 = 50;
/// Maximum number of IP addresses remembered for one person.
const ADDRESSES_MAX: i64 = 50;

#[derive(Debug, Clone)]
pub struct NewUserSession {
    pub user_id: UserId,
    pub token_hash: KeyHash,
    pub address: Option<String>,
    pub user_agent: String,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSession {
    pub id: UserSessionId,
    pub user_id: UserId,
    pub address: Option<String>,
    pub user_agent: String,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// When the session ends, even if it is in use.
    pub expires_at: Timestamp,
}

macro_rules! sessions_where {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, address, user_agent, created_at, last_seen_at, expires_at FROM user_sessions WHERE ",
            $rest
        )
    };
}

#[boxed_futures]
impl Store {
    /// Creates a session; also stores the IP address and the time of the sign-in.
    pub async fn create_user_session(&self, new: NewUserSession) -> Result<UserSession> {
        let now = self.clock.now();
        self.write_described(move |sql| {
            Box::pin(async move {
                let session = create(sql, new, now).await?;
                let begun = description("session", session.id.0);
                Ok((session, Some(begun)))
            })
        })
        .await
    }

    /// The session and its person. A session that has expired, or was not used since `seen_since`, is not found.
    pub async fn find_user_session(
        &self,
        token_hash: KeyHash,
        seen_since: Timestamp,
    ) -> Result<Option<(UserSession, User)>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find(sql, token_hash, seen_since, now))).await
    }

    /// Unexpired sessions that were used since `seen_since`, with ids below `before`, newest first.
    pub async fn list_user_sessions(
        &self,
        user_id: UserId,
        seen_since: Timestamp,
        before: Option<UserSessionId>,
        limit: usize,
    ) -> Result<Vec<UserSession>> {
        let text = sessions_where!(
            "user_id = $1 AND expires_at > $2 AND last_seen_at > $3 AND id < $4 ORDER BY id DESC LIMIT $5"
        );
        let now = self.clock.now();
        let before = before.map_or(i64::MAX, |id| id.0);
        let params =
            vec![user_id.0.into(), now.into(), seen_since.into(), before.into(), (limit as i64).into()];
        self.fetch_all(text, params, read).await
    }

    /// `NotFound` if the person has no such session.
    pub async fn end_user_session(&self, user_id: UserId, id: UserSessionId) -> Result<()> {
        self.write_described(move |sql| {
            Box::pin(async move {
                let text = "DELETE FROM user_sessions WHERE user_id = $1 AND id = $2";
                sql.execute_one(text, &[user_id.0.into(), id.0.into()]).await?;
                Ok(((), Some(description("session", id.0))))
            })
        })
        .await
    }

    /// Ends all sessions of a person, except the session `except`; returns how many.
    pub async fn end_user_sessions(&self, user_id: UserId, except: Option<UserSessionId>) -> Result<u64> {
        self.write_described(move |sql| {
            Box::pin(async move {
                let text = "DELETE FROM user_sessions WHERE user_id = $1 AND id <> $2";
                let params = [user_id.0.into(), except.map_or(0, |id| id.0).into()];
                let ended = sql.execute(text, &params).await?;
                Ok((ended, (ended > 0).then(|| description("sessions_ended", ended as i64))))
            })
        })
        .await
    }

    /// Stores when sessions were last used; never replaces a time by an earlier one.
    pub async fn touch_user_sessions(&self, used: Vec<(UserSessionId, Timestamp)>) -> Result<()> {
        self.write(move |sql| Box::pin(touch(sql, used))).await
    }

    /// Whether the person signed in from this address before.
    pub async fn is_known_address(&self, user_id: UserId, address: String) -> Result<bool> {
        let text = "SELECT user_id FROM user_addresses WHERE user_id = $1 AND address = $2";
        let params = vec![user_id.0.into(), address.into()];
        Ok(self.fetch_opt(text, params, |row| row.int(0)).await?.is_some())
    }

    /// Removes expired sessions, tokens, invitations and domain links; returns the largest of the four counts.
    pub async fn purge_user_sessions(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(purge(sql, now, limit as i64))).await
    }
}

/// Description for the audit log, with one field.
fn description(name: &str, value: i64) -> ChangeDescription {
    ChangeDescription::from_iter([(name.to_owned(), value.into())])
}

async fn create(sql: &Sql<'_>, new: NewUserSession, now: Timestamp) -> Result<UserSession, StoreError> {
    let id = new.user_id.0;
    sql.execute_one("UPDATE users SET last_sign_in_at = $2 WHERE id = $1", &[id.into(), now.into()]).await?;
    if let Some(address) = &new.address {
        sql.execute(
            "INSERT INTO user_addresses (user_id, address, last_sign_in_at) VALUES ($1, $2, $3)
             ON CONFLICT (user_id, address) DO UPDATE SET last_sign_in_at = excluded.last_sign_in_at",
            &[id.into(), address.as_str().into(), now.into()],
        )
        .await?;
        sql.execute(
            "DELETE FROM user_addresses WHERE user_id = $1 AND address NOT IN
             (SELECT address FROM user_addresses WHERE user_id = $1 ORDER BY last_sign_in_at DESC LIMIT $2)",
            &[id.into(), ADDRESSES_MAX.into()],
        )
        .await?;
    }
    let row = sql
        .query_opt(
            "INSERT INTO user_sessions (user_id, token_hash, address, user_agent, created_at, last_seen_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $5, $6)
             RETURNING id, user_id, address, user_agent, created_at, last_seen_at, expires_at",
            &[
                id.into(),
                new.token_hash.0.to_vec().into(),
                new.address.into(),
                new.user_agent.into(),
                now.into(),
                new.expires_at.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    sql.execute(
        "DELETE FROM user_sessions WHERE user_id = $1 AND id NOT IN
         (SELECT id FROM user_sessions WHERE user_id = $1 ORDER BY id DESC LIMIT $2)",
        &[id.into(), SESSIONS_MAX.into()],
    )
    .await?;
    read(&row)
}

async fn find(
    sql: &Sql<'_>,
    token_hash: KeyHash,
    seen_since: Timestamp,
    now: Timestamp,
) -> Result<Option<(UserSession, User)>, StoreError> {
    let text = sessions_where!("token_hash = $1 AND expires_at > $2 AND last_seen_at > $3");
    let params = [token_hash.0.to_vec().into(), now.into(), seen_since.into()];
    let Some(row) = sql.query_opt(text, &params).await? else { return Ok(None) };
    let session = read(&row)?;
    Ok(user::find(sql, session.user_id).await?.map(|user| (session, user)))
}

async fn touch(sql: &Sql<'_>, mut used: Vec<(UserSessionId, Timestamp)>) -> Result<(), StoreError> {
    // In a fixed order, to avoid deadlocks between nodes.
    used.sort_unstable();
    for (id, at) in used {
        sql.execute(
            "UPDATE user_sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2",
            &[id.0.into(), at.into()],
        )
        .await?;
    }
    Ok(())
}

async fn purge(sql: &Sql<'_>, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let mut largest = 0;
    for text in [
        "DELETE FROM user_sessions WHERE id IN
         (SELECT id FROM user_sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
        "DELETE FROM user_tokens WHERE token_hash IN
         (SELECT token_hash FROM user_tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
        "DELETE FROM invitations WHERE id IN
         (SELECT id FROM invitations WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
        "DELETE FROM domain_links WHERE id IN
         (SELECT id FROM domain_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
    ] {
        largest = largest.max(sql.execute(text, &[now.into(), limit.into()]).await?);
    }
    Ok(largest)
}

fn read(row: &Row) -> Result<UserSession, StoreError> {
    Ok(UserSession {
        id: UserSessionId(row.int(0)?),
        user_id: UserId(row.int(1)?),
        address: row.text_opt(2)?,
        user_agent: row.text(3)?,
        created_at: row.time(4)?,
        last_seen_at: row.time(5)?,
        expires_at: row.time(6)?,
    })
}
