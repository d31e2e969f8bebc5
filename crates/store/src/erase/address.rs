//! Erase an address where it is not part of a message: suppressions keep a hash of it, answers kept for idempotency keys,
//! finished jobs and notes of receivers lose it.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::message::ERASED_ADDRESS;
use crate::error::StoreError;
use crate::sql::{Sql, storable};
use crate::suppressions::record::{address_key, erased_key};
use crate::{Result, Store};

/// Idempotency keys that one step looks through.
const KEYS_AT_ONCE: i64 = 2_000;

#[boxed_futures]
impl Store {
    /// Call it after the messages to the address are erased. Can be repeated.
    pub async fn erase_address(&self, server_id: ServerId, address: String) -> Result<()> {
        let key = storable(&address_key(&address)).into_owned();
        let wanted = key.clone();
        self.write(move |sql| Box::pin(erase_small_tables(sql, server_id, wanted))).await?;
        self.last_suppressed.note([server_id], self.clock.now());
        self.erase_answers(server_id, &key).await
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
                    self.execute(text, vec![server_id.0.into(), key.as_str().into(), erased.into()]).await?;
                }
            }
            match answers.into_iter().next_back() {
                Some((key, _)) => after = key,
                None => return Ok(()),
            }
        }
    }
}

async fn erase_small_tables(sql: &Sql<'_>, server_id: ServerId, address: String) -> Result<(), StoreError> {
    let hash = erased_key(server_id, &address);
    let both = [server_id.0.into(), address.as_str().into(), hash.into()];
    // A second erasure finds the hash of the first.
    let text = "DELETE FROM suppressions WHERE server_id = $1 AND address = $3
                    AND EXISTS (SELECT 1 FROM suppressions WHERE server_id = $1 AND address = $2)";
    sql.execute(text, &both).await?;
    let text = "UPDATE suppressions SET address = $3, details = '' WHERE server_id = $1 AND address = $2";
    sql.execute(text, &both).await?;
    let texts = if sql.is_sqlite() {
        [
            "UPDATE jobs SET request = '' WHERE server_id = $1 AND state <> 'running' AND instr(lower(request), $2) > 0",
            "UPDATE suppressions SET details = '' WHERE server_id = $1 AND instr(lower(details), $2) > 0",
            "UPDATE pacing_notes SET reason = '' WHERE $1 <> 0 AND instr(lower(reason), $2) > 0",
            "UPDATE gates SET reason = '' WHERE $1 <> 0 AND automatic = 1 AND instr(lower(reason), $2) > 0",
        ]
    } else {
        [
            "UPDATE jobs SET request = '' WHERE server_id = $1 AND state <> 'running' AND strpos(lower(request), $2) > 0",
            "UPDATE suppressions SET details = '' WHERE server_id = $1 AND strpos(lower(details), $2) > 0",
            "UPDATE pacing_notes SET reason = '' WHERE $1::bigint <> 0 AND strpos(lower(reason), $2) > 0",
            "UPDATE gates SET reason = '' WHERE $1::bigint <> 0 AND automatic = 1 AND strpos(lower(reason), $2) > 0",
        ]
    };
    for text in texts {
        sql.execute(text, &[server_id.0.into(), address.as_str().into()]).await?;
    }
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
