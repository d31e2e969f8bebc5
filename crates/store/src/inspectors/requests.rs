//! Requests to inspectors: takes, finds and clears them.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{ServerId, Timestamp};
use tokio::sync::watch;

use super::record::{Inspector, InspectorRequest, NewInspectorRequest};
use crate::error::StoreError;
use crate::setup::KeyHash;
use crate::sql::{Sql, to_json};
use crate::{ChangeDescription, Result, Store};

/// Maximum number of requests kept for one inspector.
const REQUESTS_MAX: usize = 50;
/// Maximum number of bytes of all requests of one inspector. The newest request is kept however large it is.
const INSPECTOR_BYTES_MAX: i64 = 1 << 20;

#[boxed_futures]
impl Store {
    /// The server whose inspector has this token; `None` if there is no such inspector, or it has expired.
    pub async fn find_inspector_by_token(&self, token_hash: KeyHash) -> Result<Option<ServerId>> {
        let text = "SELECT server_id FROM inspectors WHERE token_hash = $1 AND expires_at > $2";
        let params = vec![token_hash.0.to_vec().into(), self.clock.now().into()];
        self.fetch_opt(text, params, |row| row.int(0).map(ServerId)).await
    }

    /// Stores a request and removes the oldest ones beyond 50 requests or 1 MiB. `NotFound` if no inspector has this
    /// token, or it has expired.
    pub async fn take_inspector_request(
        &self,
        token_hash: KeyHash,
        request: NewInspectorRequest,
    ) -> Result<()> {
        let now = self.clock.now();
        let server_id = self.write(move |sql| Box::pin(take(sql, token_hash, request, now))).await?;
        self.inspector_notifier.notify([server_id]);
        Ok(())
    }

    /// The inspector of a server with its requests; `None` if the server has no inspector, or the inspector has
    /// expired.
    pub async fn find_inspector(&self, server_id: ServerId) -> Result<Option<Inspector>> {
        let now = self.clock.now();
        self.read(move |sql| Box::pin(find(sql, server_id, now))).await
    }

    /// One request to the inspector of a server; `None` if there is no request with this number, or the inspector has
    /// expired.
    pub async fn find_inspector_request(
        &self,
        server_id: ServerId,
        number: u64,
    ) -> Result<Option<InspectorRequest>> {
        let text = "SELECT r.number, r.at, r.method, r.status, r.is_cut, r.query, r.headers, r.body
                    FROM inspectors i JOIN inspector_requests r ON r.server_id = i.server_id
                    WHERE i.server_id = $1 AND i.expires_at > $2 AND r.number = $3";
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let params = vec![server_id.0.into(), self.clock.now().into(), number.into()];
        self.fetch_opt(text, params, InspectorRequest::read).await
    }

    /// Removes the requests of a server's inspector. Removes nothing if the server has no inspector.
    pub async fn clear_inspector(&self, server_id: ServerId) -> Result<()> {
        self.write_described(move |sql| {
            Box::pin(async move {
                let is_cleared = clear(sql, server_id).await?;
                let cleared = || ChangeDescription::from_iter([("inspector".to_owned(), "cleared".into())]);
                Ok(((), is_cleared.then(cleared)))
            })
        })
        .await?;
        self.inspector_notifier.notify([server_id]);
        Ok(())
    }

    /// A number that grows when a request arrives, and when the inspector is cleared or opened again. `None` without an
    /// inspector, or if the inspector has expired.
    pub async fn count_inspector_changes(&self, server_id: ServerId) -> Result<Option<i64>> {
        let text = "SELECT changed FROM inspectors WHERE server_id = $1 AND expires_at > $2";
        let params = vec![server_id.0.into(), self.clock.now().into()];
        self.fetch_opt(text, params, |row| row.int(0)).await
    }

    /// Changes whenever this process has opened or cleared the server's inspector, or stored a request to it; sometimes
    /// also for another server's inspector. Changes by other nodes are not included.
    pub fn inspector_notices(&self, server_id: ServerId) -> watch::Receiver<u64> {
        self.inspector_notifier.subscribe_server(server_id)
    }

    /// Removes the requests of a server's inspector after an erasure: the requests may be the server's own webhooks,
    /// with the recipients and subjects of erased messages. Does nothing without an inspector.
    pub async fn forget_inspector_requests(&self, server_id: ServerId) -> Result<()> {
        let text = "SELECT server_id FROM inspectors WHERE server_id = $1";
        if self.fetch_opt(text, vec![server_id.0.into()], |row| row.int(0)).await?.is_none() {
            return Ok(());
        }
        self.write(move |sql| Box::pin(clear(sql, server_id))).await?;
        self.inspector_notifier.notify([server_id]);
        Ok(())
    }
}

async fn take(
    sql: &Sql<'_>,
    token_hash: KeyHash,
    request: NewInspectorRequest,
    now: Timestamp,
) -> Result<ServerId, StoreError> {
    // Locks the inspector, so that requests are numbered one after the other.
    let text = "UPDATE inspectors SET count = count + 1, changed = changed + 1
                WHERE token_hash = $1 AND expires_at > $2 RETURNING server_id, count";
    let row = sql.query_opt(text, &[token_hash.0.to_vec().into(), now.into()]).await?;
    let row = row.ok_or(StoreError::NotFound)?;
    let (server_id, number) = (ServerId(row.int(0)?), row.int(1)?);
    let bytes = request.bytes() as i64;
    sql.execute(
        "INSERT INTO inspector_requests (server_id, number, at, bytes, method, status, is_cut, query, headers, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &[
            server_id.0.into(),
            number.into(),
            now.into(),
            bytes.into(),
            request.method.into(),
            i64::from(request.status).into(),
            request.is_cut.into(),
            request.query.into(),
            to_json(&request.headers).into(),
            request.body.into(),
        ],
    )
    .await?;
    trim(sql, server_id).await?;
    Ok(server_id)
}

/// Removes the oldest requests beyond the limits.
async fn trim(sql: &Sql<'_>, server_id: ServerId) -> Result<(), StoreError> {
    let text = "SELECT number, bytes FROM inspector_requests WHERE server_id = $1 ORDER BY number DESC";
    let mut total = 0;
    for (newer_count, row) in sql.query(text, &[server_id.0.into()]).await?.iter().enumerate() {
        total += row.int(1)?;
        if newer_count >= REQUESTS_MAX || newer_count > 0 && total > INSPECTOR_BYTES_MAX {
            let text = "DELETE FROM inspector_requests WHERE server_id = $1 AND number <= $2";
            sql.with_secure_delete(sql.execute(text, &[server_id.0.into(), row.int(0)?.into()])).await?;
            break;
        }
    }
    Ok(())
}

async fn find(sql: &Sql<'_>, server_id: ServerId, now: Timestamp) -> Result<Option<Inspector>, StoreError> {
    let text = "SELECT token, expires_at FROM inspectors WHERE server_id = $1 AND expires_at > $2";
    let Some(mut row) = sql.query_opt(text, &[server_id.0.into(), now.into()]).await? else {
        return Ok(None);
    };
    let text = "SELECT number, at, method, status, is_cut, query, headers, body FROM inspector_requests
                WHERE server_id = $1 ORDER BY number DESC";
    let rows = sql.query(text, &[server_id.0.into()]).await?;
    let requests = rows.iter().map(InspectorRequest::read).collect::<Result<_>>()?;
    Ok(Some(Inspector { sealed_token: row.take_blob(0)?, expires_at: row.time(1)?, requests }))
}

/// Returns `false` if the server has no inspector. Also clears an inspector that has expired.
async fn clear(sql: &Sql<'_>, server_id: ServerId) -> Result<bool, StoreError> {
    // Locks the inspector, so that a request that is being stored is removed too.
    let text = "UPDATE inspectors SET changed = changed + 1 WHERE server_id = $1";
    if sql.execute(text, &[server_id.0.into()]).await? == 0 {
        return Ok(false);
    }
    let text = "DELETE FROM inspector_requests WHERE server_id = $1";
    sql.with_secure_delete(sql.execute(text, &[server_id.0.into()])).await?;
    Ok(true)
}
