//! Numbers of dimension sets: combinations of dimension values. Each server has its own numbers, assigned by the node
//! that moves the server's mark (the position in `counter_marks` up to which events are counted).

use std::collections::HashMap;
use std::sync::LazyLock;

use postroad_model::ServerId;
use serde_json::{Value, json};

use super::dimensions::{Breakdown, Dimensions, each_column};
use super::tally::Tally;
use crate::error::StoreError;
use crate::sql::{Sql, to_json};

/// Changes of a server's sets by one batch of events.
pub(crate) struct SetChanges {
    /// The number of each set of the tally, in the tally's order.
    pub(crate) numbers: Vec<i64>,
    /// Sets to insert, with their numbers.
    pub(crate) new: Vec<(i64, Breakdown, Dimensions)>,
    /// Known sets that were last counted on an earlier day.
    pub(crate) touched: Vec<i64>,
    /// Start of the last day on which the batch counts something, in seconds since 1970.
    pub(crate) last_day: i64,
}

/// Assigns a number to each set of a tally: known sets keep their numbers, new sets get the next free ones.
pub(crate) async fn prepare(
    sql: &Sql<'_>,
    server_id: ServerId,
    tally: &Tally,
) -> Result<SetChanges, StoreError> {
    let mut changes = SetChanges {
        numbers: Vec::with_capacity(tally.sets.len()),
        new: Vec::new(),
        touched: Vec::new(),
        last_day: tally.last_day,
    };
    let known = find_known(sql, server_id, &tally.sets).await?;
    let mut next_number =
        if known.len() < tally.sets.len() { read_next_number(sql, server_id).await? } else { 0 };
    for (index, (breakdown, set)) in tally.sets.iter().enumerate() {
        if let Some((number, last_day)) = known.get(&index) {
            changes.numbers.push(*number);
            if *last_day < tally.last_day {
                changes.touched.push(*number);
            }
            continue;
        }
        changes.numbers.push(next_number);
        changes.new.push((next_number, *breakdown, set.clone()));
        next_number += 1;
    }
    Ok(changes)
}

/// The lowest number that is greater than those of all stored sets.
async fn read_next_number(sql: &Sql<'_>, server_id: ServerId) -> Result<i64, StoreError> {
    let text = "SELECT id FROM counter_dimensions WHERE server_id = $1 ORDER BY id DESC LIMIT 1";
    let last = sql.query_opt(text, &[server_id.0.into()]).await?;
    Ok(last.map_or(Ok(0), |row| row.int(0))? + 1)
}

/// Numbers and last days of the sets that are already stored, by the index in `sets`.
async fn find_known(
    sql: &Sql<'_>,
    server_id: ServerId,
    sets: &[(Breakdown, Dimensions)],
) -> Result<HashMap<usize, (i64, i64)>, StoreError> {
    let wanted: Vec<Vec<Value>> = sets.iter().map(|(breakdown, set)| with_code(*breakdown, set)).collect();
    let text = &Texts::of(sql).find;
    let rows = sql.query(text, &[server_id.0.into(), to_json(&wanted).into()]).await?;
    rows.iter().map(|row| Ok((row.int(0)? as usize, (row.int(1)?, row.int(2)?)))).collect()
}

/// Writes the changes. Returns false if a known set was removed meanwhile, because it was unused for a long time.
pub(crate) async fn write(
    sql: &Sql<'_>,
    server_id: ServerId,
    changes: &SetChanges,
) -> Result<bool, StoreError> {
    let texts = Texts::of(sql);
    if !changes.touched.is_empty() {
        let params = [server_id.0.into(), to_json(&changes.touched).into(), changes.last_day.into()];
        if sql.execute(&texts.touch, &params).await? < changes.touched.len() as u64 {
            return Ok(false);
        }
    }
    if !changes.new.is_empty() {
        let row = |(number, breakdown, set): &(i64, Breakdown, Dimensions)| {
            let mut row = with_code(*breakdown, set);
            row.push(json!(number));
            row
        };
        let rows: Vec<Vec<Value>> = changes.new.iter().map(row).collect();
        let params = [server_id.0.into(), changes.last_day.into(), to_json(&rows).into()];
        sql.execute(&texts.insert, &params).await?;
    }
    Ok(true)
}

/// The code of the breakdown, followed by the values of the dimensions.
fn with_code(breakdown: Breakdown, set: &Dimensions) -> Vec<Value> {
    [json!(breakdown.code())].into_iter().chain(set.values()).collect()
}

/// SQL statements with the columns of the dimensions. Each set is passed as a JSON array: code of the breakdown (column
/// `shape`), values of the dimensions, and the set's number if the set is inserted.
struct Texts {
    find: String,
    touch: String,
    insert: String,
}

impl Texts {
    fn of(sql: &Sql<'_>) -> &'static Self {
        static SQLITE: LazyLock<Texts> = LazyLock::new(Texts::sqlite);
        static POSTGRES: LazyLock<Texts> = LazyLock::new(Texts::postgres);
        if sql.is_sqlite() { &SQLITE } else { &POSTGRES }
    }

    fn sqlite() -> Self {
        let names = each_column(|_, column| format!(", {}", column.name));
        let values = each_column(|index, _| format!(", value ->> {}", index + 1));
        let equal =
            each_column(|index, column| format!(" AND d.{} = wanted.value ->> {}", column.name, index + 1));
        let number = Dimensions::COLUMNS.len() + 1;
        Self {
            find: format!(
                "SELECT wanted.key, d.id, d.last_day FROM json_each($2) AS wanted
                 CROSS JOIN counter_dimensions d ON d.server_id = $1 AND d.shape = wanted.value ->> 0{equal}"
            ),
            touch: "UPDATE counter_dimensions SET last_day = $3
                    WHERE server_id = $1 AND id IN (SELECT value FROM json_each($2))"
                .to_owned(),
            insert: format!(
                "INSERT INTO counter_dimensions (server_id, last_day, id, shape{names})
                 SELECT $1, $2, value ->> {number}, value ->> 0{values} FROM json_each($3)"
            ),
        }
    }

    fn postgres() -> Self {
        let names = each_column(|_, column| format!(", {}", column.name));
        let cast = |is_text: bool, row: &str, index: usize| {
            if is_text { format!("{row} ->> {index}") } else { format!("({row} ->> {index})::bigint") }
        };
        let values = each_column(|index, column| format!(", {}", cast(column.is_text, "value", index + 1)));
        let equal = each_column(|index, column| {
            format!(" AND d.{} = {}", column.name, cast(column.is_text, "wanted.value", index + 1))
        });
        let number = Dimensions::COLUMNS.len() + 1;
        Self {
            find: format!(
                "SELECT wanted.place - 1, d.id, d.last_day
                 FROM json_array_elements(CAST($2::text AS json)) WITH ORDINALITY AS wanted (value, place)
                 JOIN counter_dimensions d ON d.server_id = $1 AND d.shape = (wanted.value ->> 0)::bigint{equal}"
            ),
            touch: "UPDATE counter_dimensions SET last_day = $3 WHERE server_id = $1 AND id = ANY (ARRAY(
                        SELECT n::bigint FROM json_array_elements_text(CAST($2::text AS json)) AS touched (n)))"
                .to_owned(),
            insert: format!(
                "INSERT INTO counter_dimensions (server_id, last_day, id, shape{names})
                 SELECT $1::bigint, $2::bigint, (value ->> {number})::bigint, (value ->> 0)::bigint{values}
                 FROM json_array_elements(CAST($3::text AS json)) AS value"
            ),
        }
    }
}
