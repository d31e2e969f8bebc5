//! What can be typed about suppressions.

use std::path::PathBuf;

use clap::Subcommand;
use postroad_model::{SuppressionReason, Timestamp};

use super::parse_time;

#[derive(Debug, Subcommand)]
pub(crate) enum SuppressionCommand {
    /// Send no more mail to an address
    Add {
        /// The e-mail address
        address: String,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// hard_bounce, complaint, manual, unsubscribe or soft_bounce
        #[arg(long, default_value = "manual", value_parser = parse_reason)]
        reason: SuppressionReason,
        /// Why, in words; shown wherever it holds a message
        #[arg(long)]
        details: Option<String>,
        /// When it ends, such as 2027-01-01T00:00:00Z; leave out for never
        #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
        expires_at: Option<Timestamp>,
    },
    /// Let an address get mail again
    Remove {
        /// The e-mail address
        address: String,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
    },
    /// List suppressions, newest first
    List {
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// Only those with this reason
        #[arg(long, value_parser = parse_reason)]
        reason: Option<SuppressionReason>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Add all addresses of a CSV file: with a header (address, reason, expires_at, details), or just addresses
    Import {
        /// The CSV file; - reads standard input
        file: PathBuf,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
    },
    /// Write all suppressions to a CSV file, which `import` understands
    Export {
        /// The CSV file; - writes to standard output
        file: PathBuf,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
    },
}

fn parse_reason(text: &str) -> Result<SuppressionReason, String> {
    SuppressionReason::parse(text).ok_or_else(|| {
        format!("use one of {}", SuppressionReason::ALL.map(SuppressionReason::as_str).join(", "))
    })
}
