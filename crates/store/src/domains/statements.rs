//! Sending domains: create, find, list, set verified.

use postroad_model::{DomainId, DomainName, EventKind, IdGenerator, ServerId, Timestamp};
use serde_json::json;

use super::records::{Domain, NewDomain, SigningKeys};
use super::tracking;
use crate::error::StoreError;
use crate::records::NewEvent;
use crate::sql::{Row, Sql};
use crate::verbs::events;

pub(super) async fn create(sql: &Sql<'_>, new: NewDomain, now: Timestamp) -> Result<Domain, StoreError> {
    let second = new.dkim_ed25519;
    sql.execute(
        "INSERT INTO domains (server_id, name, verified_at, dkim_selector, dkim_private_key, dkim_public_key,
                              created_at, updated_at, dkim_ed25519_selector, dkim_ed25519_private_key,
                              dkim_ed25519_public_key)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10)",
        &[
            new.server_id.0.into(),
            new.name.as_str().into(),
            new.verified_at.into(),
            new.dkim_selector.into(),
            new.dkim_private_key.into(),
            new.dkim_public_key.into(),
            now.into(),
            second.as_ref().map(|key| key.selector.clone()).into(),
            second.as_ref().map(|key| key.private_key.clone()).into(),
            second.map(|key| key.public_key).into(),
        ],
    )
    .await?;
    find(sql, new.server_id, new.name).await?.ok_or(StoreError::NotFound)
}

pub(super) async fn find(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
) -> Result<Option<Domain>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT d.id, d.server_id, s.name, d.name, d.verified_at, d.dkim_selector, d.dkim_public_key,
                    d.created_at, d.updated_at, d.dkim_ed25519_selector, d.dkim_ed25519_public_key,
                    d.track_opens, d.track_clicks, d.track_host
             FROM domains d JOIN servers s ON s.id = d.server_id WHERE d.server_id = $1 AND d.name = $2",
            &[server_id.0.into(), name.as_str().into()],
        )
        .await?;
    row.map(|mut row| read(&mut row)).transpose()
}

/// All domains, or those of one server.
pub(super) async fn list(sql: &Sql<'_>, server_id: Option<ServerId>) -> Result<Vec<Domain>, StoreError> {
    let rows = sql
        .query(
            "SELECT d.id, d.server_id, s.name, d.name, d.verified_at, d.dkim_selector, d.dkim_public_key,
                    d.created_at, d.updated_at, d.dkim_ed25519_selector, d.dkim_ed25519_public_key,
                    d.track_opens, d.track_clicks, d.track_host
             FROM domains d JOIN servers s ON s.id = d.server_id
             WHERE d.server_id = $1 OR $1 = 0 ORDER BY d.id",
            &[server_id.map_or(0, |id| id.0).into()],
        )
        .await?;
    rows.into_iter().map(|mut row| read(&mut row)).collect()
}

/// `None` takes the verified state away. One that becomes verified is told of, with an id of `ids`.
pub(super) async fn set_verified(
    sql: &Sql<'_>,
    ids: Option<&IdGenerator>,
    id: DomainId,
    verified_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let params = [id.0.into(), verified_at.into(), now.into()];
    if let (Some(verified_at), Some(ids)) = (verified_at, ids) {
        let row = sql
            .query_opt(
                "UPDATE domains SET verified_at = $2, updated_at = $3 WHERE id = $1 AND verified_at IS NULL
                 RETURNING server_id, name",
                &params,
            )
            .await?;
        if let Some(row) = row {
            let data = json!({
                "domain": { "name": row.text(1)? },
                "verified_at": verified_at.to_rfc3339(),
            })
            .to_string();
            let event = NewEvent { kind: EventKind::DomainVerified, data };
            return events::add_of_server(sql, ids, ServerId(row.int(0)?), &event, now).await;
        }
    }
    sql.change("UPDATE domains SET verified_at = $2, updated_at = $3 WHERE id = $1", &params).await
}

/// The keys of a domain that is verified for this server.
pub(super) async fn find_signing_keys(
    sql: &Sql<'_>,
    server_id: ServerId,
    name: DomainName,
) -> Result<Option<SigningKeys>, StoreError> {
    let row = sql
        .query_opt(
            "SELECT dkim_selector, dkim_private_key, dkim_ed25519_selector, dkim_ed25519_private_key FROM domains
             WHERE server_id = $1 AND name = $2 AND verified_at IS NOT NULL",
            &[server_id.0.into(), name.as_str().into()],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    let ed25519 = match row.text_opt(2)? {
        Some(selector) => Some((selector, row.take_blob(3)?)),
        None => None,
    };
    Ok(Some(SigningKeys { selector: row.text(0)?, private_pkcs8: row.take_blob(1)?, ed25519 }))
}

fn read(row: &mut Row) -> Result<Domain, StoreError> {
    let name = row.text(3)?;
    let dkim_ed25519 = match row.text_opt(9)? {
        Some(selector) => Some((selector, row.take_blob(10)?)),
        None => None,
    };
    Ok(Domain {
        id: DomainId(row.int(0)?),
        server_id: ServerId(row.int(1)?),
        server_name: row.text(2)?,
        name: DomainName::parse(&name).map_err(|e| StoreError::Internal(format!("domain {name:?}: {e}")))?,
        verified_at: row.time_opt(4)?,
        dkim_selector: row.text(5)?,
        dkim_public_key: row.take_blob(6)?,
        dkim_ed25519,
        created_at: row.time(7)?,
        updated_at: row.time(8)?,
        tracking: tracking::read(row, 11)?,
    })
}
