//! The DNS client against an authoritative server on the loopback that can fail in every way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod addresses;
mod caching;
mod failures;
mod last_known;
mod mx_plans;
mod records;
mod tlsa;

use std::time::Duration;

use postroad_model::DomainName;
use postroad_net::dns::{Dns, DnsSettings, MxFailure, MxPlan};
use postroad_testkit::DnsServer;

/// Client with long timeouts, for a busy machine.
fn patient(server: &DnsServer) -> Dns {
    Dns::new(&settings(server)).unwrap()
}

/// Client with short timeouts, for queries without an answer; long enough for a busy machine to answer the others.
fn hurried(server: &DnsServer) -> Dns {
    let timeout = Duration::from_millis(500);
    Dns::new(&DnsSettings { timeout, attempts: 2, ..settings(server) }).unwrap()
}

fn settings(server: &DnsServer) -> DnsSettings {
    DnsSettings { nameservers: vec![server.address()], ..DnsSettings::default() }
}

fn domain(name: &str) -> DomainName {
    DomainName::parse(name).unwrap()
}

async fn plan(dns: &Dns, name: &str) -> Result<MxPlan, MxFailure> {
    dns.mx_plan(&domain(name)).await
}

fn host_names(plan: &MxPlan) -> Vec<&str> {
    plan.hosts.iter().map(|host| host.name.as_str()).collect()
}
