//! Facts about this installation that only the DNS knows.

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
        service.is_spf_name_usable = allows_all(view, &service, &service.spf_name())?;
        Ok(service)
    }
}
