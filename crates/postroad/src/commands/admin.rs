//! `postroad admin …`: turns arguments into a command, executes it and prints the answer.

use std::fmt::Write;

use anyhow::bail;
use postroad_app::admin::{Command, DaysCeiling, NewAccountKeyCommand, NewKey, SetServerTracking};
use serde_json::Value;

use super::admin_client::AdminClient;
use super::{domains, load_config, suppressions};
use crate::cli::{
    AccountCommand, AccountKeyCommand, AdminArgs, AdminCommand, KeyCommand, NewKeyArgs, OnOff,
    OperatorKeyCommand, OrNone, PoolCommand, ServerCommand, SuppressionCommand,
};
use crate::terminal::{one_line, print};

pub(crate) async fn run(args: AdminArgs) -> anyhow::Result<()> {
    let file = args.config.as_deref().filter(|_| args.data_dir.is_none());
    let mut config = load_config(file, args.json)?;
    if let Some(data_dir) = args.data_dir {
        config.data_dir = data_dir;
    }
    let mut client = AdminClient::new(config, args.json);
    let answer = match request_of(args.command)? {
        Request::One(command) => client.execute(command).await?,
        Request::Suppressions(given) => match suppressions::run(&mut client, given).await? {
            Some(answer) => answer,
            None => return Ok(()),
        },
    };
    let text = if args.json { answer.to_string() } else { readable(&answer) };
    print(text.trim_end());
    // An import takes what it can, and says so when that was not all.
    if let Some(failed) = answer["failed"].as_u64().filter(|failed| *failed > 0) {
        bail!("{failed} of {} lines were not imported", answer["lines"]);
    }
    Ok(())
}

/// What arguments ask for.
enum Request {
    One(Command),
    /// May be more than one command: a file goes in parts.
    Suppressions(SuppressionCommand),
}

fn request_of(given: AdminCommand) -> anyhow::Result<Request> {
    Ok(Request::One(match given {
        AdminCommand::Account(account) => match account {
            AccountCommand::Create { name } => Command::AccountCreate { name },
            AccountCommand::List => Command::AccountList,
            AccountCommand::Suspend { name, reason } => Command::AccountSuspend { name, reason },
            AccountCommand::Resume { name } => Command::AccountResume { name },
        },
        AdminCommand::Server(server) => match server {
            ServerCommand::Create { name, account, mode } => Command::ServerCreate { name, account, mode },
            ServerCommand::List => Command::ServerList,
            ServerCommand::Suspend { name, reason } => Command::ServerSuspend { server: name, reason },
            ServerCommand::Resume { name } => Command::ServerResume { server: name },
            ServerCommand::SetMode { name, mode } => Command::ServerSetMode { server: name, mode },
            ServerCommand::SetPool { name, pool } => Command::ServerSetPool { server: name, pool },
            ServerCommand::SetRate { name, rate } => {
                Command::ServerSetRate { server: name, rate: rate.and_then(|given| given.0) }
            }
            ServerCommand::SetHourlyLimit { name, limit } => {
                Command::ServerSetHourlyLimit { server: name, limit: limit.and_then(|given| given.0) }
            }
            ServerCommand::SetRetention { name, bodies, messages } => Command::ServerSetRetention {
                server: name,
                bodies_days: bodies.map(days_ceiling),
                messages_days: messages.map(days_ceiling),
            },
            ServerCommand::SetTracking { name, opens, clicks, exclude_hosts } => {
                Command::ServerSetTracking(SetServerTracking {
                    server: name,
                    opens: opens.map(OnOff::is_on),
                    clicks: clicks.map(OnOff::is_on),
                    excluded_hosts: (!exclude_hosts.is_empty()).then_some(exclude_hosts),
                })
            }
        },
        AdminCommand::Domain(domain) => domains::command(domain)?,
        AdminCommand::Key(key) => match key {
            KeyCommand::Create { server, name, scope, test, hold, allow, address, login, expires_at } => {
                Command::KeyCreate(NewKey {
                    server,
                    name,
                    scope,
                    test,
                    hold,
                    allow,
                    address,
                    login,
                    expires_at,
                })
            }
            KeyCommand::List { server } => Command::KeyList { server },
            KeyCommand::Revoke { id } => Command::KeyRevoke { id },
            KeyCommand::Rotate { id, grace } => Command::KeyRotate { id, grace_seconds: grace.as_secs() },
        },
        AdminCommand::AccountKey(key) => match key {
            AccountKeyCommand::Create { account, key } => new_account_key(Some(account), key),
            AccountKeyCommand::List { account } => Command::AccountKeyList { account: Some(account) },
            AccountKeyCommand::Revoke { id, account } => {
                Command::AccountKeyRevoke { account: Some(account), id }
            }
        },
        AdminCommand::OperatorKey(key) => match key {
            OperatorKeyCommand::Create(key) => new_account_key(None, key),
            OperatorKeyCommand::List => Command::AccountKeyList { account: None },
            OperatorKeyCommand::Revoke { id } => Command::AccountKeyRevoke { account: None, id },
        },
        AdminCommand::Pool(pool) => match pool {
            PoolCommand::Create { name, shared } => Command::PoolCreate { name, shared },
            PoolCommand::List => Command::PoolList,
            PoolCommand::Delete { name } => Command::PoolDelete { name },
            PoolCommand::AddAddress { pool, address, helo, weight, warm_up } => {
                Command::PoolAddAddress { pool, address, helo, weight, warm_up }
            }
            PoolCommand::RemoveAddress { address } => Command::PoolRemoveAddress { address },
            PoolCommand::WarmUp { address, state } => Command::PoolWarmUp { address, state },
            PoolCommand::History { address } => Command::PoolHistory { address },
        },
        AdminCommand::Suppression(suppression) => return Ok(Request::Suppressions(suppression)),
        AdminCommand::Reports { domain } => Command::Reports { domain },
        AdminCommand::Maintenance { state } => Command::Maintenance { on: state.is_on() },
    }))
}

fn new_account_key(account: Option<String>, key: NewKeyArgs) -> Command {
    let NewKeyArgs { name, scopes, allow, expires_at } = key;
    Command::AccountKeyCreate(NewAccountKeyCommand { account, name, scopes, allow, expires_at })
}

fn days_ceiling(given: OrNone<u32>) -> DaysCeiling {
    given.0.map_or(DaysCeiling::None, DaysCeiling::Days)
}

/// For people: one `name: value` line each, lists with a blank line between the entries.
pub(super) fn readable(answer: &Value) -> String {
    match answer {
        Value::Array(entries) if entries.is_empty() => "(none)".to_owned(),
        // To be piped into a zone file.
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("zone") => {
            fields["zone"].as_str().unwrap_or_default().to_owned()
        }
        Value::Array(entries) => entries.iter().map(|entry| fields(entry, 0)).collect::<Vec<_>>().join("\n"),
        other => fields(other, 0),
    }
}

fn fields(value: &Value, indent: usize) -> String {
    let Value::Object(fields) = value else { return format!("{value}\n") };
    let mut text = String::new();
    for (name, value) in fields {
        let margin = " ".repeat(indent);
        // Writing into a String cannot fail.
        let _ = match value {
            Value::Null => Ok(()),
            Value::String(string) => writeln!(text, "{margin}{name}: {}", one_line(string)),
            Value::Array(entries) if entries.iter().any(Value::is_object) => {
                let entries = entries.iter().map(|entry| self::fields(entry, indent + 2)).collect::<Vec<_>>();
                writeln!(text, "{margin}{name}:\n{}", entries.join("\n").trim_end())
            }
            Value::Array(entries) if entries.is_empty() => Ok(()),
            other => writeln!(text, "{margin}{name}: {other}"),
        };
    }
    text
}
