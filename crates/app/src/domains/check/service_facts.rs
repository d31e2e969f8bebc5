//! Facts about this installation that come from the DNS.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_net::dns::Dns;

use super::answers::{Answer, NotAskedYet, View};
use super::look_up::look_up_for;
use super::record::RecordType;
use super::service::{SendingAddress, Service, ServiceConfig, is_private};
use super::spf::{Allowed, allows_all};

#[boxed_futures]
impl Service {
    /// Asks the DNS for facts that the configuration lacks. If any look-up fails, all facts are unknown: customers'
    /// records must not be judged by incomplete facts.
    pub async fn look_up(dns: &Dns, config: &ServiceConfig) -> Self {
        let answers = look_up_for(dns, |view| drop(Self::read(view, config))).await;
        let view = View::new(&answers);
        let found = Self::read(&view, config).unwrap_or_else(|NotAskedYet| Err("not asked".to_owned()));
        let service = found.unwrap_or_else(|reason| Self::unknown(config, reason));
        if let Ok(Allowed::NotAll) = allows_all(&view, &service, &service.spf_name()) {
            tracing::warn!(
                name = service.spf_name(),
                "the SPF record that customers include does not allow exactly the addresses of this service; \
                 until it does, customers are told to list the addresses instead"
            );
        }
        service
    }

    /// The facts, or the reason why they are unknown.
    fn read(view: &View<'_>, config: &ServiceConfig) -> Result<Result<Self, String>, NotAskedYet> {
        let mut service = Self { unknown: None, ..Self::without_dns(config) };
        view.want(&service.spf_name(), RecordType::Txt);
        match seen_from_outside(view, config)? {
            Ok(VisibleSources { sources, unseen }) => (service.sources, service.unseen) = (sources, unseen),
            Err(reason) => return Ok(Err(reason)),
        }
        service.is_spf_name_usable = match allows_all(view, &service, &service.spf_name())? {
            Allowed::All => true,
            Allowed::NoRecord | Allowed::NotAll => false,
            Allowed::Unknown(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(service))
    }
}

#[derive(Default)]
struct VisibleSources {
    sources: Vec<SendingAddress>,
    unseen: Vec<SendingAddress>,
}

/// Source addresses as receivers see them. A private source address is replaced by the public addresses of its HELO
/// name. If the operating system may choose the source address, all public addresses of the host name count.
fn seen_from_outside(
    view: &View<'_>,
    config: &ServiceConfig,
) -> Result<Result<VisibleSources, String>, NotAskedYet> {
    let mut seen = VisibleSources::default();
    let mut names = Vec::new();
    if config.uses_system_address {
        view.want(config.host.as_str(), RecordType::Aaaa);
        names.extend([(&config.host, RecordType::A, None), (&config.host, RecordType::Aaaa, None)]);
    }
    for source in &config.sources {
        if is_private(source.address) {
            let record_type = if source.address.is_ipv4() { RecordType::A } else { RecordType::Aaaa };
            view.want(source.helo.as_str(), record_type);
            names.push((&source.helo, record_type, Some(source)));
        } else {
            seen.sources.push(source.clone());
        }
    }
    for (name, record_type, source) in names {
        let answer = view.ask(name.as_str(), record_type)?;
        if let Answer::Failed(reason) = answer {
            return Ok(Err(reason.clone()));
        }
        let outside: Vec<IpAddr> = answer.addresses().filter(|address| !is_private(*address)).collect();
        if let Some(source) = source.filter(|_| outside.is_empty()) {
            seen.unseen.push(source.clone());
        }
        for address in outside {
            let named = SendingAddress { address, helo: name.clone() };
            // Several sources may share one HELO name.
            if !seen.sources.contains(&named) {
                seen.sources.push(named);
            }
        }
    }
    Ok(Ok(seen))
}
