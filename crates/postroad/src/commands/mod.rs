//! The commands, one file each.

pub(crate) mod admin;
pub(crate) mod api_call;
pub(crate) mod audit;
mod client;
pub(crate) mod config;
pub(crate) mod dev;
pub(crate) mod explain;
pub(crate) mod explain_bounce;
pub(crate) mod queue;
pub(crate) mod serve;
pub(crate) mod shell_help;
mod suppressions;
pub(crate) mod trace;
pub(crate) mod webhook_listen;

use crate::config::Config;
use crate::terminal;

/// Variables of the process that are UTF-8 text; others cannot be settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Loads the configuration of a service with the checks that `serve` makes; also returns warnings.
fn load_for_serving(file: Option<&std::path::Path>) -> anyhow::Result<(Config, Vec<String>)> {
    let (config, warnings) = Config::load_for_serving(file, environment())?;
    Ok((config, warnings.iter().map(ToString::to_string).collect()))
}

/// Loads the configuration and prints its warnings, as JSON if the command answers in JSON.
fn load_config(file: Option<&std::path::Path>, json: bool) -> anyhow::Result<Config> {
    let (config, warnings) = Config::load(file, environment())?;
    for warning in warnings {
        terminal::warn(&warning.to_string(), json);
    }
    Ok(config)
}
