//! The commands, one file each.

pub(crate) mod admin;
pub(crate) mod config;
pub(crate) mod dev;
pub(crate) mod explain;
pub(crate) mod explain_bounce;
pub(crate) mod queue;
pub(crate) mod serve;
mod suppressions;
pub(crate) mod webhook_listen;

use crate::config::Config;

/// Variables of the process as text; others cannot be settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Loads the configuration and prints its warnings.
fn load_config(file: Option<&std::path::Path>) -> anyhow::Result<Config> {
    let (config, warnings) = Config::load(file, environment())?;
    for warning in warnings {
        eprintln!("postroad: warning: {warning}");
    }
    Ok(config)
}

/// Standard output is for answers; a reader that went away is no reason to fail.
fn print(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}
