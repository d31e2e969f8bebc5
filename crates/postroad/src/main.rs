//! The binary: command line, configuration, wiring, signals. Reads as a table of contents; the work is done in the
//! crates of lower layers.

#![warn(clippy::print_stderr)] // use `terminal`, which escapes what strangers wrote

mod cli;
mod commands;
mod config;
mod control;
mod feed;
mod file_limit;
mod listen;
mod logging;
mod node_report;
mod own_urls;
mod queue;
mod secrets_key;
mod service;
mod signals;
mod smtp_listeners;
mod terminal;
mod trace;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// Blocking work may take this long after everything else has ended.
const BLOCKING_THREADS_TIME_MAX: Duration = Duration::from_millis(500);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let json = cli.command.wants_json();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::fail(&format!("{error:#}"), json);
            ExitCode::FAILURE
        }
    }
}

/// Answers arguments that cannot be parsed, or a request for help. No command is parsed yet, so the arguments
/// themselves are searched for `--json`.
fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        terminal::fail(error.render().to_string().trim_end(), true);
    } else {
        // A closed pipe is not an error.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run(cli: cli::Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run_command(cli));
    // Dropping the runtime would wait for every blocked thread.
    runtime.shutdown_timeout(BLOCKING_THREADS_TIME_MAX);
    result
}

async fn run_command(cli: cli::Cli) -> anyhow::Result<()> {
    match cli.command {
        cli::Command::Dev(args) => commands::dev::run(args, cli.log_format).await,
        cli::Command::Serve(args) => commands::serve::run(args, cli.log_format).await,
        cli::Command::CheckConfig(args) => commands::config::check(&args),
        cli::Command::Config { command: cli::ConfigCommand::Default } => {
            commands::config::print_default();
            Ok(())
        }
        cli::Command::Admin(args) => commands::admin::run(args).await,
        cli::Command::Api(args) => commands::api_call::run(args).await,
        cli::Command::Audit(args) => commands::audit::run(args).await,
        cli::Command::Completions { shell } => commands::shell_help::completions(shell),
        cli::Command::Man => commands::shell_help::manual(),
        cli::Command::Queue(args) => commands::queue::run(args).await,
        cli::Command::Trace(args) => commands::trace::run(args).await,
        cli::Command::Webhook { command: cli::WebhookCommand::Listen(args) } => {
            commands::webhook_listen::run(args).await
        }
        cli::Command::Explain { command: cli::ExplainCommand::Reply { text, phase, json } } => {
            commands::explain::reply(&text, phase.map(Into::into), json)
        }
        cli::Command::Explain { command: cli::ExplainCommand::Bounce { file, json } } => {
            commands::explain_bounce::run(&file, json)
        }
    }
}
