//! `postroad admin suppression`.

use std::path::PathBuf;

use clap::Subcommand;
use postroad_app::App;
use postroad_app::admin::AdminError;
use postroad_app::suppressions::SuppressionRequest;
use postroad_model::{SuppressionReason, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::values::parse_time;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum SuppressionCommand {
    /// Suppress an address
    Add {
        /// The e-mail address
        address: String,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// hard_bounce, complaint, manual, unsubscribe or soft_bounce
        #[arg(long, default_value = "manual", value_parser = parse_reason)]
        reason: SuppressionReason,
        /// Reason as text; shown wherever it holds a message
        #[arg(long)]
        details: Option<String>,
        /// Expiry time, such as 2027-01-01T00:00:00Z; never if left out
        #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
        expires_at: Option<Timestamp>,
    },
    /// Remove the suppression of an address
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
        /// Only suppressions with this reason
        #[arg(long, value_parser = parse_reason)]
        reason: Option<SuppressionReason>,
        /// Maximum number of suppressions to list
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
        // Lines of the file that this command carries; a long file is sent as several commands.
        #[arg(skip)]
        items: Vec<SuppressionRequest>,
    },
    /// Write all suppressions to a CSV file, which `import` accepts
    Export {
        /// The CSV file; - writes to standard output
        file: PathBuf,
        /// NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        // Cursor of the page to export: `next` of the previous page; none for the first.
        #[arg(skip)]
        after: Option<String>,
    },
}

impl SuppressionCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Add { address, server, reason, details, expires_at } => {
                let item = SuppressionRequest {
                    address,
                    reason: Some(reason.to_string()),
                    details,
                    origin_message_id: None,
                    expires_at: expires_at.map(Timestamp::to_rfc3339),
                };
                app.add_suppression(&server, item).await
            }
            Self::Remove { address, server } => app.remove_suppression(&server, address).await,
            Self::List { server, reason, limit } => app.show_suppressions(&server, reason, limit).await,
            Self::Import { server, items, .. } => app.import_suppressions(&server, &items).await,
            Self::Export { server, after, .. } => app.export_suppressions_page(&server, after).await,
        }
    }
}

fn parse_reason(text: &str) -> Result<SuppressionReason, String> {
    SuppressionReason::parse(text).ok_or_else(|| {
        format!("use one of {}", SuppressionReason::ALL.map(SuppressionReason::as_str).join(", "))
    })
}
