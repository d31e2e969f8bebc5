//! Mail providers of recipient domains.

use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainName, EmailAddress, Timestamp};

use super::tally::OTHER_PROVIDER;
use crate::error::StoreError;
use crate::sql::Sql;
use crate::{Result, Store};

#[boxed_futures]
impl Store {
    /// Stores the providers of these domains; `OTHER_PROVIDER` removes the stored one.
    pub async fn save_recipient_providers(&self, found: Vec<(DomainName, String)>) -> Result<()> {
        let now = self.clock.now();
        self.write(move |sql| Box::pin(async move { save(sql, &found, now).await })).await
    }
}

/// Stores providers that are new or changed, and removes the provider of a domain for which `OTHER_PROVIDER` was found.
pub(crate) async fn save(
    sql: &Sql<'_>,
    found: &[(DomainName, String)],
    now: Timestamp,
) -> Result<(), StoreError> {
    for (domain, provider) in found {
        if provider == OTHER_PROVIDER {
            let text = "DELETE FROM recipient_providers WHERE domain = $1";
            sql.execute(text, &[domain.as_str().into()]).await?;
            continue;
        }
        sql.execute(
            "INSERT INTO recipient_providers (domain, provider, updated_at) VALUES ($1, $2, $3)
             ON CONFLICT (domain) DO UPDATE SET provider = excluded.provider, updated_at = excluded.updated_at
             WHERE recipient_providers.provider <> excluded.provider",
            &[domain.as_str().into(), provider.as_str().into(), now.into()],
        )
        .await?;
    }
    Ok(())
}

/// The provider of an address's domain; `OTHER_PROVIDER` if it is not known.
pub(crate) async fn provider_of(sql: &Sql<'_>, address: &str) -> Result<String, StoreError> {
    let Ok(address) = EmailAddress::parse(address) else { return Ok(OTHER_PROVIDER.to_owned()) };
    let text = "SELECT provider FROM recipient_providers WHERE domain = $1";
    let row = sql.query_opt(text, &[address.domain().as_str().into()]).await?;
    row.map_or_else(|| Ok(OTHER_PROVIDER.to_owned()), |row| row.text(0))
}
