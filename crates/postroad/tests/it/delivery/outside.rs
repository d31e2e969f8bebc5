//! Simulated internet: a name server, and mail hosts at their own loopback addresses, all on one port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};

use postroad_testkit::postgres::Database;
use postroad_testkit::smtp_peer::Script;
use postroad_testkit::{DnsServer, SmtpPeer};
use serde_json::{Value, json};

use crate::world::{Engine, World, good_but};

/// The internet around the service of a test.
pub(crate) struct Outside {
    pub(crate) dns: DnsServer,
    /// Reserves the port; no mail is sent to it.
    reserved: TcpListener,
    next_address: AtomicU8,
}

impl Outside {
    pub(crate) fn new() -> Self {
        let reserved = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        Self { dns: DnsServer::start(), reserved, next_address: AtomicU8::new(2) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.reserved.local_addr().expect("a bound socket has an address").port()
    }

    /// A loopback address that nobody has, and where nobody listens.
    pub(crate) fn new_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, self.next_address.fetch_add(1, Ordering::Relaxed))
    }

    /// Starts a mail host at a new address.
    pub(crate) fn host(&self, name: &str, script: Script) -> SmtpPeer {
        let address = self.new_address();
        self.dns.a(name, address);
        self.peer_at(IpAddr::V4(address), script)
    }

    pub(crate) fn host_v6(&self, name: &str, script: Script) -> SmtpPeer {
        self.dns.aaaa(name, Ipv6Addr::LOCALHOST);
        self.peer_at(IpAddr::V6(Ipv6Addr::LOCALHOST), script)
    }

    pub(crate) fn peer_at(&self, address: IpAddr, script: Script) -> SmtpPeer {
        SmtpPeer::start_at(SocketAddr::new(address, self.port()), script)
    }

    /// Publishes a domain with one mail host, `mx.` before its name, and starts the host.
    pub(crate) fn site(&self, domain: &str, script: Script) -> SmtpPeer {
        let host = format!("mx.{domain}");
        self.dns.mx(domain, 10, &host);
        self.host(&host, script)
    }

    /// Starts a service that knows only this internet; `envs` override the settings of these tests.
    pub(crate) fn start(&self, engine: Engine, envs: &[(&str, &str)]) -> World {
        self.with_envs(envs, |all| World::start_with(engine, all))
    }

    /// Like `start`, on the PostgreSQL database at `url`.
    pub(crate) fn start_on(&self, url: &str, database: Option<Database>, envs: &[(&str, &str)]) -> World {
        self.with_envs(envs, |all| World::start_on(Some(url), database, all))
    }

    fn with_envs(&self, envs: &[(&str, &str)], start: impl FnOnce(&[(&str, &str)]) -> World) -> World {
        let (port, nameserver) = (self.port().to_string(), self.dns.address().to_string());
        let mut all = vec![
            ("POSTROAD_DELIVERY_ALLOW_PRIVATE_DESTINATIONS", "true"),
            ("POSTROAD_DELIVERY_SMTP_PORT", port.as_str()),
            ("POSTROAD_DNS_NAMESERVERS", nameserver.as_str()),
            ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "300ms"),
        ];
        all.extend_from_slice(envs);
        start(&all)
    }
}

/// A send to one address.
pub(crate) fn to(address: &str) -> Value {
    good_but(json!({ "to": [address] }))
}
