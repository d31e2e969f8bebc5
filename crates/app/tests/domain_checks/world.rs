//! A service with two addresses, a customer's domain, and the DNS that both live in.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Duration;

use postroad_app::domains::check::{
    self, DkimRecord, ExpectedRecords, Purpose, RecordCheck, RecordStatus, SendingAddress, Service,
    ServiceConfig,
};
use postroad_mail::{DkimKey, dkim_txt};
use postroad_model::DomainName;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_testkit::DnsServer;

pub(crate) const HOST: &str = "post.example";
pub(crate) const DOMAIN: &str = "shop.example";
pub(crate) const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(crate) const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10);
pub(crate) const SELECTOR_NAME: &str = "pr-one._domainkey.shop.example";

pub(crate) struct World {
    pub(crate) server: DnsServer,
    pub(crate) timeout: Duration,
    domain: DomainName,
    keys: Vec<DkimRecord>,
}

impl World {
    /// The domain exists and has no records of ours. `spf.<host>` is right.
    pub(crate) fn new() -> Self {
        let server = DnsServer::start();
        server.ns(DOMAIN, "ns.shop.example").a(HOST, V4).aaaa(HOST, V6);
        server.txt(&format!("spf.{HOST}"), "v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -all");
        server.a(&format!("track.{HOST}"), V4).mx(&format!("rp.{HOST}"), 10, HOST);
        let keys = vec![key_record("pr-one", key_one(), true)];
        Self { server, timeout: Duration::from_secs(5), domain: name(DOMAIN), keys }
    }

    pub(crate) fn with_domain(mut self, domain: &str) -> Self {
        self.domain = name(domain);
        self
    }

    pub(crate) fn with_key(mut self, selector: &str, key: &DkimKey) -> Self {
        self.keys.push(key_record(selector, key, false));
        self
    }

    pub(crate) fn dns(&self) -> Dns {
        let nameservers = vec![self.server.address()];
        let settings =
            DnsSettings { nameservers, timeout: self.timeout, attempts: 1, ..DnsSettings::default() };
        Dns::for_checks(&settings).expect("name servers are given")
    }

    pub(crate) fn config() -> ServiceConfig {
        let helo = name("out.post.example");
        let source = |address| SendingAddress { address, helo: helo.clone() };
        ServiceConfig {
            host: name(HOST),
            sources: vec![source(V4.into()), source(V6.into())],
            uses_system_address: false,
            takes_reports: true,
        }
    }

    pub(crate) async fn checks(&self) -> Vec<RecordCheck> {
        self.checks_with(&Self::config()).await
    }

    /// Checks with another configuration of the installation.
    pub(crate) async fn checks_with(&self, config: &ServiceConfig) -> Vec<RecordCheck> {
        let dns = self.dns();
        let service = Service::look_up(&dns, config).await;
        check::check(&dns, &ExpectedRecords::of(&self.domain, &service, &self.keys)).await
    }

    /// The first record for a purpose.
    pub(crate) async fn check(&self, purpose: Purpose) -> RecordCheck {
        self.checks()
            .await
            .into_iter()
            .find(|check| check.purpose == purpose)
            .expect("each purpose has a record")
    }
}

pub(crate) fn verdict(check: &RecordCheck) -> (RecordStatus, Option<&str>) {
    (check.status, check.hint.as_deref())
}

pub(crate) fn key_one() -> &'static DkimKey {
    static KEY: OnceLock<DkimKey> = OnceLock::new();
    KEY.get_or_init(|| DkimKey::generate().expect("keys can be generated"))
}

pub(crate) fn key_two() -> &'static DkimKey {
    static KEY: OnceLock<DkimKey> = OnceLock::new();
    KEY.get_or_init(|| DkimKey::generate().expect("keys can be generated"))
}

/// Parses a name as an operator or a customer enters it.
pub(crate) fn name(entered: &str) -> DomainName {
    DomainName::parse_entered(entered).expect("tests have good names")
}

pub(crate) fn txt_of(key: &DkimKey) -> String {
    dkim_txt(key.public_spki_der())
}

fn key_record(selector: &str, key: &DkimKey, required: bool) -> DkimRecord {
    DkimRecord { selector: selector.to_owned(), public_spki_der: key.public_spki_der().to_vec(), required }
}
