//! Arguments that select the installation that a command works on, and the form of the answer.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InstallationArgs {
    /// Data folder of the installation
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "config")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the installation
    #[arg(long, global = true, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}
