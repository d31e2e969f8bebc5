//! Limit of tags, templates and source addresses per server. Senders choose tags and templates freely; values beyond
//! the limit are counted together.

use std::collections::HashSet;
use std::sync::LazyLock;

use postroad_model::ServerId;

use super::dimensions::{Dimensions, LIMITED_VALUES_MAX, LimitedDimension, OTHER_VALUES, each_column};
use super::tally::CountedEvent;
use crate::error::StoreError;
use crate::sql::{Sql, to_json};

/// Replaces values beyond the limit by `OTHER_VALUES`. Two nodes cannot both use up the limit: only the node that moves
/// the server's mark (`counter_marks`) commits its counts.
pub(crate) async fn merge_beyond_limit(
    sql: &Sql<'_>,
    server_id: ServerId,
    events: &mut [CountedEvent],
) -> Result<(), StoreError> {
    for (limited, texts) in Dimensions::LIMITED.iter().zip(&*TEXTS) {
        let mut wanted: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        let values = events.iter_mut().filter_map(|event| event.facts.dimensions.limited_value_mut(limited));
        for value in values.filter(|value| !value.is_empty()) {
            if seen.insert(value.clone()) {
                wanted.push(value.clone());
            }
        }
        let dimension = ServerDimension { sql, server_id, dimension: limited, texts };
        let beyond = dimension.find_beyond_limit(wanted).await?;
        if beyond.is_empty() {
            continue;
        }
        let values = events.iter_mut().filter_map(|event| event.facts.dimensions.limited_value_mut(limited));
        for value in values.filter(|value| beyond.contains(*value)) {
            OTHER_VALUES.clone_into(value);
        }
    }
    Ok(())
}

/// SQL statements for one limited dimension.
struct Texts {
    known_sqlite: String,
    known_postgres: String,
    count: String,
}

/// SQL statements for each limited dimension, in the order of `Dimensions::LIMITED`.
static TEXTS: LazyLock<Vec<Texts>> = LazyLock::new(|| Dimensions::LIMITED.iter().map(Texts::of).collect());

impl Texts {
    fn of(limited: &LimitedDimension) -> Self {
        // In a set of this breakdown (column `shape`) all other dimensions are empty.
        let known = |wanted: &str, value: &str| {
            let equal = each_column(|_, column| match column {
                column if column.name == limited.column => format!(" AND d.{} = {value}", column.name),
                column if column.is_text => format!(" AND d.{} = ''", column.name),
                column => format!(" AND d.{} = 0", column.name),
            });
            format!(
                "SELECT {value} FROM {wanted} WHERE EXISTS (
                     SELECT 1 FROM counter_dimensions d WHERE d.server_id = $1 AND d.shape = $2{equal})"
            )
        };
        Self {
            known_sqlite: known("json_each($3) AS wanted", "wanted.value"),
            known_postgres: known(
                "json_array_elements_text(CAST($3::text AS json)) AS wanted (label)",
                "wanted.label",
            ),
            count: format!(
                "SELECT id FROM counter_dimensions WHERE server_id = $1 AND shape = $2
                 AND {} NOT IN ('', $3) LIMIT $4",
                limited.column
            ),
        }
    }
}

/// A limited dimension of a server.
struct ServerDimension<'a> {
    sql: &'a Sql<'a>,
    server_id: ServerId,
    dimension: &'static LimitedDimension,
    texts: &'static Texts,
}

impl ServerDimension<'_> {
    /// The values in `wanted` that exceed the limit.
    async fn find_beyond_limit(&self, mut wanted: Vec<String>) -> Result<HashSet<String>, StoreError> {
        if wanted.is_empty() {
            return Ok(HashSet::new());
        }
        let known = self.find_known(&wanted).await?;
        wanted.retain(|value| !known.contains(value) && value != OTHER_VALUES);
        if wanted.is_empty() {
            return Ok(HashSet::new());
        }
        let free_count = LIMITED_VALUES_MAX.saturating_sub(self.count().await?);
        let beyond = wanted.split_off(wanted.len().min(free_count));
        if !beyond.is_empty() && self.find_known(&[OTHER_VALUES.to_owned()]).await?.is_empty() {
            let plural = self.dimension.plural;
            tracing::warn!(
                server.id = self.server_id.0,
                "the server uses more than {LIMITED_VALUES_MAX} different {plural}: those beyond are counted as {OTHER_VALUES}"
            );
        }
        Ok(beyond.into_iter().collect())
    }

    /// Those of `values` that are already counted for the server.
    async fn find_known(&self, values: &[String]) -> Result<HashSet<String>, StoreError> {
        let text = if self.sql.is_sqlite() { &self.texts.known_sqlite } else { &self.texts.known_postgres };
        let params =
            [self.server_id.0.into(), self.dimension.breakdown.code().into(), to_json(&values).into()];
        self.sql.query(text, &params).await?.iter().map(|row| row.text(0)).collect()
    }

    /// Number of the server's values, counted up to `LIMITED_VALUES_MAX`.
    async fn count(&self) -> Result<usize, StoreError> {
        let (code, limit) = (self.dimension.breakdown.code(), LIMITED_VALUES_MAX as i64);
        let params = [self.server_id.0.into(), code.into(), OTHER_VALUES.into(), limit.into()];
        Ok(self.sql.query(&self.texts.count, &params).await?.len())
    }
}
