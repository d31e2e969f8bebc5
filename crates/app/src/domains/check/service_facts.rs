//! Facts about this installation that come from the DNS.

use std::net::IpAddr;

use postroad_boxed_futures::boxed_futures;
use postroad_net::dns::Dns;

use super::answers::{Answer, AnswersView, NotAskedYet};
use super::look_up::look_up_for;
use super::record::RecordType;
use super::service::{SendingAddress, Service, ServiceConfig, is_private};
use super::spf::{OwnRecordVerdict, judge_own_record};

#[boxed_futures]
impl Service {
    /// Asks the DNS for facts that the configuration lacks. If any look-up fails, all facts are unknown: customers'
    /// records must not be judged by incomplete facts.
    pub async fn look_up(dns: &Dns, config: &ServiceConfig) -> Self {
        let answers = look_up_for(dns, |view| drop(Self::from_answers(view, config))).await;
        let view = AnswersView::new(&answers);
        let found =
            Self::from_answers(&view, config).unwrap_or_else(|NotAskedYet| Err("not asked".to_owned()));
        let service = found.unwrap_or_else(|reason| Self::unknown(config, reason));
        if let Ok(OwnRecordVerdict::Incorrect) = judge_own_record(&view, &service, &service.spf_name()) {
            tracing::warn!(
                name = service.spf_name(),
                "the SPF record that customers include does not allow exactly the addresses of this service; \
                 until it does, customers are told to list the addresses instead"
            );
        }
        service
    }

    /// The facts, or the reason why they are unknown.
    fn from_answers(
        view: &AnswersView<'_>,
        config: &ServiceConfig,
    ) -> Result<Result<Self, String>, NotAskedYet> {
        let mut service = Self { unknown_reason: None, ..Self::without_dns(config) };
        view.prefetch(&service.spf_name(), RecordType::Txt);
        match find_visible_sources(view, config)? {
            Ok(VisibleSources { sources, private_sources }) => {
                (service.sources, service.private_sources) = (sources, private_sources);
            }
            Err(reason) => return Ok(Err(reason)),
        }
        service.is_spf_name_usable = match judge_own_record(view, &service, &service.spf_name())? {
            OwnRecordVerdict::Correct => true,
            OwnRecordVerdict::NoRecord | OwnRecordVerdict::Incorrect => false,
            OwnRecordVerdict::Unknown(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(service))
    }
}

#[derive(Default)]
struct VisibleSources {
    sources: Vec<SendingAddress>,
    private_sources: Vec<SendingAddress>,
}

/// Source addresses as receivers see them. A private source address is replaced by the public addresses of its HELO
/// name. If the operating system may choose the source address, all public addresses of the host name count.
fn find_visible_sources(
    view: &AnswersView<'_>,
    config: &ServiceConfig,
) -> Result<Result<VisibleSources, String>, NotAskedYet> {
    let mut visible = VisibleSources::default();
    let mut names = Vec::new();
    if config.uses_system_address {
        view.prefetch(config.host.as_str(), RecordType::Aaaa);
        names.extend([(&config.host, RecordType::A, None), (&config.host, RecordType::Aaaa, None)]);
    }
    for source in &config.sources {
        if is_private(source.address) {
            let record_type = if source.address.is_ipv4() { RecordType::A } else { RecordType::Aaaa };
            view.prefetch(source.helo.as_str(), record_type);
            names.push((&source.helo, record_type, Some(source)));
        } else {
            visible.sources.push(source.clone());
        }
    }
    for (name, record_type, source) in names {
        let answer = view.ask(name.as_str(), record_type)?;
        if let Answer::Failed(reason) = answer {
            return Ok(Err(reason.clone()));
        }
        let public_addresses: Vec<IpAddr> =
            answer.addresses().filter(|address| !is_private(*address)).collect();
        if let Some(source) = source.filter(|_| public_addresses.is_empty()) {
            visible.private_sources.push(source.clone());
        }
        for address in public_addresses {
            let named = SendingAddress { address, helo: name.clone() };
            // Several sources may share one HELO name.
            if !visible.sources.contains(&named) {
                visible.sources.push(named);
            }
        }
    }
    Ok(Ok(visible))
}
