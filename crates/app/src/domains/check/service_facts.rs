//! Facts about this installation that only the DNS knows.

use std::net::IpAddr;

use postroad_net::dns::Dns;

use super::answers::{Addresses, Unasked, View};
use super::look_up::look_up_for;
use super::record::RecordType;
use super::service::{SendingAddress, Service, ServiceConfig};
use super::spf::allows_all;

impl Service {
    /// Asks the DNS for what the configuration does not say. On DNS trouble the careful choice is taken: addresses
    /// instead of the include.
    pub async fn look_up(dns: &Dns, config: &ServiceConfig) -> Self {
        let answers = look_up_for(dns, |view| drop(Self::read(view, config))).await;
        let careful = || Self::without_dns(config);
        Self::read(&View::new(&answers), config).unwrap_or_else(|Unasked| careful())
    }

    fn read(view: &View<'_>, config: &ServiceConfig) -> Result<Self, Unasked> {
        let mut service = Self::without_dns(config);
        view.want(&service.spf_name(), RecordType::Txt);
        if service.sources.is_empty()
            && let Addresses::Found(addresses) = view.addresses(service.host.as_str())?
        {
            let source = |address| SendingAddress { address, helo: config.host.clone() };
            service.sources = addresses.into_iter().map(source).collect();
        }
        service.sources = seen_from_outside(view, service.sources)?;
        service.is_spf_name_usable = allows_all(view, &service, &service.spf_name())?;
        Ok(service)
    }
}

/// Behind address translation receivers see the address of the name that a source greets with, not its own.
fn seen_from_outside(view: &View<'_>, sources: Vec<SendingAddress>) -> Result<Vec<SendingAddress>, Unasked> {
    let mut seen = Vec::with_capacity(sources.len());
    for source in sources {
        let record_type = if source.address.is_ipv4() { RecordType::A } else { RecordType::Aaaa };
        let outside = if is_translated(source.address) {
            view.ask(source.helo.as_str(), record_type)?.addresses().collect()
        } else {
            Vec::new()
        };
        if outside.is_empty() {
            seen.push(source);
        } else {
            let named = |address| SendingAddress { address, helo: source.helo.clone() };
            seen.extend(outside.into_iter().map(named));
        }
    }
    Ok(seen)
}

/// RFC 1918, RFC 6598, RFC 4193.
fn is_translated(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}
