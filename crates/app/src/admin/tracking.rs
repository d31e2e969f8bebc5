//! Admin commands for tracking: defaults of a server, overrides of a domain.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{Domain, DomainTracking, Server, ServerTracking};
use serde_json::{Value, json};

use super::AdminError;
use super::domains::{NamedDomain, admin_error, parse_name};
use crate::App;
use crate::accounts::Requester;

const EXCLUDED_HOSTS_MAX: usize = 100;

/// Omitted settings stay as they are.
#[derive(Debug, Clone)]
pub struct SetServerTracking {
    pub server: String,
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
    pub excluded_hosts: Option<Vec<String>>,
}

/// Omitted settings stay as they are.
#[derive(Debug, Clone)]
pub struct SetDomainTracking {
    pub domain: NamedDomain,
    pub opens: Option<Switch>,
    pub clicks: Option<Switch>,
    /// Empty for the installation's host.
    pub host: Option<String>,
}

/// Setting of a domain: on, off, or inherited from its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
    Default,
}

impl From<Switch> for Option<bool> {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Some(true),
            Switch::Off => Some(false),
            Switch::Default => None,
        }
    }
}

#[boxed_futures]
impl App {
    pub async fn set_server_tracking(&self, given: SetServerTracking) -> Result<Value, AdminError> {
        let server = self.find_server(&given.server).await?;
        let excluded_hosts = given.excluded_hosts.map(|hosts| check_hosts(&hosts)).transpose()?;
        let old = server.tracking.clone();
        let new = ServerTracking {
            opens: given.opens.unwrap_or(old.opens),
            clicks: given.clicks.unwrap_or(old.clicks),
            excluded_hosts: excluded_hosts.unwrap_or(old.excluded_hosts),
        };
        self.changing_server(server.id).set_server_tracking(server.id, new.clone()).await?;
        Ok(shown_server(&server, &new))
    }

    pub async fn set_domain_tracking(&self, given: SetDomainTracking) -> Result<Value, AdminError> {
        let domain = self.named_domain(&given.domain).await?;
        let old = domain.tracking.clone();
        let host = match given.host.as_deref() {
            None => old.host,
            Some("") => None,
            Some(host) => Some(parse_name(host)?.as_str().to_owned()),
        };
        let new = DomainTracking {
            opens: given.opens.map_or(old.opens, Into::into),
            clicks: given.clicks.map_or(old.clicks, Into::into),
            host,
        };
        let set = self.set_tracking_of(&Requester::command_line(), &domain, new.clone()).await;
        set.map_err(|refusal| admin_error(refusal, &domain.name))?;
        Ok(shown_domain(&domain, &new))
    }
}

/// Host names, or `*.` and a host name. A single empty text means none.
fn check_hosts(given: &[String]) -> Result<Vec<String>, AdminError> {
    if given.len() > EXCLUDED_HOSTS_MAX {
        return Err(AdminError::refused(format!("at most {EXCLUDED_HOSTS_MAX} hosts can be excluded")));
    }
    let hosts = given.iter().filter(|host| !host.is_empty()).map(|host| {
        let (star, name) = match host.strip_prefix("*.") {
            Some(name) => ("*.", name),
            None => ("", host.as_str()),
        };
        Ok(format!("{star}{}", parse_name(name)?))
    });
    hosts.collect()
}

fn shown_server(server: &Server, tracking: &ServerTracking) -> Value {
    json!({
        "id": server.id,
        "name": server.name,
        "tracking": {
            "opens": tracking.opens,
            "clicks": tracking.clicks,
            "excluded_hosts": tracking.excluded_hosts,
        },
    })
}

/// `null` means inherited from the server.
fn shown_domain(domain: &Domain, tracking: &DomainTracking) -> Value {
    json!({
        "id": domain.id,
        "name": domain.name,
        "tracking": { "opens": tracking.opens, "clicks": tracking.clicks, "host": tracking.host },
    })
}
