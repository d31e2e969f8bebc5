//! Domains from outside: records in a real DNS, the HTTP API, the command line, and outgoing mail.

mod automatic_checks;
mod by_account;
mod command_line;
mod limits;
mod local_dns;
mod owners;
mod rotation;
mod scenarios;
mod sending;

use std::net::Ipv4Addr;

use postroad_testkit::{DnsServer, dkim_verifier, eventually};
use serde_json::{Value, json};

use crate::world::{Engine, World, good_but};

/// Starts a service that looks domains up at the test's own name server, which knows the service's host.
pub(crate) fn start(engine: Engine) -> (World, DnsServer) {
    start_with(engine, &[])
}

pub(crate) fn start_with(engine: Engine, envs: &[(&str, &str)]) -> (World, DnsServer) {
    let dns = DnsServer::start();
    dns.a("postroad.localhost", Ipv4Addr::LOCALHOST);
    let name_server = dns.address().to_string();
    let world =
        World::start_with(engine, &[&[("POSTROAD_DNS_NAMESERVERS", name_server.as_str())], envs].concat());
    (world, dns)
}

impl World {
    /// Calls `domains/<action>` and returns the `data` of the success.
    pub(crate) async fn domains(&self, action: &str, body: &Value) -> Value {
        let answer = self.call(&format!("/api/v1/domains/{action}"), body).await;
        assert_eq!(answer["status"], "success", "{action}: {answer}");
        answer["data"].clone()
    }

    /// Calls `domains/<action>`, which is refused; returns the code.
    pub(crate) async fn refused_domains(&self, action: &str, body: &Value) -> String {
        let answer = self.call(&format!("/api/v1/domains/{action}"), body).await;
        answer["data"]["code"].as_str().unwrap_or_else(|| panic!("{action}: {answer}")).to_owned()
    }

    /// Checks again, as often as that is allowed, until `condition` is true for the domain.
    pub(crate) async fn until_domain(&self, name: &str, condition: impl Fn(&Value) -> bool) -> Value {
        eventually(async || {
            let domain = self.domains("verify", &json!({ "name": name })).await;
            if condition(&domain) { Ok(domain) } else { Err(domain) }
        })
        .await
    }

    /// Sends a message from that address; returns its bytes and its envelope sender, as they left.
    pub(crate) async fn send_from(&self, from: &str, to: &str) -> (Vec<u8>, String) {
        self.accepted(&good_but(json!({ "from": from, "to": [to] }))).await;
        let caught = self.client.get(&format!("/dev/messages/wait?to={to}&timeout=20")).await.unwrap().json();
        let raw = self.client.get(&format!("/dev/messages/{}/raw", caught["id"])).await.unwrap();
        (raw.body.to_vec(), caught["mail_from"].as_str().unwrap().to_owned())
    }
}

/// Publishes the domain's records, as its owner would.
pub(crate) fn publish(dns: &DnsServer, domain: &Value) {
    for record in domain["records"].as_array().unwrap() {
        let (name, value) = (record["name"].as_str().unwrap(), record["value"].as_str().unwrap());
        dns.remove(name);
        match record["type"].as_str().unwrap() {
            "CNAME" => dns.cname(name, value),
            _ => dns.txt(name, value),
        };
    }
}

pub(crate) fn status<'a>(domain: &'a Value, purpose: &str) -> &'a str {
    let records = domain["records"].as_array().unwrap();
    records.iter().find(|record| record["purpose"] == purpose).unwrap()["status"].as_str().unwrap()
}

/// Whether each signature of the message is good by the records that the domain shows.
pub(crate) fn verdicts(message: &[u8], domain: &Value) -> Vec<bool> {
    dkim_verifier::verify(message, &dkim_records(domain))
}

/// Names and texts of the records of the domain's keys.
pub(crate) fn dkim_records(domain: &Value) -> Vec<(&str, &str)> {
    let records = domain["records"].as_array().unwrap().iter().filter(|record| record["purpose"] == "dkim");
    records.map(|record| (record["name"].as_str().unwrap(), record["value"].as_str().unwrap())).collect()
}
