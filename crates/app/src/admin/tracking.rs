//! Admin commands for tracking: defaults of a server, overrides of a domain.

use postroad_boxed_futures::boxed_futures;
use postroad_store::{Domain, DomainTracking, Server};
use serde_json::{Value, json};

use super::AdminError;
use super::domains::{NamedDomain, admin_error, owner_of, parse_name};
use super::servers::update_of_settings;
use crate::accounts::Requester;
use crate::{App, ServerChangeRequest};

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
    /// Host of tracking links. An empty text selects the default: `track.<domain>` if its DNS record is verified, else
    /// the installation's host.
    pub host: Option<String>,
}

/// Setting of a domain: on, off, or inherited from the sending server.
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
    pub async fn set_server_tracking(&self, request: SetServerTracking) -> Result<Value, AdminError> {
        let id = self.find_server(&request.server).await?.id;
        // Empty names are dropped, so that a single empty name empties the list.
        let hosts =
            request.excluded_hosts.map(|hosts| hosts.into_iter().filter(|host| !host.is_empty()).collect());
        let change = ServerChangeRequest {
            track_opens: request.opens,
            track_clicks: request.clicks,
            track_excluded_hosts: hosts,
            ..ServerChangeRequest::default()
        };
        Ok(server_tracking_json(
            &self.update_server_as(&Requester::command_line(), id, update_of_settings(change)).await?,
        ))
    }

    pub async fn set_domain_tracking(&self, request: SetDomainTracking) -> Result<Value, AdminError> {
        let domain = self.named_domain(&request.domain).await?;
        let old = domain.tracking.clone();
        let host = match request.host.as_deref() {
            None => old.host,
            Some("") => None,
            Some(host) => Some(parse_name(host)?.as_str().to_owned()),
        };
        let new = DomainTracking {
            opens: request.opens.map_or(old.opens, Into::into),
            clicks: request.clicks.map_or(old.clicks, Into::into),
            host,
        };
        let (by, owner) = (Requester::command_line(), owner_of(&domain));
        let changed = self.set_domain_tracking_as(&by, owner, domain.name.as_str(), new.clone()).await;
        changed.map_err(|refusal| admin_error(refusal, &domain.name))?;
        Ok(domain_tracking_json(&domain, &new))
    }
}

fn server_tracking_json(server: &Server) -> Value {
    let tracking = &server.tracking;
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

/// JSON of a domain's tracking settings. In `opens` and `clicks`, `null` means the sending server's setting; in
/// `host`, it means `track.<domain>` if its DNS record is verified, else the installation's host.
fn domain_tracking_json(domain: &Domain, tracking: &DomainTracking) -> Value {
    json!({
        "id": domain.id,
        "name": domain.name,
        "tracking": { "opens": tracking.opens, "clicks": tracking.clicks, "host": tracking.host },
    })
}
