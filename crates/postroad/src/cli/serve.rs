//! Arguments of `postroad serve`, `check-config` and `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    /// Print one line of JSON with the addresses when ready, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// Configuration file; `postroad config default` prints one to start from
    #[arg(long, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the default configuration with an explanation of every key
    Default,
}
