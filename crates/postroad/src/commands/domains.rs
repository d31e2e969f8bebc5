//! `postroad admin domain …`: from arguments to commands.

use anyhow::Context;
use postroad_app::admin::{Command, NamedDomain, SetDomainTracking};
use postroad_app::domains::ImportedDkimKey;

use crate::cli::{DomainArgs, DomainCommand, KeyArgs, OwnerArgs};

pub(super) fn command(given: DomainCommand) -> anyhow::Result<Command> {
    Ok(match given {
        DomainCommand::Create { name, server, account, key } => {
            Command::DomainCreate { domain: NamedDomain { name, server, account }, key: read_key(key)? }
        }
        DomainCommand::List { server, account } => Command::DomainList { server, account },
        DomainCommand::Verify { domain } => Command::DomainVerify(named(domain)),
        DomainCommand::SetVerified { domain, no } => {
            Command::DomainSetVerified { domain: named(domain), verified: !no }
        }
        DomainCommand::RotateDkim { domain, key } => {
            Command::DomainRotateDkim { domain: named(domain), key: read_key(key)? }
        }
        DomainCommand::SetTracking { domain, opens, clicks, host } => {
            Command::DomainSetTracking(SetDomainTracking {
                domain: named(domain),
                opens: opens.map(Into::into),
                clicks: clicks.map(Into::into),
                host,
            })
        }
        DomainCommand::Records { name: Some(name), owner, zone, .. } => {
            let domain = named(DomainArgs { name, owner });
            if zone { Command::DomainZone(domain) } else { Command::DomainRecords(domain) }
        }
        DomainCommand::Records { name: None, zone: true, .. } => Command::InstallationZone,
        DomainCommand::Records { name: None, .. } => Command::InstallationRecords,
        DomainCommand::Zone { domain } => Command::DomainZone(named(domain)),
        DomainCommand::Reports { domain, from, to } => {
            Command::DomainReports { domain: named(domain), from, to }
        }
        DomainCommand::SetHost { host } => Command::InstallationSetHost { host },
        DomainCommand::Delete { domain } => Command::DomainDelete(named(domain)),
    })
}

fn named(given: DomainArgs) -> NamedDomain {
    let DomainArgs { name, owner: OwnerArgs { server, account } } = given;
    NamedDomain { name, server, account }
}

fn read_key(given: KeyArgs) -> anyhow::Result<ImportedDkimKey> {
    let read = |file: std::path::PathBuf| {
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    Ok(ImportedDkimKey { private_key: given.private_key.map(read).transpose()?, selector: given.selector })
}
