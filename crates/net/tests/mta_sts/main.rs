//! MTA-STS against a DNS server and a web server on the loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod discovery;
mod lifetime;
mod pressure;

use std::time::Duration;

use postroad_model::{DomainName, ServerId, Timestamp};
use postroad_net::client_tls::ClientTls;
use postroad_net::dns::{Dns, DnsSettings};
use postroad_net::mta_sts::{MtaSts, MtaStsSettings, StsVerdict};
use postroad_testkit::{DnsServer, HttpsAnswer, HttpsServer, TestCertificate};

const START: Timestamp = Timestamp::from_micros(1_794_700_800_000_000);
const URL: &str = "mta-sts.example.com/.well-known/mta-sts.txt";
const RECORD: &str = "_mta-sts.example.com";
const HOST: &str = "mta-sts.example.com";

/// example.com with a policy, and a client that looks it up.
struct Scene {
    dns: DnsServer,
    web: HttpsServer,
    sts: MtaSts,
}

impl Scene {
    fn new() -> Self {
        Self::with(&MtaStsSettings { allow_private: true, ..MtaStsSettings::default() })
    }

    /// A scene with these settings, except the port.
    fn with(settings: &MtaStsSettings) -> Self {
        let certificate = TestCertificate::for_names(&[HOST]);
        let (dns, web) = (DnsServer::start(), HttpsServer::start(&certificate));
        // The resolver caches no records: each test changes them.
        dns.ttl_secs(0).negative_ttl_secs(0).a(HOST, [127, 0, 0, 1]);
        let folder = tempfile::TempDir::new().unwrap();
        let roots = folder.path().join("roots.pem");
        std::fs::write(&roots, &certificate.ca_pem).unwrap();
        let tls = ClientTls::new(Some(&roots)).unwrap();
        let resolver = Dns::new(&DnsSettings { nameservers: vec![dns.address()], ..DnsSettings::default() });
        let settings = MtaStsSettings { port: web.address().port(), ..settings.clone() };
        let sts = MtaSts::new(resolver.unwrap(), &tls, &settings);
        Self { dns, web, sts }
    }

    fn announce(&self, id: &str) -> &Self {
        self.dns.remove(RECORD).txt(RECORD, &format!("v=STSv1; id={id};"));
        self
    }

    fn publish(&self, mode: &str, mx: &str) -> &Self {
        let text = format!("version: STSv1\r\nmode: {mode}\r\nmx: {mx}\r\nmax_age: 604800\r\n");
        self.web.answer(URL, HttpsAnswer::text(&text));
        self
    }

    async fn ask(&self) -> StsVerdict {
        self.ask_after(Duration::ZERO).await
    }

    async fn ask_after(&self, time: Duration) -> StsVerdict {
        self.ask_for("example.com", ServerId(1), time).await
    }

    async fn ask_for(&self, domain: &str, server: ServerId, time: Duration) -> StsVerdict {
        self.sts.policy(&DomainName::parse(domain).unwrap(), server, START.plus(time)).await
    }

    fn fetches(&self) -> usize {
        self.web.requests(URL)
    }
}

/// Hosts of an enforced policy; panics at any other verdict.
fn enforced_hosts(verdict: &StsVerdict) -> &[String] {
    match verdict {
        StsVerdict::Enforce(policy) => &policy.mx,
        other => panic!("not enforced: {other:?}"),
    }
}
