//! Limit of tags and templates per server. Senders choose these labels freely; those beyond the limit are counted
//! together.

use std::collections::HashSet;

use postroad_model::ServerId;

use super::breakdown::Breakdown;
use super::dimensions::{LABELS_MAX, OTHER_LABELS};
use super::tally::CountedEvent;
use crate::error::StoreError;
use crate::sql::{Sql, to_json};

/// Gives the surplus tags and templates of these events their common name. Whoever counts the events is alone with the
/// server's mark, or counts in vain: so nobody else can take the last places.
pub(crate) async fn merge_beyond_limit(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &mut [CountedEvent],
) -> Result<(), StoreError> {
    for (breakdown, what) in [(Breakdown::Tag, "tags"), (Breakdown::Template, "templates")] {
        let label_of = |event: &CountedEvent| match breakdown {
            Breakdown::Tag => event.facts.tag.clone(),
            _ => event.facts.template.clone(),
        };
        let mut wanted: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for label in events.iter().map(label_of).filter(|label| !label.is_empty()) {
            if seen.insert(label.clone()) {
                wanted.push(label);
            }
        }
        let beyond = find_beyond_limit(sql, server_id, breakdown, what, wanted).await?;
        if beyond.is_empty() {
            continue;
        }
        for event in &mut *events {
            let label =
                if breakdown == Breakdown::Tag { &mut event.facts.tag } else { &mut event.facts.template };
            if beyond.contains(label) {
                OTHER_LABELS.clone_into(label);
            }
        }
    }
    Ok(())
}

/// Those of the words that have no place any more.
async fn find_beyond_limit(
    sql: &Sql<'_>,
    server_id: ServerId,
    breakdown: Breakdown,
    what: &str,
    mut wanted: Vec<String>,
) -> Result<HashSet<String>, StoreError> {
    if wanted.is_empty() {
        return Ok(HashSet::new());
    }
    let known = find_known(sql, server_id, breakdown, &wanted).await?;
    wanted.retain(|label| !known.contains(label) && label != OTHER_LABELS);
    if wanted.is_empty() {
        return Ok(HashSet::new());
    }
    let room = LABELS_MAX.saturating_sub(count(sql, server_id, breakdown).await?);
    let beyond = wanted.split_off(wanted.len().min(room));
    if !beyond.is_empty()
        && find_known(sql, server_id, breakdown, &[OTHER_LABELS.to_owned()]).await?.is_empty()
    {
        tracing::warn!(
            server = server_id.0,
            "the server uses more than {LABELS_MAX} different {what}: those beyond are counted as {OTHER_LABELS}"
        );
    }
    Ok(beyond.into_iter().collect())
}

async fn find_known(
    sql: &Sql<'_>,
    server_id: ServerId,
    breakdown: Breakdown,
    labels: &[String],
) -> Result<HashSet<String>, StoreError> {
    // In a set of one of these shapes the other word is empty, so that both together are the one that it is about.
    let text = if sql.is_sqlite() {
        "SELECT wanted.value FROM json_each($3) AS wanted WHERE EXISTS (
             SELECT 1 FROM counter_dimensions d WHERE d.server_id = $1 AND d.shape = $2 AND d.domain = ''
             AND d.tag = CASE $2 WHEN 2 THEN wanted.value ELSE '' END AND d.provider = ''
             AND d.template = CASE $2 WHEN 2 THEN '' ELSE wanted.value END)"
    } else {
        "SELECT wanted.word FROM json_array_elements_text(CAST($3::text AS json)) AS wanted (word) WHERE EXISTS (
             SELECT 1 FROM counter_dimensions d WHERE d.server_id = $1 AND d.shape = $2 AND d.domain = ''
             AND d.tag = CASE $2 WHEN 2 THEN wanted.word ELSE '' END AND d.provider = ''
             AND d.template = CASE $2 WHEN 2 THEN '' ELSE wanted.word END)"
    };
    let params = [server_id.0.into(), breakdown.code().into(), to_json(&labels).into()];
    sql.query(text, &params).await?.iter().map(|row| row.text(0)).collect()
}

/// How many there are; the number of places at most.
async fn count(sql: &Sql<'_>, server_id: ServerId, breakdown: Breakdown) -> Result<usize, StoreError> {
    let rows = sql
        .query(
            "SELECT id FROM counter_dimensions WHERE server_id = $1 AND shape = $2 AND tag || template NOT IN ('', $3)
             LIMIT $4",
            &[server_id.0.into(), breakdown.code().into(), OTHER_LABELS.into(), (LABELS_MAX as i64).into()],
        )
        .await?;
    Ok(rows.len())
}
