//! The command line, a file for each command; `commands` executes them.

mod admin;
mod api_call;
mod audit;
mod dev;
mod explain;
mod installation;
mod queue;
mod serve;
mod trace;
mod values;
mod webhook;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use admin::{AccountCommand, AdminArgs, AdminCommand, SuppressionCommand};
pub(crate) use api_call::ApiArgs;
pub(crate) use audit::{AuditArgs, AuditCommand, AuditExportArgs, AuditVerifyArgs};
pub(crate) use dev::DevArgs;
pub(crate) use explain::ExplainCommand;
pub(crate) use installation::InstallationArgs;
pub(crate) use queue::{QueueArgs, QueueCommand};
pub(crate) use serve::{CheckConfigArgs, ConfigCommand, ServeArgs};
pub(crate) use trace::TraceArgs;
pub(crate) use webhook::{ListenArgs, WebhookCommand};

/// Transactional email you run yourself: applications hand in mail over HTTP or SMTP, Postroad stores, signs and
/// delivers it.
#[derive(Debug, Parser)]
#[command(name = "postroad", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Format of log lines on standard error [default: the configuration's, or text]
    #[arg(long, global = true, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it out: everything on this machine only, no configuration, ready in a second
    Dev(DevArgs),
    /// Run the service with a configuration file
    Serve(ServeArgs),
    /// Check a configuration and list everything that is wrong with it
    CheckConfig(CheckConfigArgs),
    /// Configuration files
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Accounts, servers, domains, API keys, maintenance; works while the service runs
    Admin(AdminArgs),
    /// Call an endpoint of the HTTP API, with the key from the environment or a profile
    Api(ApiArgs),
    /// The log of changes: who changed what, and when
    Audit(AuditArgs),
    /// The queue of messages to be delivered: look at it, retry, cancel, suspend and resume
    Queue(QueueArgs),
    /// The history of a message, with its SMTP transcripts
    Trace(TraceArgs),
    /// Webhooks while you build their receiver
    Webhook {
        #[command(subcommand)]
        command: WebhookCommand,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// Explain a mail server's reply or a returned message
    Explain {
        #[command(subcommand)]
        command: ExplainCommand,
    },
}

impl Command {
    /// Whether errors are printed as JSON too.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Dev(args) => args.json,
            Self::Serve(args) => args.json,
            Self::CheckConfig(args) => args.json,
            Self::Config { .. } | Self::Completions { .. } | Self::Man => false,
            Self::Admin(args) => args.installation.json,
            Self::Api(_) => true,
            Self::Audit(args) => args.installation.json,
            Self::Queue(args) => args.installation.json,
            Self::Trace(args) => args.installation.json,
            Self::Webhook { command: WebhookCommand::Listen(args) } => args.json,
            Self::Explain {
                command: ExplainCommand::Reply { json, .. } | ExplainCommand::Bounce { json, .. },
            } => *json,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Collects the arguments and subcommands of `command`, at any depth, that have no help text.
    fn collect_without_help(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            if argument.get_help().is_none_or(|help| help.to_string().trim().is_empty()) {
                found.push(format!("{path} {}", argument.get_id()));
            }
        }
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            if below.get_about().is_none() && below.get_name() != "help" {
                found.push(path.clone());
            }
            collect_without_help(below, &path, found);
        }
    }

    #[test]
    fn every_command_and_argument_has_a_help_text() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        collect_without_help(&command, "postroad", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
