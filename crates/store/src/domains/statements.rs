//! Domains: create, find, list, set verified, delete. Their keys are in `keys`, their checks in `checks`.

use std::collections::HashMap;

use postroad_model::{
    AccountId, DomainId, DomainName, EventKind, IdGenerator, LimitedObject, ServerId, Timestamp,
};
use serde_json::json;

use super::pending_events::EVENTS_AT_ONCE;
use super::records::{
    Domain, DomainFilter, DomainKey, DomainOwner, DomainScope, KeyState, NameUse, NewDomain, OwnerDomains,
    SendingDomain, VerifiedBy,
};
use super::usable::usable;
use super::{keys, pending_events, tracking};
use crate::error::StoreError;
use crate::setup::object_counts;
use crate::sql::{Row, Sql};

/// The columns that `read` reads.
macro_rules! select {
    () => {
        "SELECT d.id, d.account_id, a.name, d.server_id, s.name, d.name, d.verified_by, d.verified_at, d.good_since,
                d.failing_since, d.checked_at, d.next_check_at, d.records, d.return_path_since, d.track_host_since,
                d.track_opens, d.track_clicks, d.track_host, d.created_at, d.updated_at, d.result_begun_at,
                d.return_path_fails_since, d.return_path_fails, d.track_host_fails_since, d.track_host_fails, d.track_alias_at
         FROM domains d JOIN accounts a ON a.id = d.account_id LEFT JOIN servers s ON s.id = d.server_id "
    };
}

async fn account_of(sql: &Sql<'_>, owner: DomainOwner) -> Result<(AccountId, Option<ServerId>), StoreError> {
    match owner {
        DomainOwner::Account(id) => Ok((id, None)),
        DomainOwner::Server(id) => {
            let text = "SELECT account_id FROM servers WHERE id = $1";
            let row = sql.query_opt(text, &[id.0.into()]).await?.ok_or(StoreError::NotFound)?;
            Ok((AccountId(row.int(0)?), Some(id)))
        }
    }
}

/// `NotFound` without the owner, `Conflict` if it already has the domain, `LimitReached` if it has the maximum number,
/// `CeilingReached` if the account may have no more domains.
pub(super) async fn create(sql: &Sql<'_>, new: NewDomain, now: Timestamp) -> Result<Domain, StoreError> {
    let (account_id, server_id) = account_of(sql, new.owner).await?;
    lock_owner(sql, account_id, server_id).await?;
    let owner_max = new.owner_max as i64;
    let owned = survey(sql, new.owner, new.name.clone(), owner_max).await?;
    if owned.count >= new.owner_max && !owned.has_name {
        return Err(StoreError::LimitReached);
    }
    if !owned.has_name {
        object_counts::check_ceiling(sql, account_id, LimitedObject::Domains, now).await?;
    }
    let inserted = sql
        .query_opt(
            "INSERT INTO domains (account_id, server_id, name, verified_by, verified_at, next_check_at, records,
                                  created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $8, $7, $7) RETURNING id",
            &[
                account_id.0.into(),
                server_id.map(|id| id.0).into(),
                new.name.as_str().into(),
                new.is_verified.then_some(VerifiedBy::Operator.as_str()).into(),
                new.is_verified.then_some(now).into(),
                new.next_check_at.into(),
                now.into(),
                new.records.into(),
            ],
        )
        .await?
        .ok_or(StoreError::Conflict)?;
    object_counts::adjust_count(sql, account_id, LimitedObject::Domains, 1).await?;
    let id = DomainId(inserted.int(0)?);
    let state = if new.is_verified { KeyState::Active } else { KeyState::Pending };
    for key in new.keys {
        keys::insert(sql, id, key, state, now).await?;
    }
    find_by_id(sql, id).await?.ok_or(StoreError::NotFound)
}

/// Makes concurrent calls for one owner take turns, so that each counts what the other added. SQLite has only one
/// writer anyway.
async fn lock_owner(
    sql: &Sql<'_>,
    account_id: AccountId,
    server_id: Option<ServerId>,
) -> Result<(), StoreError> {
    if sql.is_sqlite() {
        return Ok(());
    }
    let (text, id) = match server_id {
        Some(id) => ("SELECT id FROM servers WHERE id = $1 FOR NO KEY UPDATE", id.0),
        None => ("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account_id.0),
    };
    sql.query_opt(text, &[id.into()]).await?;
    Ok(())
}

pub(super) async fn find_by_id(sql: &Sql<'_>, id: DomainId) -> Result<Option<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.id = $1");
    let row = sql.query_opt(text, &[id.0.into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

/// A domain that the server may send from, verified or not.
pub(super) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
) -> Result<Option<Domain>, StoreError> {
    let text = concat!(
        select!(),
        "WHERE d.name = $2 AND ",
        usable!(),
        " ORDER BY coalesce(d.server_id, 0) DESC LIMIT 1"
    );
    let row = sql.query_opt(text, &[server_id.0.into(), name.as_str().into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

/// A domain of the account itself.
pub(super) async fn find_of_account(
    sql: &Sql<'_>,
    account_id: AccountId,
    name: DomainName,
) -> Result<Option<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.account_id = $1 AND d.server_id IS NULL AND d.name = $2");
    let row = sql.query_opt(text, &[account_id.0.into(), name.as_str().into()]).await?;
    with_keys(sql, row.into_iter().collect()).await.map(|mut found| found.pop())
}

/// The domains of this name, whoever owns them.
pub(super) async fn find_named(
    sql: &Sql<'_>,
    name: DomainName,
    limit: i64,
) -> Result<Vec<Domain>, StoreError> {
    let text = concat!(select!(), "WHERE d.name = $1 ORDER BY d.id LIMIT $2");
    let rows = sql.query(text, &[name.as_str().into(), limit.into()]).await?;
    with_keys(sql, rows).await
}

/// A page of domains; `$by` finds them by index.
macro_rules! listed {
    ($by:expr) => {
        concat!(
            select!(),
            "WHERE ",
            $by,
            " AND d.id > $2 AND (CAST($4 AS TEXT) IS NULL OR d.name = $4)
              AND (CAST($5 AS BIGINT) IS NULL OR (d.verified_by IS NOT NULL) = ($5 = 1)) ORDER BY d.id LIMIT $3"
        )
    };
}

/// Domains with ids after `after`, in the order of their ids.
pub(super) async fn list(
    sql: &Sql<'_>,
    filter: DomainFilter,
    after: Option<DomainId>,
    limit: i64,
) -> Result<Vec<Domain>, StoreError> {
    let (text, owner) = match (filter.scope, &filter.name) {
        (DomainScope::All, None) => (listed!("CAST($1 AS BIGINT) = 0"), 0),
        (DomainScope::All, Some(_)) => (listed!("CAST($1 AS BIGINT) = 0 AND d.name = $4"), 0),
        (DomainScope::OfAccount(id), _) => (listed!("d.account_id = $1 AND d.server_id IS NULL"), id.0),
        (DomainScope::InAccount(id), None) => (listed!("d.account_id = $1"), id.0),
        (DomainScope::InAccount(id), Some(_)) => (listed!("d.account_id = $1 AND d.name = $4"), id.0),
        (DomainScope::UsableBy(id), _) => (
            listed!(concat!(
                usable!(),
                " AND NOT (d.server_id IS NULL AND EXISTS
                   (SELECT 1 FROM domains o WHERE o.server_id = $1 AND o.name = d.name))"
            )),
            id.0,
        ),
    };
    let params = [
        owner.into(),
        after.map_or(0, |id| id.0).into(),
        limit.into(),
        filter.name.as_ref().map(|name| name.as_str().to_owned()).into(),
        filter.verified.map(i64::from).into(),
    ];
    with_keys(sql, sql.query(text, &params).await?).await
}

/// The owner's domains, counted up to `count_max`. `NotFound` without the server.
pub(super) async fn survey(
    sql: &Sql<'_>,
    owner: DomainOwner,
    name: DomainName,
    count_max: i64,
) -> Result<OwnerDomains, StoreError> {
    let (account_id, server_id) = account_of(sql, owner).await?;
    let (text, id) = match server_id {
        Some(id) => (
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM domains WHERE server_id = $1 LIMIT $2) counted),
                    (SELECT count(*) FROM domains WHERE server_id = $1 AND name = $3)",
            id.0,
        ),
        None => (
            "SELECT (SELECT count(*) FROM
                      (SELECT 1 FROM domains WHERE account_id = $1 AND server_id IS NULL LIMIT $2) counted),
                    (SELECT count(*) FROM domains WHERE account_id = $1 AND server_id IS NULL AND name = $3)",
            account_id.0,
        ),
    };
    let row = sql.query_opt(text, &[id.into(), count_max.into(), name.as_str().into()]).await?;
    let row = row.ok_or(StoreError::NotFound)?;
    Ok(OwnerDomains { account_id, count: row.int(0)? as usize, has_name: row.int(1)? > 0 })
}

/// `None` unless the domain is verified for the server. A server's own domain takes precedence over its account's,
/// unless it is not verified yet.
pub(super) async fn find_sending(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
    now: Timestamp,
) -> Result<Option<SendingDomain>, StoreError> {
    let text = concat!(
        "SELECT d.verified_by, d.track_opens, d.track_clicks, d.track_host, d.track_host_since, d.verified_at
         FROM domains d
         WHERE d.name = $2 AND ",
        usable!(),
        " ORDER BY d.verified_by IS NULL, coalesce(d.server_id, 0) DESC LIMIT 1"
    );
    let row = sql.query_opt(text, &[server_id.0.into(), name.as_str().into()]).await?;
    let Some(row) = row else { return Ok(None) };
    if row.text_opt(0)?.is_none() {
        return Ok(None);
    }
    let tracking = tracking::read(&row, 1)?;
    let has_track_host = match row.time_opt(4)? {
        Some(since) => tracking::is_host_served(since.max(row.time_opt(5)?.unwrap_or(since)), now),
        None => false,
    };
    Ok(Some(SendingDomain { tracking, has_track_host }))
}

/// Sets the verification by the operator; `None` removes it, and the DNS decides again. A domain that becomes verified
/// gets an event, and the operator's verification makes its pending keys sign. If the domain is no longer verified,
/// links in its mail work until `links_until`.
pub(super) async fn set_verified(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    id: DomainId,
    verified_at: Option<Timestamp>,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let domain = lock(sql, id).await?;
    let by_dns = domain.good_since.map(|since| (VerifiedBy::Dns, since));
    let verified = verified_at.map(|at| (VerifiedBy::Operator, domain.verified_at.unwrap_or(at))).or(by_dns);
    if domain.is_verified() && verified.is_none() {
        tracking::keep_hosts(sql, id, links_until, now).await?;
    }
    sql.change(
        "UPDATE domains SET verified_by = $2, verified_at = $3, updated_at = $4 WHERE id = $1",
        &[
            id.0.into(),
            verified.map(|(by, _)| by.as_str()).into(),
            verified.map(|(_, at)| at).into(),
            now.into(),
        ],
    )
    .await?;
    if domain.is_verified() != verified.is_some() {
        tracking::note_change(sql).await?;
    }
    if verified_at.is_some() {
        keys::activate_waiting(sql, &domain, now).await?;
    }
    if let (Some((_, at)), false) = (verified, domain.is_verified()) {
        let data = json!({ "domain": { "name": domain.name }, "verified_at": at.to_rfc3339() });
        let news = Some((EventKind::DomainVerified, data));
        pending_events::write(sql, ids, &domain, news, EVENTS_AT_ONCE, now).await?;
    }
    Ok(())
}

/// Deletes a domain with its keys. Its reports expire by age; a later owner of the name does not see them. Waiting mail
/// is signed by the installation, and links in sent mail work until `links_until`.
pub(super) async fn delete(
    sql: &Sql<'_>,
    id: DomainId,
    links_until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    tracking::keep_hosts(sql, id, links_until, now).await?;
    tracking::note_change(sql).await?;
    sql.execute("DELETE FROM domain_keys WHERE domain_id = $1", &[id.0.into()]).await?;
    sql.execute("DELETE FROM domain_links WHERE domain_id = $1", &[id.0.into()]).await?;
    let text = "DELETE FROM domains WHERE id = $1 RETURNING account_id";
    let deleted = sql.query_opt(text, &[id.0.into()]).await?.ok_or(StoreError::NotFound)?;
    object_counts::adjust_count(sql, AccountId(deleted.int(0)?), LimitedObject::Domains, -1).await
}

/// Reads the domain and locks it until the end of the transaction.
pub(super) async fn lock(sql: &Sql<'_>, id: DomainId) -> Result<Domain, StoreError> {
    if !sql.is_sqlite() {
        sql.query_opt("SELECT id FROM domains WHERE id = $1 FOR UPDATE", &[id.0.into()]).await?;
    }
    find_by_id(sql, id).await?.ok_or(StoreError::NotFound)
}

async fn with_keys(sql: &Sql<'_>, rows: Vec<Row>) -> Result<Vec<Domain>, StoreError> {
    let mut domains = rows.iter().map(read).collect::<Result<Vec<Domain>, StoreError>>()?;
    let ids: Vec<i64> = domains.iter().map(|domain| domain.id.0).collect();
    if ids.is_empty() {
        return Ok(domains);
    }
    let mut keys: HashMap<DomainId, Vec<DomainKey>> = HashMap::new();
    for (id, key) in keys::list(sql, &ids).await? {
        keys.entry(id).or_default().push(key);
    }
    for domain in &mut domains {
        domain.keys = keys.remove(&domain.id).unwrap_or_default();
    }
    Ok(domains)
}

fn read(row: &Row) -> Result<Domain, StoreError> {
    let name = row.text(5)?;
    let verified_by = match row.text_opt(6)? {
        None => None,
        Some(_) => Some(row.name(6, VerifiedBy::parse)?),
    };
    Ok(Domain {
        id: DomainId(row.int(0)?),
        account_id: AccountId(row.int(1)?),
        account_name: row.text(2)?,
        server_id: row.int_opt(3)?.map(ServerId),
        server_name: row.text_opt(4)?,
        name: DomainName::parse(&name).map_err(|e| StoreError::Internal(format!("domain {name:?}: {e}")))?,
        verified_by,
        verified_at: row.time_opt(7)?,
        good_since: row.time_opt(8)?,
        failing_since: row.time_opt(9)?,
        checked_at: row.time_opt(10)?,
        next_check_at: row.time(11)?,
        records: row.text(12)?,
        result_begun_at: row.time_opt(20)?,
        has_track_alias: row.time_opt(25)?.is_some(),
        return_path: NameUse {
            since: row.time_opt(13)?,
            fails_since: row.time_opt(21)?,
            fails: row.int(22)? as u32,
        },
        track_host: NameUse {
            since: row.time_opt(14)?,
            fails_since: row.time_opt(23)?,
            fails: row.int(24)? as u32,
        },
        tracking: tracking::read(row, 15)?,
        keys: Vec::new(),
        created_at: row.time(18)?,
        updated_at: row.time(19)?,
    })
}
