//! Log output on standard error: text for people, JSON for machines. `POSTROAD_LOG` sets the level, for all
//! of the service (`debug`) or for a crate (`info,postroad_delivery=debug`).

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli;
use crate::config::LogFormat;

/// Starts logging; the format of the command line overrides the configuration's.
pub(crate) fn start(command_line: Option<cli::LogFormat>, configured: LogFormat) {
    let (filter, invalid) = parse_filter(std::env::var("POSTROAD_LOG").ok().as_deref());
    // By default a line that cannot be written is reported by `eprintln!`, which panics if standard error is a
    // file on a full disk; the request that logged the line would fail with it.
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    let registry = tracing_subscriber::registry().with(filter);
    let json = match command_line {
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
        registry.with(lines.json().flatten_event(true)).init();
    } else {
        registry.with(lines.with_ansi(std::io::stderr().is_terminal()).with_target(false)).init();
    }
    if let Some(error) = invalid {
        tracing::warn!(error, "POSTROAD_LOG is not valid; logging at level info");
    }
}

/// Parses levels such as `debug` or `postroad_delivery=debug`; what they do not name is logged at level info. If the
/// text is not valid, everything is logged at level info, and the error is returned too.
fn parse_filter(text: Option<&str>) -> (Targets, Option<String>) {
    let text = text.filter(|text| !text.is_empty()).unwrap_or("info");
    let (filter, invalid) = match text.parse::<Targets>() {
        Ok(filter) => (filter, None),
        Err(error) => (Targets::new(), Some(error.to_string())),
    };
    match filter.default_level() {
        Some(_) => (filter, invalid),
        None => (filter.with_default(LevelFilter::INFO), invalid),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn targets_that_the_text_does_not_name_are_logged_at_level_info() {
        let enables = |text: Option<&str>, target: &str, level: Level| {
            let (filter, invalid) = parse_filter(text);
            assert_eq!(invalid, None, "{text:?}");
            filter.would_enable(target, &level)
        };
        for text in [None, Some(""), Some("info"), Some("postroad_app=trace")] {
            assert!(enables(text, "postroad_delivery", Level::INFO), "{text:?}");
            assert!(!enables(text, "postroad_delivery", Level::DEBUG), "{text:?}");
        }
        assert!(enables(Some("postroad_app=trace"), "postroad_app::domains", Level::TRACE));
        assert!(enables(Some("debug"), "postroad_app", Level::DEBUG));
        assert!(!enables(Some("warn,postroad_app=debug"), "postroad_delivery", Level::INFO));
    }

    #[test]
    fn levels_that_are_not_valid_are_reported() {
        let (filter, invalid) = parse_filter(Some("postroad_app=loud"));
        assert!(invalid.is_some());
        assert!(filter.would_enable("postroad_app", &Level::INFO));
    }
}
