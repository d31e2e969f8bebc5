//! Arguments of `postroad api`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// The endpoint, such as servers/list
    #[arg(value_name = "GROUP/ACTION")]
    pub(crate) endpoint: String,
    /// The request as a JSON object; - reads standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) request: String,
    /// URL of the service, such as https://mail.example.com [default: from --profile, POSTROAD_URL or POSTROAD_PROFILE, or
    /// http://127.0.0.1:8025]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// File with URL and keys, as `postroad dev --json` prints them. Its keys are used, and no others. Without it: the keys
    /// in POSTROAD_API_KEY, POSTROAD_ACCOUNT_API_KEY and POSTROAD_OPERATOR_API_KEY; if none is set, the keys in the file that
    /// POSTROAD_PROFILE names
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
}
