//! Arguments of `postroad dev`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Where the data is kept [default: ./postroad-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Port of the HTTP API on 127.0.0.1; 0 for any free one [default: 8025]
    #[arg(long, value_name = "N")]
    pub(crate) http_port: Option<u16>,
    /// Port of SMTP with STARTTLS on 127.0.0.1; 0 for any free one [default: 2587, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtp_port: Option<u16>,
    /// Port of SMTP inside TLS on 127.0.0.1; 0 for any free one [default: 2465, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtps_port: Option<u16>,
    /// Port for bounces and complaints on 127.0.0.1; 0 for any free one [default: 2526, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) bounce_port: Option<u16>,
    /// Print one line of JSON when ready, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}
