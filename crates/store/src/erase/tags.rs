//! Erases an address in the tags of counters. Counts stay, under a name that does not reveal the tag.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use postroad_model::{ServerId, Timestamp};

use crate::sql::Row;
use crate::{CountProgress, CountingRules, Result, Store, StoreError};

impl Store {
    /// Counts all events that exist now. A concurrent `count_events` that read a tag before its erasure then finds that
    /// the events it read are already counted, and writes nothing.
    pub(super) async fn finish_counting(&self, server_id: ServerId, rules: &CountingRules) -> Result<()> {
        loop {
            match self.count_events(server_id, rules).await {
                Ok(CountProgress::AllDone) => return Ok(()),
                Ok(CountProgress::MoreLeft | CountProgress::Overtaken) => {}
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                // Nobody can count these events, so nobody can write their tags.
                Err(error) => {
                    tracing::warn!(server.id = server_id.0, %error, "events cannot be counted; erasing continues");
                    return Ok(());
                }
            }
        }
    }

    /// Renames tags that contain one of the spellings (ASCII letters in lower case). The rows of one tag are renamed
    /// together, so that all breakdowns show the same name.
    pub(super) async fn rename_counted_tags(&self, server_id: ServerId, spellings: &[String]) -> Result<()> {
        let text = if self.is_sqlite() {
            "SELECT id, tag FROM counter_dimensions WHERE server_id = $1 AND instr(lower(tag), $2) > 0"
        } else {
            "SELECT id, tag FROM counter_dimensions WHERE server_id = $1 AND strpos(lower(tag COLLATE \"C\"), $2) > 0"
        };
        let mut rows_by_tag: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for spelling in spellings {
            let params = vec![server_id.0.into(), spelling.as_str().into()];
            let read = |row: &Row| Ok((row.int(0)?, row.text(1)?));
            for (id, tag) in self.fetch_all(text, params, read).await? {
                rows_by_tag.entry(tag).or_default().push(id);
            }
        }
        for (tag, ids) in rows_by_tag {
            let new = erased_tag(server_id, &tag, self.clock.now());
            self.write(move |sql| {
                Box::pin(async move {
                    for id in ids {
                        let text = "UPDATE counter_dimensions SET tag = $3 WHERE server_id = $1 AND id = $2";
                        let params = [server_id.0.into(), id.into(), new.as_str().into()];
                        sql.with_secure_delete(sql.execute(text, &params)).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        }
        Ok(())
    }
}

/// Name that replaces an erased tag. It differs at each erasure, because the tag may be used and erased again.
fn erased_tag(server_id: ServerId, tag: &str, now: Timestamp) -> String {
    let text = format!("postroad tag {} {} {tag}", server_id.0, now.as_micros());
    let hash = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
    format!("erased:{}", &hash[..16])
}
