//! Log output on standard error: text for people, JSON for machines. `POSTROAD_LOG` sets the level.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli;
use crate::config::LogFormat;

/// Starts logging; the format of the command line overrides the configuration's.
pub(crate) fn start(flag: Option<cli::LogFormat>, configured: LogFormat) {
    let filter = std::env::var("POSTROAD_LOG").ok().filter(|text| !text.is_empty());
    let filter = EnvFilter::new(filter.unwrap_or_else(|| "info".to_owned()));
    // By default a line that cannot be written is reported by `eprintln!`, which panics if standard error is a
    // file on a full disk; the request that logged the line would fail with it.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let json = match flag {
        Some(cli::LogFormat::Json) => true,
        Some(cli::LogFormat::Text) => false,
        None => configured == LogFormat::Json,
    };
    // A panic message may quote an address or a body: log only its source location.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panic");
    }));
    if json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init();
    }
}
