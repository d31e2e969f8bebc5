//! `postroad queue …`: turns arguments into a command and prints the answer.

use anyhow::bail;
use postroad_delivery::QueueAdmin;
use postroad_store::Role;

use super::admin::readable;
use super::load_config;
use crate::cli::{QueueArgs, QueueSubcommand};
use crate::control::{self, Request};
use crate::queue::{QueueCommand, execute};
use crate::service;
use crate::terminal::print;

pub(crate) async fn run(args: QueueArgs) -> anyhow::Result<()> {
    let command = command(args.command);
    let file = args.config.as_deref().filter(|_| args.data_dir.is_none());
    let mut config = load_config(file, args.json)?;
    if let Some(data_dir) = args.data_dir {
        config.data_dir = data_dir;
    }
    let request = Request::Queue(command.clone());
    let answer = if let Some(answer) = control::send(&config.data_dir, &request).await? {
        answer
    } else {
        service::check_installation(&config)?;
        let (app, store) = service::open_app(&config, Role::Tool).await?;
        execute(&app, &QueueAdmin::without_engine(store), command).await?
    };
    let text = if args.json { answer.to_string() } else { readable(&answer) };
    print(text.trim_end());
    let results = answer.as_array().map_or(&[][..], Vec::as_slice);
    let failed = results.iter().filter(|result| result["done"] == false).count();
    if failed > 0 {
        bail!("{failed} of {} messages were left as they are", results.len());
    }
    Ok(())
}

fn command(given: QueueSubcommand) -> QueueCommand {
    match given {
        QueueSubcommand::List { server, domain, limit } => QueueCommand::List { server, domain, limit },
        QueueSubcommand::Show { id } => QueueCommand::Show { id },
        QueueSubcommand::Stats => QueueCommand::Stats,
        QueueSubcommand::Retry { ids } => QueueCommand::Retry { ids },
        QueueSubcommand::Cancel { ids } => QueueCommand::Cancel { ids },
        QueueSubcommand::Suspend { scope, reason, for_, slow } => QueueCommand::Suspend {
            scope,
            reason,
            for_seconds: for_.map(|duration| duration.as_secs()),
            per_minute: slow,
        },
        QueueSubcommand::Resume { scope } => QueueCommand::Resume { scope },
    }
}
