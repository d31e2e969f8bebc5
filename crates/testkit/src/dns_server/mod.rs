//! Authoritative DNS server on the loopback, over UDP and TCP, with records and failures set by the test.
//!
//! It runs on its own thread, so that a test may block and daemons in other processes may query it. Changes
//! apply from the next query on.

mod failure;
mod sockets;
mod zone;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread;

use hickory_proto::rr::rdata::{A, AAAA, CNAME, MX, NS, PTR, TLSA, TXT};
use hickory_proto::rr::{Name, RData, RecordSet};
use hickory_proto::serialize::txt::Parser;
use parking_lot::Mutex;
use tokio::sync::watch;

pub use failure::Failure;
pub use hickory_proto::rr::RecordType;

use sockets::Sockets;
use zone::Zone;

/// Running server; dropping it closes the port.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    stop: watch::Sender<bool>,
}

impl DnsServer {
    /// Starts without names: every answer is NXDOMAIN.
    pub fn start() -> Self {
        let sockets = Sockets::bind();
        let address = sockets.address();
        let zone = Arc::new(Mutex::new(Zone::default()));
        let (stop, mut stopped) = watch::channel(false);
        let for_thread = Arc::clone(&zone);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a small runtime needs only a few file descriptors");
            runtime.block_on(async {
                tokio::select! {
                    () = sockets.serve(for_thread) => {}
                    // Returning ends the runtime with all its answers. Dropping the sender has the same effect.
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
        });
        Self { address, zone, stop }
    }

    /// Address for both UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn mx(&self, domain: &str, preference: u16, host: &str) -> &Self {
        self.record(domain, RData::MX(MX::new(preference, name_of(host))))
    }

    /// Adds a null MX: the domain exists and accepts no mail (RFC 7505).
    pub fn null_mx(&self, domain: &str) -> &Self {
        self.mx(domain, 0, ".")
    }

    pub fn a(&self, host: &str, ip: impl Into<Ipv4Addr>) -> &Self {
        self.record(host, RData::A(A(ip.into())))
    }

    pub fn aaaa(&self, host: &str, ip: impl Into<Ipv6Addr>) -> &Self {
        self.record(host, RData::AAAA(AAAA(ip.into())))
    }

    pub fn cname(&self, alias: &str, target: &str) -> &Self {
        self.record(alias, RData::CNAME(CNAME(name_of(target))))
    }

    /// Adds a TXT record, split into strings of 255 bytes as the wire format requires.
    pub fn txt(&self, name: &str, text: &str) -> &Self {
        let strings = text.as_bytes().chunks(255).collect();
        self.record(name, RData::TXT(TXT::from_bytes(strings)))
    }

    /// Adds a TXT record of these strings, each of at most 255 bytes.
    pub fn txt_strings(&self, name: &str, strings: &[&[u8]]) -> &Self {
        self.record(name, RData::TXT(TXT::from_bytes(strings.to_vec())))
    }

    pub fn ns(&self, domain: &str, host: &str) -> &Self {
        self.record(domain, RData::NS(NS(name_of(host))))
    }

    /// Adds a PTR record of an address.
    pub fn ptr(&self, ip: impl Into<IpAddr>, host: &str) -> &Self {
        let name = Name::from(ip.into()).to_ascii();
        self.record(&name, RData::PTR(PTR(name_of(host))))
    }

    /// Adds a TLSA record of a host's port: usage, selector, matching type and data.
    pub fn tlsa(
        &self,
        host: &str,
        port: u16,
        (usage, selector, matching): (u8, u8, u8),
        data: &[u8],
    ) -> &Self {
        let data = TLSA::new(usage.into(), selector.into(), matching.into(), data.to_vec());
        self.record(&format!("_{port}._tcp.{host}"), RData::TLSA(data))
    }

    /// Answers like a validating resolver: sets the AD bit for clients that request it, except for `unsigned` names.
    pub fn validating(&self) -> &Self {
        self.change(|zone| zone.is_validating = true)
    }

    /// Makes this name and names below it count as not signed.
    pub fn unsigned(&self, name: &str) -> &Self {
        self.change(|zone| zone.unsigned.push(name_of(name)))
    }

    /// Adds the records of a zone file, read by hickory's parser.
    pub fn zone(&self, text: &str) -> &Self {
        let parsed = Parser::new(text.to_owned(), None, Some(Name::root())).parse();
        let (_, sets) = parsed.unwrap_or_else(|error| panic!("not a zone file: {error}\n{text}"));
        for record in sets.values().flat_map(RecordSet::records_without_rrsigs) {
            self.change(|zone| zone.add(record.name.clone(), record.data.clone()));
        }
        self
    }

    /// Removes the records of a name; its failures stay.
    pub fn remove(&self, name: &str) -> &Self {
        self.change(|zone| zone.remove(&name_of(name)))
    }

    /// Sets the TTL of records that are added from now on; 300 seconds by default.
    pub fn ttl_secs(&self, secs: u32) -> &Self {
        self.change(|zone| zone.record_ttl_secs = secs)
    }

    /// Sets the TTL of NXDOMAIN and empty answers; 300 seconds by default.
    pub fn negative_ttl_secs(&self, secs: u32) -> &Self {
        self.change(|zone| zone.negative_ttl_secs = secs)
    }

    /// Fails queries of every type about `name`, whether it has records or not.
    pub fn fail(&self, name: &str, failure: Failure) -> &Self {
        self.change(|zone| zone.fail(name_of(name), None, failure))
    }

    /// Fails queries of one type; overrides a failure for every type.
    pub fn fail_type(&self, name: &str, record_type: RecordType, failure: Failure) -> &Self {
        self.change(|zone| zone.fail(name_of(name), Some(record_type), failure))
    }

    /// Ends every failure of a name.
    pub fn clear_failures(&self, name: &str) -> &Self {
        self.change(|zone| zone.clear_failures(&name_of(name)))
    }

    /// Number of queries over UDP and TCP, answered or not.
    pub fn questions(&self, name: &str, record_type: RecordType) -> usize {
        let counts = self.lock().query_counts(&name_of(name), record_type);
        counts.udp + counts.tcp
    }

    pub fn tcp_questions(&self, name: &str, record_type: RecordType) -> usize {
        self.lock().query_counts(&name_of(name), record_type).tcp
    }

    fn record(&self, name: &str, data: RData) -> &Self {
        self.change(|zone| zone.add(name_of(name), data))
    }

    fn change(&self, change: impl FnOnce(&mut Zone)) -> &Self {
        change(&mut self.lock());
        self
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Zone> {
        self.zone.lock()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Labels may contain any bytes but the dot, as on the wire. Panics if they are too long, which is an error of
/// the test.
fn name_of(text: &str) -> Name {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let name = Name::from_labels(labels.map(str::as_bytes));
    let mut name = name.unwrap_or_else(|error| panic!("{text} is not a DNS name: {error}"));
    name.set_fqdn(true);
    name
}
