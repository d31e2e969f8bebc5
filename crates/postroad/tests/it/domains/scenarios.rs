//! Typical mistakes in customers' DNS: the status and the hint of the record, over HTTP.

use std::net::Ipv4Addr;

use futures_util::{StreamExt as _, stream};
use postroad_testkit::dns_server::Failure;
use postroad_testkit::{DnsServer, eventually};
use serde_json::{Value, json};

use super::{publish, start, status};
use crate::world::{Engine, World, both_engines};

/// SPF terms of the service's addresses; `postroad dev` sends from this machine.
const OUR_IPS: &str = "ip4:127.0.0.1 ip6:::1";

/// A domain that was just created, and the DNS in which it lives.
struct Zone<'a> {
    dns: &'a DnsServer,
    domain: String,
    /// Name of its DKIM record.
    key_name: String,
    /// Value of its DKIM record.
    key: String,
    /// Value of the DKIM record of another domain.
    other_key: &'a str,
}

struct Scenario {
    /// Domain name as a person enters it.
    entered: &'static str,
    purpose: &'static str,
    publish: fn(&Zone<'_>),
    status: &'static str,
    hint: fn(&Zone<'_>) -> Option<String>,
}

impl Zone<'_> {
    fn txt(&self, text: &str) {
        self.dns.txt(&self.domain, text);
    }

    fn key_base64(&self) -> &str {
        self.key.split_once("p=").unwrap().1
    }

    fn dmarc(&self, domain: &str, policy: &str) {
        self.dns.txt(&format!("_dmarc.{domain}"), policy);
    }
}

fn no_answer(name: &str, domain: &str, reason: &str) -> String {
    format!(
        "The DNS did not answer (TXT lookup of {name}: {reason}). This is not a verdict; the check is repeated. If this persists, \
         tell the operator of the name servers of {domain}."
    )
}

fn spf_scenarios() -> Vec<Scenario> {
    let case = |entered, publish, status, hint| Scenario { entered, purpose: "spf", publish, status, hint };
    vec![
        case(
            "spf-missing.example",
            |_| {},
            "missing",
            |zone| Some(format!("There is no such record yet. Add this TXT record at {}.", zone.domain)),
        ),
        case(
            "spf-wrong.example",
            |zone| zone.txt("v=spf1 ip4:198.51.100.1 -all"),
            "mismatch",
            |_| {
                Some(format!(
                    "Your SPF record does not allow this service's addresses 127.0.0.1 and ::1. Change it to: \
                 v=spf1 ip4:198.51.100.1 {OUR_IPS} -all"
                ))
            },
        ),
        case(
            "spf-twice.example",
            |zone| {
                zone.txt("v=spf1 ip4:198.51.100.6 -all");
                zone.txt("v=spf1 ip4:198.51.100.7 ~all");
            },
            "multiple",
            |_| {
                Some(format!(
                    "You have two SPF records. Replace them by this one: v=spf1 ip4:198.51.100.6 ip4:198.51.100.7 {OUR_IPS} \
                     ~all"
                ))
            },
        ),
        case(
            "spf-split.example",
            |zone| {
                let strings: [&[u8]; 3] = [b"v=spf1 ip4:127.0", b".0.1 ip6:::1", b" -all"];
                zone.dns.txt_strings(&zone.domain, &strings);
            },
            "verified",
            |_| None,
        ),
        case(
            "spf-redirect.example",
            |zone| {
                zone.txt("v=spf1 redirect=_spf.spf-redirect.example");
                zone.dns.txt("_spf.spf-redirect.example", &format!("v=spf1 {OUR_IPS} -all"));
            },
            "verified",
            |_| None,
        ),
        case(
            "spf-macro.example",
            |zone| {
                zone.txt("v=spf1 exists:%{ir}.%{v}._spf.%{d} -all");
                zone.dns.a("1.0.0.127.in-addr._spf.spf-macro.example", [127, 0, 0, 2]);
                let nibbles = format!("1{}", ".0".repeat(31));
                zone.dns.a(&format!("{nibbles}.ip6._spf.spf-macro.example"), [127, 0, 0, 2]);
            },
            "verified",
            |_| None,
        ),
        case(
            "spf-bad-macro.example",
            |zone| zone.txt("v=spf1 exists:%{z}.example -all"),
            "mismatch",
            |_| {
                Some(format!(
                    "Your SPF record has an error, so receivers ignore all of it: exists:%{{z}}.example is not valid. The new \
                 record leaves out exists:%{{z}}.example, and ends in ?all so that nobody is refused for that; correct and \
                 add again what you need. Change it to: v=spf1 {OUR_IPS} ?all"
                ))
            },
        ),
        case(
            "spf-all.example",
            |zone| zone.txt("v=spf1 +all"),
            "verified",
            |zone| {
                Some(format!(
                    "Your SPF record allows every server in the world to send as {} (+all). Change it to: v=spf1 {OUR_IPS} ?all",
                    zone.domain
                ))
            },
        ),
        case(
            "spf-lookups.example",
            |zone| {
                let names: Vec<String> = (0..11).map(|n| format!("n{n}.{}", zone.domain)).collect();
                for name in &names {
                    zone.dns.txt(name, "v=spf1 ip4:198.51.100.1 -all");
                }
                zone.txt(&format!("v=spf1 include:{} -all", names.join(" include:")));
            },
            "mismatch",
            |zone| {
                let names: Vec<String> = (0..11).map(|n| format!("include:n{n}.{}", zone.domain)).collect();
                let costs: Vec<String> = names.iter().take(4).map(|name| format!("{name} (1)")).collect();
                Some(format!(
                    "Your SPF needs 11 lookups; 10 are allowed. These terms cost most: {}. Remove those that no longer \
                     send for you. Until then this record works for mail from this service: v=spf1 {OUR_IPS} {} -all",
                    costs.join(", "),
                    names.join(" ")
                ))
            },
        ),
        case(
            "spf-void.example",
            |zone| zone.txt(&format!("v=spf1 a:x1.example mx:x2.example a:x3.example {OUR_IPS} -all")),
            "mismatch",
            |_| {
                Some(format!(
                    "Your SPF asks for records that do not exist: a:x1.example, mx:x2.example and a:x3.example. More than two \
                     make receivers ignore it. The new record leaves out a:x1.example, mx:x2.example, a:x3.example, which \
                     match nobody. Change it to: v=spf1 {OUR_IPS} -all"
                ))
            },
        ),
        case(
            "spf-servfail.example",
            |zone| {
                zone.dns.fail(&zone.domain, Failure::ServFail);
            },
            "dns_error",
            |zone| Some(no_answer(&zone.domain, &zone.domain, "the name server answered SERVFAIL")),
        ),
        case(
            "spf-lame.example",
            |zone| {
                zone.dns.fail(&zone.domain, Failure::Refused);
            },
            "dns_error",
            |zone| Some(no_answer(&zone.domain, &zone.domain, "the name server answered REFUSED")),
        ),
        case(
            "spf-referral.example",
            |zone| {
                zone.dns.fail(&zone.domain, Failure::Referral);
            },
            "dns_error",
            |zone| Some(no_answer(&zone.domain, &zone.domain, "the name server referred to others")),
        ),
        // With blanks, capitals and a final dot, as people type names.
        case(
            " Spf-Entered.Example. ",
            |zone| zone.txt(&format!("v=spf1 {OUR_IPS} -all")),
            "verified",
            |_| None,
        ),
        case(
            "Bücher.example",
            |zone| zone.txt("v=spf1 -all"),
            "mismatch",
            |_| {
                Some(format!(
                    "Your SPF record does not allow this service's addresses 127.0.0.1 and ::1. Change it to: v=spf1 {OUR_IPS} -all"
                ))
            },
        ),
        case(
            "news.nobody.example",
            |_| {},
            "missing",
            |_| {
                Some(
                "nobody.example does not exist in the DNS: it is not registered, or has no name servers. Check the spelling \
                 and the registration."
                    .to_owned(),
            )
            },
        ),
    ]
}

fn dkim_scenarios() -> Vec<Scenario> {
    let case = |entered, publish, status, hint| Scenario { entered, purpose: "dkim", publish, status, hint };
    vec![
        case(
            "key-missing.example",
            |_| {},
            "missing",
            |zone| Some(format!("There is no such record yet. Add this TXT record at {}.", zone.key_name)),
        ),
        case(
            "key-elsewhere.example",
            |zone| {
                zone.dns.txt(&zone.key_name, zone.other_key);
            },
            "mismatch",
            |zone| {
                Some(format!(
                    "This is another key, perhaps that of another domain or of an earlier set-up. Replace it by: {}",
                    zone.key
                ))
            },
        ),
        case(
            "key-lines.example",
            |zone| {
                let (start, end) = zone.key_base64().split_at(100);
                zone.dns.txt(&zone.key_name, &format!("v=DKIM1; k=rsa; p={start}\r\n\t{end}"));
            },
            "verified",
            |_| None,
        ),
        case(
            "key-quotes.example",
            |zone| {
                zone.dns.txt(&zone.key_name, &format!("\"{}\"", zone.key));
            },
            "mismatch",
            |zone| {
                Some(format!(
                    "The key is right, but the value has quotation marks or backslashes in it. Enter it without them. \
                     Replace the record by: {}",
                    zone.key
                ))
            },
        ),
        case(
            "key-cut.example",
            |zone| {
                zone.dns.txt(&zone.key_name, &zone.key[..200]);
            },
            "mismatch",
            |zone| {
                Some(format!("The key is cut off: its end is missing. Replace the record by: {}", zone.key))
            },
        ),
        case(
            "key-twice.example",
            |zone| {
                zone.dns.txt(&zone.key_name, zone.other_key).txt(&zone.key_name, &zone.key);
            },
            "multiple",
            |zone| {
                Some(format!(
                    "There are 2 DKIM keys at {}; receivers take any of them. Keep only this one: {}",
                    zone.key_name, zone.key
                ))
            },
        ),
        case(
            "key-chain.example",
            |zone| {
                zone.dns.cname(&zone.key_name, "k1.keys.example").cname("k1.keys.example", "k2.keys.example");
                zone.dns.txt("k2.keys.example", &zone.key);
            },
            "verified",
            |_| None,
        ),
        case(
            "key-wildcard.example",
            |zone| {
                zone.dns.txt("*.key-wildcard.example", "v=spf1 -all");
            },
            "missing",
            |zone| {
                Some(format!(
                    "A wildcard record (*.key-wildcard.example) answers for {name}. Add a TXT record at {name} itself; it takes \
                     precedence over the wildcard.",
                    name = zone.key_name
                ))
            },
        ),
        case(
            "key-doubled.example",
            |zone| {
                zone.dns.txt(&format!("{}.key-doubled.example", zone.key_name), &zone.key);
            },
            "missing",
            |zone| {
                let entered = zone.key_name.strip_suffix(".key-doubled.example").unwrap();
                Some(format!(
                    "The name has the domain twice: your DNS panel appends it. Enter {entered} as the name."
                ))
            },
        ),
    ]
}

fn dmarc_scenarios() -> Vec<Scenario> {
    let case = |entered, publish, status, hint| Scenario { entered, purpose: "dmarc", publish, status, hint };
    vec![
        case(
            "policy-missing.example",
            |_| {},
            "missing",
            |_| {
                Some(
                    "There is no such record yet. Add this TXT record at _dmarc.policy-missing.example."
                        .to_owned(),
                )
            },
        ),
        case(
            "policy-wrong.example",
            |zone| zone.dmarc(&zone.domain, "v=DMARC1; p=maybe"),
            "mismatch",
            |_| {
                Some(
                    "p=maybe in the DMARC record at _dmarc.policy-wrong.example is not a policy. It has to be p=none, \
                     p=quarantine or p=reject."
                        .to_owned(),
                )
            },
        ),
        case(
            "policy-twice.example",
            |zone| {
                zone.dmarc(&zone.domain, "v=DMARC1; p=reject");
                zone.dmarc(&zone.domain, "v=DMARC1; p=none; rua=mailto:a@policy-twice.example");
            },
            "multiple",
            |_| {
                Some(
                    "There are 2 DMARC records at _dmarc.policy-twice.example, so receivers ignore all of them. Keep this \
                     one: v=DMARC1; p=none; rua=mailto:a@policy-twice.example"
                        .to_owned(),
                )
            },
        ),
        case(
            "news.policy-above.example",
            |zone| zone.dmarc("policy-above.example", "v=DMARC1; p=reject"),
            "verified",
            |_| Some("The policy of policy-above.example (p=reject) counts for this domain too.".to_owned()),
        ),
        case(
            "news.policy-sp.example",
            |zone| zone.dmarc("policy-sp.example", "v=DMARC1; p=reject; sp=none"),
            "verified",
            |_| Some("The policy of policy-sp.example (sp=none) counts for this domain too.".to_owned()),
        ),
    ]
}

fn alias_scenarios() -> Vec<Scenario> {
    let case = |entered, purpose, publish, status, hint| Scenario { entered, purpose, publish, status, hint };
    let bounces = "return_path";
    vec![
        case(
            "alias-missing.example",
            bounces,
            |_| {},
            "missing",
            |zone| {
                let name = format!("rp.{}", zone.domain);
                Some(format!("There is no such record yet. Add this CNAME record at {name}."))
            },
        ),
        case(
            "alias-chain.example",
            bounces,
            |zone| {
                zone.dns.cname("rp.alias-chain.example", "mail.alias-chain.example");
                zone.dns.cname("mail.alias-chain.example", "rp.postroad.localhost");
            },
            "verified",
            |_| None,
        ),
        case(
            "alias-wrong.example",
            "tracking",
            |zone| {
                zone.dns.cname("track.alias-wrong.example", "elsewhere.example");
            },
            "mismatch",
            |_| {
                Some(
                    "track.alias-wrong.example points to elsewhere.example. Change it to track.postroad.localhost."
                        .to_owned(),
                )
            },
        ),
        case(
            "alias-appended.example",
            bounces,
            |zone| {
                zone.dns.cname("rp.alias-appended.example", "rp.postroad.localhost.alias-appended.example");
            },
            "mismatch",
            |_| {
                Some(
                    "The value has your domain at its end: your DNS panel appends it. Enter rp.postroad.localhost. with a \
                     dot at the end."
                        .to_owned(),
                )
            },
        ),
        case(
            "alias-wildcard.example",
            bounces,
            |zone| {
                zone.dns.a("*.alias-wildcard.example", [198, 51, 100, 1]);
            },
            "mismatch",
            |_| {
                Some(
                    "A wildcard record (*.alias-wildcard.example) answers for rp.alias-wildcard.example. Add a CNAME record \
                     at rp.alias-wildcard.example itself; it takes precedence over the wildcard."
                        .to_owned(),
                )
            },
        ),
        case(
            "alias-address.example",
            bounces,
            |zone| {
                zone.dns.a("rp.alias-address.example", [198, 51, 100, 1]);
            },
            "mismatch",
            |_| {
                Some(
                    "rp.alias-address.example has an address (A or AAAA) instead of an alias. Replace it by a CNAME to \
                     rp.postroad.localhost; if your DNS provider offers a proxy for the name, switch it off."
                        .to_owned(),
                )
            },
        ),
    ]
}

/// Creates the domain, publishes the scenario's records, and verifies until status and hint are as expected.
async fn check(world: &World, dns: &DnsServer, other_key: &str, scenario: Scenario) {
    let created = world.domains("create", &json!({ "name": scenario.entered })).await;
    let domain = created["name"].as_str().unwrap().to_owned();
    let record = |domain: &Value, purpose: &str| {
        let records = domain["records"].as_array().unwrap();
        records.iter().find(|record| record["purpose"] == purpose).unwrap().clone()
    };
    let key = record(&created, "dkim");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let zone = Zone { dns, key_name: text(&key["name"]), key: text(&key["value"]), domain, other_key };
    if !zone.domain.ends_with("nobody.example") {
        dns.ns(&zone.domain, "ns.example").ns(zone.domain.trim_start_matches("news."), "ns.example");
    }
    (scenario.publish)(&zone);
    let hint = (scenario.hint)(&zone);
    eventually(async || {
        let seen = record(&world.domains("verify", &json!({ "name": zone.domain })).await, scenario.purpose);
        let is_expected = seen["status"] == scenario.status && seen["hint"] == json!(hint);
        if is_expected {
            Ok(())
        } else {
            Err(format!("{}: {hint:?} is wanted, but the record is {seen}", scenario.entered))
        }
    })
    .await;
}

both_engines!(each_scenario_has_its_status_and_its_hint, silent_name_servers_give_no_verdict);

async fn silent_name_servers_give_no_verdict(engine: Engine) {
    let (world, dns) = start(engine);
    let created = world.domains("create", &json!({"name": "silent.example"})).await;
    publish(&dns, &created);
    dns.fail("_dmarc.silent.example", Failure::Silent);
    let domain = world.domains("verify", &json!({"name": "silent.example"})).await;
    assert_eq!((&domain["verified"], status(&domain, "spf")), (&json!(false), "verified"), "{domain:#}");
    assert_eq!((status(&domain, "dmarc"), &domain["failing_since"]), ("dns_error", &Value::Null));
    // Which of two time limits runs out first depends on the machine.
    let hint = domain["records"][2]["hint"].as_str().unwrap();
    let expected = no_answer("_dmarc.silent.example", "silent.example", "|");
    let (before, after) = expected.split_once('|').unwrap();
    assert!(hint.starts_with(before) && hint.ends_with(after), "{hint}");
    dns.clear_failures("_dmarc.silent.example");
    world.until_domain("silent.example", |domain| domain["verified"] == true).await;
}

async fn each_scenario_has_its_status_and_its_hint(engine: Engine) {
    let dns = DnsServer::start();
    dns.a("postroad.localhost", Ipv4Addr::LOCALHOST);
    let name_server = dns.address().to_string();
    let world = World::start_with(engine, &[("POSTROAD_DNS_NAMESERVERS", &name_server)]);
    let other = world.domains("create", &json!({"name": "other.example"})).await;
    let keys =
        other["records"].as_array().unwrap().iter().find(|record| record["purpose"] == "dkim").unwrap();
    let other_key = keys["value"].as_str().unwrap();
    let scenarios =
        [spf_scenarios(), dkim_scenarios(), dmarc_scenarios(), alias_scenarios()].into_iter().flatten();
    // An account may have four checks at once.
    let checks = scenarios.map(|scenario| check(&world, &dns, other_key, scenario));
    stream::iter(checks).buffer_unordered(4).collect::<Vec<()>>().await;
}
