//! Whether and how a send is tracked: by the message's own setting, else its domain's, else its server's. Decided at
//! acceptance and stored with the send, so that every attempt sends the same bytes whatever changes meanwhile.

use postroad_model::DomainName;
use postroad_store::{OneClickUnsubscribe, SendTracking, SendingDomain};

use crate::{App, Caller, Refusal};

/// Tracking options of a message; `None` leaves the decision to domain and server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackingOverride {
    pub opens: Option<bool>,
    pub clicks: Option<bool>,
}

impl App {
    pub(super) async fn decide_tracking(
        &self,
        caller: &Caller,
        from_domain: &str,
        message: TrackingOverride,
        unsubscribe: Option<OneClickUnsubscribe>,
    ) -> Result<Option<Box<SendTracking>>, Refusal> {
        let SendingDomain { tracking: domain, has_track_host } = match DomainName::parse(from_domain) {
            Ok(domain) => self.find_verified_domain(caller.server_id, domain).await?.unwrap_or_default(),
            Err(_) => SendingDomain::default(),
        };
        let server = &caller.tracking;
        let opens = message.opens.or(domain.opens).unwrap_or(server.opens);
        let clicks = message.clicks.or(domain.clicks).unwrap_or(server.clicks);
        if !opens && !clicks && unsubscribe.is_none() {
            return Ok(None);
        }
        let base_url = match &domain.host {
            Some(host) => self.tracking_base_at(host),
            None if has_track_host => self.tracking_base_at(&format!("track.{from_domain}")),
            None => self.tracking_base().to_owned(),
        };
        let excluded_hosts = if clicks { server.excluded_hosts.clone() } else { Vec::new() };
        Ok(Some(Box::new(SendTracking { base_url, opens, clicks, excluded_hosts, unsubscribe })))
    }

    /// Base URL of links on a customer's tracking host.
    fn tracking_base_at(&self, host: &str) -> String {
        match self.checker() {
            Some(checker) => checker.tracking_base(host),
            None => format!("https://{host}"),
        }
    }
}
