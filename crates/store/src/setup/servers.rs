//! Servers: create, find, list, suspend, delete, restore.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, LimitedObject, PoolId, SendRate, ServerId, ServerMode, Timestamp};
use serde::Serialize;

use super::account_ceilings::{self, AccountCeilings, columns};
use super::ceiling_values::{self, Ceilings, is_above, lower, read_rate};
use super::object_counts;
use super::set_by::SetBy;
use crate::accept::AccountLimits;
use crate::error::StoreError;
use crate::name_part::like_pattern;
use crate::sql::{Row, Sql, Value};
use crate::{Result, Store};

#[derive(Debug, Clone)]
pub struct NewServer {
    pub account_id: AccountId,
    pub name: String,
    pub mode: ServerMode,
    /// The pool that sends the server's mail; `None` for the installation's default.
    pub pool_id: Option<PoolId>,
}

#[derive(Debug, Clone)]
pub struct Server {
    pub id: ServerId,
    pub account_id: AccountId,
    pub account_name: String,
    pub name: String,
    pub mode: ServerMode,
    pub suspended_reason: Option<String>,
    /// The pool that sends the server's mail; `None` for the installation's default.
    pub pool_id: Option<PoolId>,
    /// Mail above this rate is sent later; it is never refused.
    pub send_rate: Option<SendRate>,
    /// Messages an hour; messages beyond this limit are held.
    pub hourly_limit: Option<u32>,
    pub tracking: ServerTracking,
    pub retention: ServerRetention,
    /// Limits for the server's own key: the lower of the server's ceilings (`ceilings_by_setter`) and the account's.
    pub ceilings: Ceilings,
    pub ceilings_by_setter: CeilingsBySetter,
    pub account_ceilings: AccountCeilings,
    /// Incremented by every update that changes a value.
    pub version: i64,
    /// If the server is deleted: until when it can be restored.
    pub delete_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Ceilings of one server, by who set them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CeilingsBySetter {
    pub operator: Ceilings,
    pub account: Ceilings,
}

impl CeilingsBySetter {
    pub(super) fn effective(&self) -> Ceilings {
        self.operator.min_with(&self.account)
    }
}

impl Server {
    /// Message limits for all servers of the server's account together.
    pub fn account_limits(&self) -> Option<AccountLimits> {
        self.account_ceilings.limits(self.account_id)
    }

    /// The server with effective values: the account's ceilings may be lower than its stored values.
    fn within_ceilings(mut self) -> Self {
        let highest = self.account_ceilings.for_server();
        self.send_rate = lower(self.send_rate, highest.send_rate, SendRate::is_above);
        // A server without its own limit may use what is left of the account's limit.
        self.hourly_limit =
            self.hourly_limit.and_then(|limit| lower(Some(limit), highest.hourly_limit, is_above));
        let ServerRetention { bodies_days, messages_days } = self.retention;
        self.retention = ServerRetention {
            bodies_days: lower(bodies_days, highest.bodies_days, is_above),
            messages_days: lower(messages_days, highest.messages_days, is_above),
        };
        self
    }
}

/// Servers to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct ServerFilter {
    pub account_id: Option<AccountId>,
    pub name: Option<String>,
    /// Part of the name, in any letter case.
    pub name_part: Option<String>,
    pub suspended: Option<bool>,
    /// Whether to list only deleted servers that can still be restored; otherwise only servers that are not deleted are
    /// listed.
    pub deleted: bool,
}

/// Days that a server's mail is kept, where shorter than the installation's; `None` inherits the installation's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ServerRetention {
    /// Message bodies.
    pub bodies_days: Option<u32>,
    /// Messages with all their data.
    pub messages_days: Option<u32>,
}

/// Tracking of a server's mail, unless a domain or message overrides it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerTracking {
    pub opens: bool,
    pub clicks: bool,
    /// Links to these hosts are not tracked.
    pub excluded_hosts: Vec<String>,
}

/// A query for servers.
macro_rules! servers {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, s.account_id, a.name, s.name, s.mode, s.suspended_reason, s.pool_id,
                    s.send_rate, s.hourly_limit, s.created_at, s.updated_at,
                    s.track_opens, s.track_clicks, s.track_excluded_hosts, s.retention_bodies, s.retention_messages,
                    s.mode_ceiling, s.send_rate_ceiling, s.hourly_limit_ceiling,
                    s.retention_bodies_ceiling, s.retention_messages_ceiling, s.version, s.delete_at,
                    s.account_mode_ceiling, s.account_send_rate_ceiling, s.account_hourly_limit_ceiling,
                    s.account_retention_bodies_ceiling, s.account_retention_messages_ceiling, ",
            columns!("a."),
            " FROM servers s JOIN accounts a ON a.id = s.account_id ",
            $rest
        )
    };
}

/// SQL text of a page of servers; `$by` is the condition that uses an index. All texts have the same parameters, so
/// each condition uses `$1`.
macro_rules! page_text {
    ($by:literal) => {
        concat!(
            servers!($by),
            " s.id > $2 AND (CAST($3 AS TEXT) IS NULL OR s.name = $3)
              AND (CAST($4 AS BIGINT) IS NULL OR ($4 = 1) = (s.suspended_reason IS NOT NULL))
              AND (CAST($5 AS BIGINT) = 1) = (s.delete_at IS NOT NULL) AND (s.delete_at IS NULL OR s.delete_at > $7)
              AND (CAST($8 AS TEXT) IS NULL OR lower(s.name) LIKE lower($8) ESCAPE '\\')
              ORDER BY s.id LIMIT $6"
        )
    };
}

/// SQL text and parameters of a page; there is one text for each index. Names of servers are unique within an account.
pub(super) fn page_query(
    filter: ServerFilter,
    after: Option<ServerId>,
    limit: i64,
    now: Timestamp,
) -> (&'static str, Vec<Value>) {
    let ServerFilter { account_id, name, name_part, suspended, deleted } = filter;
    let text = match (account_id, &name, deleted, suspended) {
        (Some(_), Some(_), ..) => page_text!("WHERE s.account_id = $1 AND s.name = $3 AND"),
        (Some(_), None, true, _) => page_text!("WHERE s.account_id = $1 AND s.delete_at IS NOT NULL AND"),
        (Some(_), None, false, Some(true)) => {
            page_text!("WHERE s.account_id = $1 AND s.suspended_reason IS NOT NULL AND")
        }
        (Some(_), None, false, _) => page_text!("WHERE s.account_id = $1 AND"),
        (None, Some(_), ..) => page_text!("WHERE CAST($1 AS BIGINT) IS NULL AND s.name = $3 AND"),
        (None, None, true, _) => {
            page_text!("WHERE CAST($1 AS BIGINT) IS NULL AND s.delete_at IS NOT NULL AND")
        }
        (None, None, false, Some(true)) => {
            page_text!("WHERE CAST($1 AS BIGINT) IS NULL AND s.suspended_reason IS NOT NULL AND")
        }
        (None, None, false, _) => page_text!("WHERE CAST($1 AS BIGINT) IS NULL AND"),
    };
    let (account_id, after) = (account_id.map(|id| id.0), after.map_or(0, |id| id.0));
    let params = vec![
        account_id.into(),
        after.into(),
        name.into(),
        suspended.into(),
        deleted.into(),
        limit.into(),
        now.into(),
        name_part.as_deref().map(like_pattern).into(),
    ];
    (text, params)
}

#[boxed_futures]
impl Store {
    /// Creates a server as the operator: a development server stays one until the operator makes it live.
    pub async fn create_server(&self, new: NewServer) -> Result<Server> {
        self.create_server_by(SetBy::Operator, new).await
    }

    /// Creates a server as the operator or the account: a development server stays one until `set_by` makes it live.
    pub async fn create_server_by(&self, set_by: SetBy, new: NewServer) -> Result<Server> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(create(sql, new, set_by, now))).await
    }

    pub async fn find_server(&self, id: ServerId) -> Result<Option<Server>> {
        self.read(move |sql| Box::pin(find(sql, id))).await
    }

    pub async fn list_servers(&self) -> Result<Vec<Server>> {
        self.fetch_all(servers!("ORDER BY s.id"), Vec::new(), read).await
    }

    /// Servers with ids after `after`, in the order of their ids.
    pub async fn list_servers_page(
        &self,
        filter: ServerFilter,
        after: Option<ServerId>,
        limit: usize,
    ) -> Result<Vec<Server>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(list_page(sql, filter, after, limit as i64, now))).await
    }

    /// Marks the server as deleted, or restores it (`None`). `NotFound` if the server is already in that state, or can
    /// no longer be restored.
    pub async fn set_server_deleted(&self, id: ServerId, delete_at: Option<Timestamp>) -> Result<Server> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_deleted(sql, id, delete_at, now))).await
    }

    /// Suspends the server with a reason, or resumes it (`None`). `false` if nothing was changed: an account cannot
    /// change a suspension by the operator.
    pub async fn set_server_suspended_by(
        &self,
        by: SetBy,
        id: ServerId,
        reason: Option<String>,
    ) -> Result<bool> {
        let now = self.clock.now();
        self.change(move |sql| Box::pin(set_suspended(sql, by, id, reason, now))).await
    }
}

pub(crate) async fn create(
    sql: &Sql<'_>,
    new: NewServer,
    set_by: SetBy,
    now: Timestamp,
) -> Result<Server, StoreError> {
    object_counts::check_ceiling(sql, new.account_id, LimitedObject::Servers, now).await?;
    let ceiling = ceiling_values::mode_column(new.mode);
    let ceiling_by = |setter: SetBy| ceiling.filter(|_| set_by == setter);
    let inserted = sql
        .query_opt(
            "INSERT INTO servers (account_id, name, mode, mode_ceiling, account_mode_ceiling, pool_id, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7) RETURNING id",
            &[
                new.account_id.0.into(),
                new.name.into(),
                new.mode.as_str().into(),
                ceiling_by(SetBy::Operator).into(),
                ceiling_by(SetBy::Account).into(),
                new.pool_id.map(|id| id.0).into(),
                now.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    object_counts::adjust_count(sql, new.account_id, LimitedObject::Servers, 1).await?;
    find(sql, ServerId(inserted.int(0)?)).await?.ok_or(StoreError::NotFound)
}

pub(crate) async fn find(sql: &Sql<'_>, id: ServerId) -> Result<Option<Server>, StoreError> {
    Ok(find_stored(sql, id).await?.map(Server::within_ceilings))
}

/// Finds the server with its stored values, which may be above the ceilings of the account.
pub(super) async fn find_stored(sql: &Sql<'_>, id: ServerId) -> Result<Option<Server>, StoreError> {
    let row = sql.query_opt(servers!("WHERE s.id = $1"), &[id.0.into()]).await?;
    row.as_ref().map(read_stored).transpose()
}

async fn list_page(
    sql: &Sql<'_>,
    filter: ServerFilter,
    after: Option<ServerId>,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Server>, StoreError> {
    let (text, params) = page_query(filter, after, limit, now);
    sql.query(text, &params).await?.iter().map(read).collect()
}

/// SQL condition: the suspension `$2` by `$3` differs from the server's. An equal suspension leaves the version as it
/// is.
macro_rules! is_changed_suspension {
    () => {
        "(suspended_reason IS DISTINCT FROM $2 OR ($2 IS NOT NULL AND suspended_by IS DISTINCT FROM $3))"
    };
}

async fn set_suspended(
    sql: &Sql<'_>,
    by: SetBy,
    id: ServerId,
    reason: Option<String>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sql
        .execute(
            concat!(
                "UPDATE servers SET suspended_reason = $2, suspended_by = $3,
                     version = version + CASE WHEN ",
                is_changed_suspension!(),
                " THEN 1 ELSE 0 END, updated_at = CASE WHEN ",
                is_changed_suspension!(),
                " THEN $4 ELSE updated_at END
             WHERE id = $1 AND (CAST($5 AS BIGINT) = 1 OR suspended_reason IS NULL OR suspended_by = 'account')"
            ),
            &[
                id.0.into(),
                reason.into(),
                by.stored().into(),
                now.into(),
                (by == SetBy::Operator).into(),
            ],
        )
        .await?;
    match changed {
        0 if find_stored(sql, id).await?.is_none() => Err(StoreError::NotFound),
        changed => Ok(changed > 0),
    }
}

async fn set_deleted(
    sql: &Sql<'_>,
    id: ServerId,
    delete_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Server, StoreError> {
    sql.execute_one(
        "UPDATE servers SET delete_at = $2, version = version + 1, updated_at = $3
         WHERE id = $1 AND CASE WHEN CAST($2 AS BIGINT) IS NULL THEN delete_at > $3 ELSE delete_at IS NULL END",
        &[id.0.into(), delete_at.into(), now.into()],
    )
    .await?;
    find(sql, id).await?.ok_or(StoreError::NotFound)
}

fn read(row: &Row) -> Result<Server, StoreError> {
    read_stored(row).map(Server::within_ceilings)
}

fn read_stored(row: &Row) -> Result<Server, StoreError> {
    let (operator, account) = (ceiling_values::read(row, 16)?, ceiling_values::read(row, 23)?);
    let account_ceilings = account_ceilings::read(row, 28)?;
    let ceilings_by_setter = CeilingsBySetter { operator, account };
    Ok(Server {
        id: ServerId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        name: row.text(3)?,
        mode: row.parsed(4, ServerMode::parse)?,
        suspended_reason: row.text_opt(5)?,
        pool_id: row.int_opt(6)?.map(PoolId),
        send_rate: read_rate(row, 7)?,
        hourly_limit: row.int_opt(8)?.map(|limit| limit as u32),
        created_at: row.time(9)?,
        updated_at: row.time(10)?,
        tracking: read_tracking(row, 11)?,
        retention: ServerRetention {
            bodies_days: row.int_opt(14)?.map(|days| days as u32),
            messages_days: row.int_opt(15)?.map(|days| days as u32),
        },
        ceilings: ceilings_by_setter.effective().min_with(&account_ceilings.for_server()),
        ceilings_by_setter,
        account_ceilings,
        version: row.int(21)?,
        delete_at: row.time_opt(22)?,
    })
}

/// Reads the columns `track_opens, track_clicks, track_excluded_hosts` from `at` on.
pub(crate) fn read_tracking(row: &Row, at: usize) -> Result<ServerTracking, StoreError> {
    Ok(ServerTracking { opens: row.flag(at)?, clicks: row.flag(at + 1)?, excluded_hosts: row.json(at + 2)? })
}
