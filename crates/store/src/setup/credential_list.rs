//! Lists the credentials of an account or server in pages, and changes single credentials.

use ipnet::IpNet;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{AccountId, Change, CredentialId, ServerId, Timestamp};

use super::UpdateResult;
use super::credentials::{self, Credential};
use crate::error::StoreError;
use crate::name_part::like_pattern;
use crate::sql::{Sql, Value, to_json};
use crate::{Result, Store};

/// Credentials to list; `None` in a field matches all.
#[derive(Debug, Clone, Default)]
pub struct CredentialFilter {
    pub account_id: Option<AccountId>,
    pub server_id: Option<ServerId>,
    pub name: Option<String>,
    /// Part of the name, in any letter case.
    pub name_part: Option<String>,
    pub revoked: Option<bool>,
}

/// Changes of a credential; `None` and `Change::Keep` keep a setting.
#[derive(Debug, Clone, Default)]
pub struct CredentialChange {
    pub name: Option<String>,
    pub allow: Option<Vec<IpNet>>,
    pub hold: Option<bool>,
    pub expires_at: Change<Timestamp>,
}

/// SQL text of a page of credentials of servers that are not deleted; `$by` is the condition that uses an index.
macro_rules! page_text {
    ($by:literal) => {
        concat!(
            "SELECT id, server_id, name, key_hash, secret_hash, scope, allow, hold, test,
                    expires_at, revoked_at, last_used_at, created_at, replaced_by, version, updated_at
             FROM credentials WHERE ",
            $by,
            " AND id > $3 AND (CAST($4 AS BIGINT) IS NULL OR ($4 = 1) = (revoked_at IS NOT NULL))
              AND (CAST($6 AS TEXT) IS NULL OR name = $6)
              AND (CAST($7 AS TEXT) IS NULL OR lower(name) LIKE lower($7) ESCAPE '\\')
              AND (SELECT s.delete_at FROM servers s WHERE s.id = credentials.server_id) IS NULL
              ORDER BY id LIMIT $5"
        )
    };
}

/// SQL text and parameters of a page. There is one text for each index: of a server's credentials, an account's, or
/// all; each by name, revoked, not revoked, or all. All texts have the same parameters: conditions such as
/// `CAST($2 AS BIGINT) >= 0` only use up one that is not needed.
pub(super) fn page_query(
    filter: CredentialFilter,
    after: Option<CredentialId>,
    limit: i64,
) -> (&'static str, Vec<Value>) {
    let CredentialFilter { server_id, account_id, name, name_part, revoked } = filter;
    let text = match (server_id, account_id, revoked) {
        (Some(_), ..) if name.is_some() => {
            page_text!("server_id = $1 AND CAST($2 AS BIGINT) >= 0 AND name = $6")
        }
        (None, Some(_), _) if name.is_some() => {
            page_text!("CAST($1 AS BIGINT) = 0 AND account_id = $2 AND name = $6")
        }
        (None, None, _) if name.is_some() => {
            page_text!("CAST($1 AS BIGINT) = 0 AND CAST($2 AS BIGINT) = 0 AND name = $6")
        }
        (Some(_), _, None) => page_text!("server_id = $1 AND CAST($2 AS BIGINT) >= 0"),
        (Some(_), _, Some(true)) => {
            page_text!("server_id = $1 AND CAST($2 AS BIGINT) >= 0 AND revoked_at IS NOT NULL")
        }
        (Some(_), _, Some(false)) => {
            page_text!("server_id = $1 AND CAST($2 AS BIGINT) >= 0 AND revoked_at IS NULL")
        }
        (None, Some(_), None) => page_text!("CAST($1 AS BIGINT) = 0 AND account_id = $2"),
        (None, Some(_), Some(true)) => {
            page_text!("CAST($1 AS BIGINT) = 0 AND account_id = $2 AND revoked_at IS NOT NULL")
        }
        (None, Some(_), Some(false)) => {
            page_text!("CAST($1 AS BIGINT) = 0 AND account_id = $2 AND revoked_at IS NULL")
        }
        (None, None, None) => page_text!("CAST($1 AS BIGINT) = 0 AND CAST($2 AS BIGINT) = 0"),
        (None, None, Some(true)) => {
            page_text!("CAST($1 AS BIGINT) = 0 AND CAST($2 AS BIGINT) = 0 AND revoked_at IS NOT NULL")
        }
        (None, None, Some(false)) => {
            page_text!("CAST($1 AS BIGINT) = 0 AND CAST($2 AS BIGINT) = 0 AND revoked_at IS NULL")
        }
    };
    let (server_id, account_id) = (server_id.map_or(0, |id| id.0), account_id.map_or(0, |id| id.0));
    let after = after.map_or(0, |id| id.0);
    let params = vec![
        server_id.into(),
        account_id.into(),
        after.into(),
        revoked.into(),
        limit.into(),
        name.into(),
        name_part.as_deref().map(like_pattern).into(),
    ];
    (text, params)
}

#[boxed_futures]
impl Store {
    /// Credentials after `after`, in the order of their ids.
    pub async fn list_credentials_page(
        &self,
        filter: CredentialFilter,
        after: Option<CredentialId>,
        limit: usize,
    ) -> Result<Vec<Credential>> {
        self.read(move |sql| Box::pin(list(sql, filter, after, limit as i64))).await
    }

    /// Changes a credential. `OtherVersion` if `if_version` is given and the credential has another version; equal
    /// values leave the version as it is. `NotFound` if the credential is revoked, or if it was replaced and the change
    /// sets its expiry: the grace period cannot be extended.
    pub async fn update_credential(
        &self,
        id: CredentialId,
        if_version: Option<i64>,
        change: CredentialChange,
    ) -> Result<UpdateResult<Credential>> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(update(sql, id, if_version, change, now))).await
    }
}

async fn list(
    sql: &Sql<'_>,
    filter: CredentialFilter,
    after: Option<CredentialId>,
    limit: i64,
) -> Result<Vec<Credential>, StoreError> {
    let (text, params) = page_query(filter, after, limit);
    sql.query(text, &params).await?.into_iter().map(|mut row| credentials::read(&mut row)).collect()
}

/// SQL condition: at least one new value differs from the stored one.
macro_rules! is_changed {
    () => {
        "(name, allow, hold, expires_at) IS DISTINCT FROM (coalesce($2, name), coalesce($3, allow), coalesce($4, hold),
             CASE CAST($5 AS BIGINT) WHEN 1 THEN expires_at ELSE $6 END)"
    };
}

async fn update(
    sql: &Sql<'_>,
    id: CredentialId,
    if_version: Option<i64>,
    change: CredentialChange,
    now: Timestamp,
) -> Result<UpdateResult<Credential>, StoreError> {
    let keeps_expiry = change.expires_at.is_keep();
    let changed = sql
        .execute(
            concat!(
                "UPDATE credentials SET name = coalesce($2, name), allow = coalesce($3, allow), hold = coalesce($4, hold),
                     expires_at = CASE CAST($5 AS BIGINT) WHEN 1 THEN expires_at ELSE $6 END,
                     version = version + CASE WHEN ",
                is_changed!(),
                " THEN 1 ELSE 0 END, updated_at = CASE WHEN ",
                is_changed!(),
                " THEN $7 ELSE updated_at END
             WHERE id = $1 AND revoked_at IS NULL AND (CAST($5 AS BIGINT) = 1 OR replaced_by IS NULL)
                 AND (CAST($8 AS BIGINT) IS NULL OR version = $8)"
            ),
            &[
                id.0.into(),
                change.name.into(),
                change.allow.as_ref().map(to_json).into(),
                change.hold.into(),
                keeps_expiry.into(),
                change.expires_at.into_value().into(),
                now.into(),
                if_version.into(),
            ],
        )
        .await?;
    let credential = credentials::find(sql, id).await?.ok_or(StoreError::NotFound)?;
    let forbids_change =
        credential.revoked_at.is_some() || (credential.replaced_by.is_some() && !keeps_expiry);
    match changed {
        0 if forbids_change => Err(StoreError::NotFound),
        0 => Ok(UpdateResult::OtherVersion(credential.version)),
        _ => Ok(UpdateResult::Done(credential)),
    }
}
