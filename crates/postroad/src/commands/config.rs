//! `postroad check-config` and `postroad config default`.

use serde_json::json;

use super::load_for_serving;
use crate::cli::CheckConfigArgs;
use crate::terminal::{print, warn};

/// Checks a configuration as `serve` does before it starts. Fails on problems, but not on warnings.
pub(crate) fn check(args: &CheckConfigArgs) -> anyhow::Result<()> {
    let (_, warnings) = load_for_serving(args.config.config.as_deref())?;
    if args.json {
        print(&json!({ "good": true, "warnings": warnings }).to_string());
        return Ok(());
    }
    for warning in &warnings {
        warn(warning, false);
    }
    print(match warnings.len() {
        0 => "The configuration is good.",
        _ => "The configuration is good, apart from the warnings.",
    });
    Ok(())
}

pub(crate) fn print_default() {
    print(crate::config::default_toml().trim_end());
}
