//! Erases an address outside of messages: suppressions and idempotency keys keep only a hash. The address is removed
//! from details of suppressions, stored answers, counted tags, ended jobs, pacing notes and automatic gates. Saved
//! searches with the address and all requests to the server's inspector are removed.

use postroad_boxed_futures::boxed_futures;
use postroad_model::ServerId;

use super::message::ERASED_ADDRESS;
use super::spellings::{mentions_any, spellings};
use crate::error::StoreError;
use crate::idempotency;
use crate::sql::{Sql, Value, storable};
use crate::suppressions::record::{address_key, erased_key};
use crate::{CountingRules, Result, Store};

/// Idempotency keys scanned in one step.
const KEYS_PER_STEP: i64 = 2_000;

/// A column of texts that may contain an address. Rows that match are changed one by one, so that accepts do not wait
/// for the search.
struct MentionColumn {
    /// Statement that finds rows by the address (ASCII letters in lower case), which is `$1`. Returns the two parts of
    /// each row's key, and the text.
    sqlite: &'static str,
    postgres: &'static str,
    /// Whether rows belong to a server, which is then `$2`.
    is_by_server: bool,
    /// Statement that takes the parts of the key, preceded by the server if rows belong to one. If the second part is
    /// always empty, the condition `$3 = ''` only uses up its parameter.
    change: &'static str,
}

macro_rules! mentions {
    ($key:literal, $column:literal, $of:literal) => {
        concat!("SELECT ", $key, ", ", $column, " FROM ", $of, " instr(lower(", $column, "), $1) > 0")
    };
    (postgres $key:literal, $column:literal, $of:literal) => {
        concat!(
            "SELECT ",
            $key,
            ", ",
            $column,
            " FROM ",
            $of,
            " strpos(lower(",
            $column,
            " COLLATE \"C\"), $1) > 0"
        )
    };
}

const MENTION_COLUMNS: [MentionColumn; 4] = [
    MentionColumn {
        sqlite: mentions!(
            "CAST(id AS TEXT), ''",
            "request",
            "jobs WHERE server_id = $2 AND state <> 'running' AND"
        ),
        postgres: mentions!(postgres "CAST(id AS TEXT), ''", "request", "jobs WHERE server_id = $2 AND state <> 'running' AND"),
        is_by_server: true,
        change: "UPDATE jobs SET request = '' WHERE server_id = $1 AND id = CAST(CAST($2 AS TEXT) AS BIGINT) AND $3 = ''",
    },
    MentionColumn {
        sqlite: mentions!("address, ''", "details", "suppressions WHERE server_id = $2 AND"),
        postgres: mentions!(postgres "address, ''", "details", "suppressions WHERE server_id = $2 AND"),
        is_by_server: true,
        change: "UPDATE suppressions SET details = '' WHERE server_id = $1 AND address = $2 AND $3 = ''",
    },
    MentionColumn {
        sqlite: mentions!("source, site", "reason", "pacing_notes WHERE"),
        postgres: mentions!(postgres "source, site", "reason", "pacing_notes WHERE"),
        is_by_server: false,
        change: "UPDATE pacing_notes SET reason = '' WHERE source = $1 AND site = $2",
    },
    MentionColumn {
        sqlite: mentions!("scope_kind, scope_key", "reason", "gates WHERE automatic = 1 AND"),
        postgres: mentions!(postgres "scope_kind, scope_key", "reason", "gates WHERE automatic = 1 AND"),
        is_by_server: false,
        change: "UPDATE gates SET reason = '' WHERE scope_kind = $1 AND scope_key = $2 AND automatic = 1",
    },
];

#[boxed_futures]
impl Store {
    /// Erases an address outside of messages; must be called after the messages to the address are erased. Can be
    /// repeated. Counts the server's remaining events before it renames counted tags, so that the tags of these events
    /// are erased too.
    pub async fn erase_address(
        &self,
        server_id: ServerId,
        address: String,
        rules: &CountingRules,
    ) -> Result<()> {
        let key = storable(&address_key(&address)).into_owned();
        self.write(move |sql| {
            Box::pin(async move { sql.with_secure_delete(hash_suppression(sql, server_id, key)).await })
        })
        .await?;
        self.last_suppressed.note([server_id], self.clock.now());
        let spellings = spellings(&address);
        for spelling in &spellings {
            for column in &MENTION_COLUMNS {
                self.erase_mentions(column, server_id, spelling).await?;
            }
        }
        self.remove_searches(server_id, &spellings).await?;
        self.forget_inspector_requests(server_id).await?;
        self.erase_keys(server_id, &spellings).await?;
        self.finish_counting(server_id, rules).await?;
        self.rename_counted_tags(server_id, &spellings).await
    }

    async fn erase_mentions(&self, column: &MentionColumn, server_id: ServerId, address: &str) -> Result<()> {
        let text = if self.is_sqlite() { column.sqlite } else { column.postgres };
        let mut params: Vec<Value> = vec![address.into()];
        params.extend(column.is_by_server.then(|| server_id.0.into()));
        let found =
            self.fetch_all(text, params, |row| Ok((row.text(0)?, row.text(1)?, row.text(2)?))).await?;
        // Texts of one server are erased at every match, even inside a longer address: punctuation before an address
        // can look like a part of it. Texts about all servers are erased only if they contain the whole address.
        let matches = found
            .into_iter()
            .filter(|(_, _, text)| column.is_by_server || !find_whole_address(text, address).is_empty());
        for (first, second, _) in matches {
            let mut params: Vec<Value> = Vec::with_capacity(3);
            params.extend(column.is_by_server.then(|| server_id.0.into()));
            params.extend([first.into(), second.into()]);
            self.overwrite(column.change, params).await?;
        }
        Ok(())
    }

    /// Runs one statement; SQLite overwrites the old content.
    pub(super) async fn overwrite(&self, text: &'static str, params: Vec<Value>) -> Result<()> {
        self.write(move |sql| {
            Box::pin(async move { sql.with_secure_delete(sql.execute(text, &params)).await.map(drop) })
        })
        .await
    }

    /// Erases the address from idempotency keys, into which customers put addresses, and from stored answers, which
    /// list recipients. Scans in steps, because a busy server has many keys.
    async fn erase_keys(&self, server_id: ServerId, spellings: &[String]) -> Result<()> {
        let mut after = String::new();
        loop {
            let text = "SELECT key, answer FROM idempotency_keys WHERE server_id = $1 AND key > $2 ORDER BY key LIMIT $3";
            let params = vec![server_id.0.into(), after.clone().into(), KEYS_PER_STEP.into()];
            let answers = self.fetch_all(text, params, |row| Ok((row.text(0)?, row.text(1)?))).await?;
            for (key, answer) in &answers {
                let mut erased: Option<String> = None;
                for spelling in spellings {
                    let text = erased.as_deref().unwrap_or(answer);
                    erased = replace_whole_address(text, spelling, ERASED_ADDRESS).or(erased);
                }
                if mentions_any(key, spellings) {
                    self.hash_key(server_id, key, erased.as_ref().unwrap_or(answer)).await?;
                } else if let Some(erased) = erased {
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

    /// Replaces a key by its hash, by which a repeated request is still recognised. The key is removed after the hash
    /// is committed, so that accepts find the key or the hash at any time.
    async fn hash_key(&self, server_id: ServerId, key: &str, answer: &str) -> Result<()> {
        let text = "INSERT INTO idempotency_keys (server_id, key, fingerprint, answer, expires_at)
                    SELECT server_id, CAST($3 AS TEXT), fingerprint, CAST($4 AS TEXT), expires_at FROM idempotency_keys
                        WHERE server_id = $1 AND key = $2
                    ON CONFLICT (server_id, key) DO UPDATE
                        SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at";
        let hash = idempotency::erased_key(server_id, key);
        self.execute(text, vec![server_id.0.into(), key.into(), hash.into(), answer.into()]).await?;
        let text = "DELETE FROM idempotency_keys WHERE server_id = $1 AND key = $2";
        self.overwrite(text, vec![server_id.0.into(), key.into()]).await
    }
}

/// Replaces the address of a suppression by its hash, which still matches the recipient.
async fn hash_suppression(sql: &Sql<'_>, server_id: ServerId, address: String) -> Result<(), StoreError> {
    let hash = erased_key(server_id, &address);
    let params = [server_id.0.into(), address.as_str().into(), hash.into()];
    // If the address was suppressed again after an earlier erasure, the newer suppression replaces the hash.
    let text = "DELETE FROM suppressions WHERE server_id = $1 AND address = $3
                    AND EXISTS (SELECT 1 FROM suppressions WHERE server_id = $1 AND address = $2)";
    sql.execute(text, &params).await?;
    let text = "UPDATE suppressions SET address = $3, details = '' WHERE server_id = $1 AND address = $2";
    sql.execute(text, &params).await?;
    Ok(())
}

/// Replaces an address, which must be in lower case. `None` if the text does not contain it.
fn replace_whole_address(text: &str, address: &str, new: &str) -> Option<String> {
    let mut replaced = String::with_capacity(text.len());
    let mut end = 0;
    for at in find_whole_address(text, address) {
        replaced.push_str(&text[end..at]);
        replaced.push_str(new);
        end = at + address.len();
    }
    (end > 0).then(|| replaced + &text[end..])
}

/// Positions at which a text contains an address in any letter case, and not as a part of a longer address.
fn find_whole_address(text: &str, address: &str) -> Vec<usize> {
    let lower = text.to_ascii_lowercase();
    let positions = lower.match_indices(address).map(|(at, _)| at);
    let is_whole =
        |at: &usize| !ends_in_local_part(&text[..*at]) && !begins_in_domain(&text[*at + address.len()..]);
    positions.filter(is_whole).collect()
}

/// Whether a text ends within the local part of an address. Characters that often surround addresses, such as quotes,
/// count as outside.
fn ends_in_local_part(before: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || ".-_+!#$%&*?^~".contains(c) || !c.is_ascii();
    before.ends_with(is_part) && !ends_with_escape(before)
}

/// Whether a text begins within the domain of an address.
fn begins_in_domain(after: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    after.starts_with(is_part) || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part))
}

/// Whether a text ends with an escape sequence of JSON, such as `\n`.
fn ends_with_escape(text: &str) -> bool {
    let short = text.strip_suffix(['n', 'r', 't', 'b', 'f']);
    let long =
        text.len().checked_sub(4).and_then(|at| text.get(..at)).and_then(|text| text.strip_suffix('u'));
    [short, long].into_iter().flatten().any(|before| {
        let backslashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
        backslashes % 2 == 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_replaced_in_any_letter_case_and_longer_addresses_stay() {
        let text = r#"{"Ann@Example.com":1,"ann@example.com":2,"joann@example.com":3,"ann@example.com.au":4,"x.ann@example.com":5}"#;
        let erased = replace_whole_address(text, "ann@example.com", "x@y").unwrap();
        assert_eq!(
            erased,
            r#"{"x@y":1,"x@y":2,"joann@example.com":3,"ann@example.com.au":4,"x.ann@example.com":5}"#
        );
        for (text, expected) in [
            ("to <ann@example.com>, 'ann@example.com'.", Some("to <x@y>, 'x@y'.")),
            ("Thank you, ann@example.com.", Some("Thank you, x@y.")),
            (
                r#"{"text":"Dear\nann@example.com\r\nann@example.com"}"#,
                Some(r#"{"text":"Dear\nx@y\r\nx@y"}"#),
            ),
            (r#"{"text":"\u0007ann@example.com"}"#, Some(r#"{"text":"\u0007x@y"}"#)),
            (r"C:\\nann@example.com", None),
            ("éann@example.com ann@example.comé ann@example.com-x", None),
            ("nothing", None),
        ] {
            assert_eq!(replace_whole_address(text, "ann@example.com", "x@y").as_deref(), expected, "{text}");
        }
    }
}
