//! Log output on standard error: text for people, JSON for machines. `POSTROAD_LOG` sets the level, for all
//! of the service (`debug`) or for a crate (`info,postroad_delivery=debug`).

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli;
use crate::config::LogFormat;

/// Starts logging; the format of the command line overrides the configuration's.
pub(crate) fn start(flag: Option<cli::LogFormat>, configured: LogFormat) {
    let text = std::env::var("POSTROAD_LOG").ok().filter(|text| !text.is_empty());
    let parsed = text.as_deref().map(str::parse::<Targets>);
    let invalid = parsed.as_ref().and_then(|parsed| parsed.as_ref().err()).map(ToString::to_string);
    let filter = parsed.and_then(Result::ok).unwrap_or(Targets::new().with_default(LevelFilter::INFO));
    // By default a line that cannot be written is reported by `eprintln!`, which panics if standard error is a
    // file on a full disk; the request that logged the line would fail with it.
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
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
        builder.json().flatten_event(true).finish().with(filter).init();
    } else {
        let is_terminal = std::io::stderr().is_terminal();
        builder.with_ansi(is_terminal).with_target(false).finish().with(filter).init();
    }
    if let Some(error) = invalid {
        tracing::warn!(error, "POSTROAD_LOG is not valid; logging at level info");
    }
}
