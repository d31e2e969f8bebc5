//! `postroad check-config` and `postroad config default`.

use super::{load_config, print};
use crate::cli::ConfigFile;

pub(crate) fn check(args: &ConfigFile) -> anyhow::Result<()> {
    load_config(args.config.as_deref())?;
    print("The configuration is good.");
    Ok(())
}

pub(crate) fn print_default() {
    print(crate::config::default_toml().trim_end());
}
