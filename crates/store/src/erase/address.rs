//! Erase an address where it is not part of a message: suppressions keep a hash of it, answers kept for idempotency keys,
//! finished jobs and notes of receivers lose it.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::message::ERASED_ADDRESS;
use crate::error::StoreError;
use crate::sql::{Sql, Value, storable};
use crate::suppressions::record::{address_key, erased_key};
use crate::{Result, Store};

/// Idempotency keys that one step looks through.
const KEYS_AT_ONCE: i64 = 2_000;

/// Where else an address may be mentioned. What is found is changed row by row: accepts do not wait for a search.
struct Mentions {
    /// With the address in lower case as `$1`; finds keys of one or two parts.
    sqlite: &'static str,
    postgres: &'static str,
    /// The table is the server's, which is `$2`.
    is_by_server: bool,
    /// With the server before the parts of the key, if it is by server.
    change: &'static str,
}

macro_rules! mentions {
    ($find:literal, $column:literal) => {
        concat!($find, " instr(lower(", $column, "), $1) > 0")
    };
    (postgres $find:literal, $column:literal) => {
        concat!($find, " strpos(lower(", $column, "), $1) > 0")
    };
}

const MENTIONS: [Mentions; 4] = [
    Mentions {
        sqlite: mentions!(
            "SELECT CAST(id AS TEXT), '' FROM jobs WHERE server_id = $2 AND state <> 'running' AND",
            "request"
        ),
        postgres: mentions!(postgres "SELECT CAST(id AS TEXT), '' FROM jobs WHERE server_id = $2 AND state <> 'running' AND", "request"),
        is_by_server: true,
        change: "UPDATE jobs SET request = '' WHERE server_id = $1 AND id = CAST(CAST($2 AS TEXT) AS BIGINT) AND $3 = ''",
    },
    Mentions {
        sqlite: mentions!("SELECT address, '' FROM suppressions WHERE server_id = $2 AND", "details"),
        postgres: mentions!(postgres "SELECT address, '' FROM suppressions WHERE server_id = $2 AND", "details"),
        is_by_server: true,
        change: "UPDATE suppressions SET details = '' WHERE server_id = $1 AND address = $2 AND $3 = ''",
    },
    Mentions {
        sqlite: mentions!("SELECT source, site FROM pacing_notes WHERE", "reason"),
        postgres: mentions!(postgres "SELECT source, site FROM pacing_notes WHERE", "reason"),
        is_by_server: false,
        change: "UPDATE pacing_notes SET reason = '' WHERE source = $1 AND site = $2",
    },
    Mentions {
        sqlite: mentions!("SELECT scope_kind, scope_key FROM gates WHERE automatic = 1 AND", "reason"),
        postgres: mentions!(postgres "SELECT scope_kind, scope_key FROM gates WHERE automatic = 1 AND", "reason"),
        is_by_server: false,
        change: "UPDATE gates SET reason = '' WHERE scope_kind = $1 AND scope_key = $2 AND automatic = 1",
    },
];

#[boxed_futures]
impl Store {
    /// Call it after the messages to the address are erased. Can be repeated.
    pub async fn erase_address(&self, server_id: ServerId, address: String) -> Result<()> {
        let key = storable(&address_key(&address)).into_owned();
        let wanted = key.clone();
        self.write(move |sql| {
            Box::pin(async move { sql.overwriting(hash_suppression(sql, server_id, wanted)).await })
        })
        .await?;
        self.last_suppressed.note([server_id], self.clock.now());
        for mentions in &MENTIONS {
            self.forget_mentions(mentions, server_id, &key).await?;
        }
        self.erase_answers(server_id, &key).await
    }

    async fn forget_mentions(&self, mentions: &Mentions, server_id: ServerId, address: &str) -> Result<()> {
        let text = if self.is_sqlite() { mentions.sqlite } else { mentions.postgres };
        let mut params: Vec<Value> = vec![address.into()];
        params.extend(mentions.is_by_server.then(|| server_id.0.into()));
        let found = self.fetch_all(text, params, |row| Ok((row.text(0)?, row.text(1)?))).await?;
        for (first, second) in found {
            let mut params: Vec<Value> = Vec::with_capacity(3);
            params.extend(mentions.is_by_server.then(|| server_id.0.into()));
            params.extend([first.into(), second.into()]);
            self.overwrite(mentions.change, params).await?;
        }
        Ok(())
    }

    /// Runs one statement; SQLite overwrites what was there before.
    async fn overwrite(&self, text: &'static str, params: Vec<Value>) -> Result<()> {
        self.write(move |sql| {
            Box::pin(async move { sql.overwriting(sql.execute(text, &params)).await.map(drop) })
        })
        .await
    }

    /// The answers list recipients by address. Read in steps, because a busy server has many keys.
    async fn erase_answers(&self, server_id: ServerId, address: &str) -> Result<()> {
        let mut after = String::new();
        loop {
            let text = "SELECT key, answer FROM idempotency_keys WHERE server_id = $1 AND key > $2 ORDER BY key LIMIT $3";
            let params = vec![server_id.0.into(), after.clone().into(), KEYS_AT_ONCE.into()];
            let answers = self.fetch_all(text, params, |row| Ok((row.text(0)?, row.text(1)?))).await?;
            for (key, answer) in &answers {
                if let Some(erased) = replace_ignoring_case(answer, address, ERASED_ADDRESS) {
                    let text = "UPDATE idempotency_keys SET answer = $3 WHERE server_id = $1 AND key = $2";
                    self.overwrite(text, vec![server_id.0.into(), key.as_str().into(), erased.into()])
                        .await?;
                }
            }
            match answers.into_iter().next_back() {
                Some((key, _)) => after = key,
                None => return Ok(()),
            }
        }
    }
}

/// The entry stays in force by the hash.
async fn hash_suppression(sql: &Sql<'_>, server_id: ServerId, address: String) -> Result<(), StoreError> {
    let hash = erased_key(server_id, &address);
    let both = [server_id.0.into(), address.as_str().into(), hash.into()];
    // A second erasure finds the hash of the first.
    let text = "DELETE FROM suppressions WHERE server_id = $1 AND address = $3
                    AND EXISTS (SELECT 1 FROM suppressions WHERE server_id = $1 AND address = $2)";
    sql.execute(text, &both).await?;
    let text = "UPDATE suppressions SET address = $3, details = '' WHERE server_id = $1 AND address = $2";
    sql.execute(text, &both).await?;
    Ok(())
}

/// `None` if the text does not contain it. `part` is in lower case.
fn replace_ignoring_case(text: &str, part: &str, new: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for (at, _) in lower.match_indices(part) {
        replaced.push_str(&text[end..at]);
        replaced.push_str(new);
        end = at + part.len();
    }
    (end > 0).then(|| replaced + &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_replaced() {
        let text = r#"{"Ann@Example.com":1,"ann@example.com":2,"joann@example.com.au":3}"#;
        let erased = replace_ignoring_case(text, "ann@example.com", "x@y").unwrap();
        assert_eq!(erased, r#"{"x@y":1,"x@y":2,"jox@y.au":3}"#);
        assert_eq!(replace_ignoring_case("nothing", "ann@example.com", ""), None);
    }
}
