//! The numbered schema changes of both engines, compiled in. A migration runs once, in one transaction, forward only. A
//! database with a newer version than this list belongs to a newer binary and is not opened.

use std::borrow::Cow;

use postroad_model::Timestamp;

use crate::error::OpenError;

/// Placeholder for the service's time in a migration.
const NOW: &str = "{now}";

pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

macro_rules! migrations {
    ($($version:literal => $file:literal),+ $(,)?) => {
        &[$(Migration {
            version: $version,
            sqlite: include_str!(concat!("../migrations/sqlite/", $file)),
            postgres: include_str!(concat!("../migrations/postgres/", $file)),
        }),+]
    };
}

pub(crate) const MIGRATIONS: &[Migration] = migrations! {
    1 => "0001_initial.sql",
    2 => "0002_delivery.sql",
    3 => "0003_returns.sql",
    4 => "0004_domain_reports.sql",
    5 => "0005_events.sql",
    6 => "0006_suppressions.sql",
    7 => "0007_analytics.sql",
    8 => "0008_tracking.sql",
    9 => "0009_analytics_rollups.sql",
    10 => "0010_event_order.sql",
    11 => "0011_server_retention.sql",
    12 => "0012_claims_by_epoch.sql",
    13 => "0013_logins.sql",
    14 => "0014_scheduled_and_expiry.sql",
    15 => "0015_warm_up_pauses.sql",
    16 => "0016_server_ceilings.sql",
    17 => "0017_source_of_retries.sql",
    18 => "0018_warm_up_by_provider.sql",
    19 => "0019_pacing_notes.sql",
    20 => "0020_domain_owners_keys_checks.sql",
    21 => "0021_templates.sql",
    22 => "0022_batches.sql",
    23 => "0023_domain_grace.sql",
    24 => "0024_attempt_dimensions.sql",
    25 => "0025_search.sql",
    26 => "0026_jobs.sql",
    27 => "0027_accounts.sql",
    28 => "0028_delivery_policy_and_keys.sql",
    29 => "0029_pool_owners.sql",
    30 => "0030_users.sql",
    31 => "0031_account_ceilings.sql",
    32 => "0032_report_age.sql",
    33 => "0033_domain_links_and_saved_searches.sql",
    34 => "0034_owners_and_key_lists.sql",
    35 => "0035_account_counts_and_audit_indexes.sql",
    36 => "0036_releases_and_reschedules.sql",
    37 => "0037_merged_blocks_and_webhook_versions.sql",
    38 => "0038_account_names_and_filtered_lists.sql",
    39 => "0039_pool_changes.sql",
    40 => "0040_setup_changes_and_filters.sql",
    41 => "0041_inspectors_and_webhook_failures.sql",
    42 => "0042_rare_status_index.sql",
};

/// The text of a migration, with `{now}` replaced by the service's time in microseconds: the database's clock may
/// differ.
pub(crate) fn fill_in_now(text: &str, now: Timestamp) -> Cow<'_, str> {
    if text.contains(NOW) { text.replace(NOW, &now.as_micros().to_string()).into() } else { text.into() }
}

/// The migrations still to run on a database of version `found`.
pub(crate) fn pending(found: i64) -> Result<&'static [Migration], OpenError> {
    let known = MIGRATIONS.last().map_or(0, |newest| newest.version);
    if found > known {
        return Err(OpenError::NewerSchema { found, known });
    }
    Ok(&MIGRATIONS[MIGRATIONS.partition_point(|migration| migration.version <= found)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_migration_reads_the_clock_of_the_database() {
        for migration in MIGRATIONS {
            for text in [migration.sqlite, migration.postgres] {
                let text = text.to_lowercase();
                for word in ["now()", "'now'", "current_timestamp", "clock_timestamp", "unixepoch"] {
                    assert!(!text.contains(word), "{}: {word}; write {NOW} instead", migration.version);
                }
            }
        }
    }

    #[test]
    fn versions_count_up_from_one() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=MIGRATIONS.len() as i64).collect::<Vec<_>>());
    }
}
