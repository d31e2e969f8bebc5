//! DANE for SMTP (RFC 7672): TLSA records from a validating resolver decide which certificates of a mail host are
//! accepted.

use postroad_testkit::dns_server::{Failure, RecordType};
use postroad_testkit::smtp_peer::{PeerTls, Script};
use postroad_testkit::{HttpsAnswer, HttpsServer, SmtpPeer, TestCertificate};
use serde_json::{Value, json};

use super::outside::{Outside, to};
use super::tls_demands::Authorities;
use crate::world::{Engine, World, both_engines};

const TRUSTED_RESOLVER: (&str, &str) = ("POSTROAD_DNS_DNSSEC", "loopback");
/// Slower retries than in other tests, so that they do not use up the connections per minute that a site gets.
const SLOWER_RETRIES: (&str, &str) = ("POSTROAD_DELIVERY_RETRY_SCHEDULE", "1s");

/// Simulated internet whose name server validates DNSSEC.
fn validating_outside() -> Outside {
    let outside = Outside::new();
    outside.dns.validating();
    outside
}

/// Starts the only host of a domain. It presents the certificate `presented`, and has a TLSA record
/// for the certificate `named`, of this `kind`: usage, selector and matching type.
fn site(
    outside: &Outside,
    domain: &str,
    kind: (u8, u8, u8),
    named: &TestCertificate,
    presented: &TestCertificate,
) -> SmtpPeer {
    outside.dns.tlsa(&format!("mx.{domain}"), outside.port(), kind, &named.tlsa(kind));
    outside.site(domain, Script::new().with_tls(PeerTls::With(presented.clone())))
}

/// Sends to the domain and waits for the delivery; returns it.
async fn send_until_delivered(world: &World, domain: &str) -> Value {
    let id = world.accepted_id(&to(&format!("ann@{domain}"))).await;
    let deliveries = world.until_status(id, "Sent").await;
    deliveries.last().cloned().expect("it was sent")
}

/// Sends to the domain; asserts that the message is deferred and that the host saw nothing of it. Returns the first
/// attempt.
async fn send_until_deferred(world: &World, domain: &str, peer: &SmtpPeer) -> Value {
    let id = world.accepted_id(&to(&format!("ann@{domain}"))).await;
    let deliveries = world.until_deliveries(id, 2).await;
    assert!(deliveries.iter().all(|delivery| delivery["status"] == "SoftFail"), "{deliveries:#?}");
    let commands: Vec<String> = peer.connections().into_iter().flat_map(|c| c.commands).collect();
    assert!(!commands.iter().any(|line| line.starts_with("MAIL")), "{commands:?}");
    deliveries[0].clone()
}

/// Asserts that the details of the delivery contain these words.
fn assert_details(delivery: &Value, words: &str) {
    let details = delivery["details"].as_str().expect("details are a text");
    assert!(details.contains(words), "{words:?} in {details:?}");
}

both_engines!(a_certificate_that_matches_the_tlsa_records_is_accepted_and_another_is_not);

async fn a_certificate_that_matches_the_tlsa_records_is_accepted_and_another_is_not(engine: Engine) {
    let outside = validating_outside();
    // The record vouches for the key: neither name nor date nor authority matter.
    let odd = TestCertificate::expired(&["somebody-else.example"]);
    let other = TestCertificate::for_names(&["mx.wrong.example"]);
    let good = site(&outside, "good.example", (3, 1, 1), &odd, &odd);
    let wrong = site(&outside, "wrong.example", (3, 1, 1), &odd, &other);
    let world = outside.start(engine, &[TRUSTED_RESOLVER, SLOWER_RETRIES]);
    let delivery = send_until_delivered(&world, "good.example").await;
    assert_eq!(delivery["tls_policy"], "dane", "{delivery}");
    assert_eq!(delivery["sent_with_ssl"], true);
    assert!(good.messages()[0].is_encrypted);
    let delivery = send_until_deferred(&world, "wrong.example", &wrong).await;
    assert_eq!(delivery["tls_policy"], "dane");
    assert_details(&delivery, "the certificate does not match the TLSA records of the host");
    assert_details(&delivery, "is demanded by DANE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_selectors_and_matching_types_of_both_tlsa_usages_are_understood() {
    let outside = validating_outside();
    let mut peers = Vec::new();
    let kinds =
        [(3, 0, 0), (3, 0, 1), (3, 0, 2), (3, 1, 0), (3, 1, 2), (2, 0, 0), (2, 0, 1), (2, 1, 1), (2, 1, 2)];
    for (number, kind) in kinds.into_iter().enumerate() {
        let domain = format!("kind{number}.example");
        let certificate = TestCertificate::for_names(&[&format!("mx.{domain}")]).with_authority_in_chain();
        peers.push(site(&outside, &domain, kind, &certificate, &certificate));
    }
    let world = outside.start(Engine::Sqlite, &[TRUSTED_RESOLVER]);
    for (number, kind) in kinds.into_iter().enumerate() {
        let delivery = send_until_delivered(&world, &format!("kind{number}.example")).await;
        assert_eq!(delivery["tls_policy"], "dane", "{kind:?}: {delivery}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_in_a_tlsa_record_vouches_only_for_its_certificates_for_the_host() {
    let outside = validating_outside();
    let kind = (2, 1, 1);
    let stranger = TestCertificate::for_names(&["elsewhere.example"]).with_authority_in_chain();
    let old = TestCertificate::expired(&["mx.old.example"]).with_authority_in_chain();
    let one = TestCertificate::for_names(&["mx.forged.example"]).with_authority_in_chain();
    let another = TestCertificate::for_names(&["mx.forged.example"]);
    // A certificate that the authority did not sign, with the authority's beside it.
    let forged = TestCertificate { certificate_pem: another.certificate_pem + &one.ca_pem, ..another };
    let other_name = site(&outside, "name.example", kind, &stranger, &stranger);
    let expired = site(&outside, "old.example", kind, &old, &old);
    let unsigned = site(&outside, "forged.example", kind, &one, &forged);
    let world = outside.start(Engine::Sqlite, &[TRUSTED_RESOLVER, SLOWER_RETRIES]);
    assert_details(
        &send_until_deferred(&world, "name.example", &other_name).await,
        "the certificate is not for this host",
    );
    assert_details(&send_until_deferred(&world, "old.example", &expired).await, "expired");
    assert_details(&send_until_deferred(&world, "forged.example", &unsigned).await, "is demanded by DANE");
}

both_engines!(a_host_without_tls_or_with_unavailable_tlsa_records_gets_no_mail);

async fn a_host_without_tls_or_with_unavailable_tlsa_records_gets_no_mail(engine: Engine) {
    let outside = validating_outside();
    let certificate = TestCertificate::for_names(&["mx.bogus.example"]);
    let bogus = site(&outside, "bogus.example", (3, 1, 1), &certificate, &certificate);
    let tlsa = format!("_{}._tcp.mx.bogus.example", outside.port());
    outside.dns.fail_type(&tlsa, RecordType::TLSA, Failure::ServFail);
    outside.dns.tlsa("mx.plain.example", outside.port(), (3, 1, 1), &certificate.tlsa((3, 1, 1)));
    let plain = outside.site("plain.example", Script::new());
    let world = outside.start(engine, &[TRUSTED_RESOLVER, SLOWER_RETRIES]);
    let delivery = send_until_deferred(&world, "bogus.example", &bogus).await;
    assert_details(&delivery, "not known whether DANE protects the host");
    assert_eq!(delivery["bounce_class"], "dns");
    assert!(bogus.connections().is_empty(), "it is not even dialled");
    let delivery = send_until_deferred(&world, "plain.example", &plain).await;
    assert_details(&delivery, "TLS is required and the server does not offer it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_host_is_tried_if_the_first_cannot_be_trusted() {
    let outside = validating_outside();
    let certificate = TestCertificate::for_names(&["mx1.two.example"]);
    let kind = (3, 1, 1);
    outside.dns.mx("two.example", 10, "mx1.two.example").mx("two.example", 20, "mx2.two.example");
    outside.dns.tlsa("mx1.two.example", outside.port(), kind, &[0; 32]);
    outside.dns.tlsa("mx2.two.example", outside.port(), kind, &certificate.tlsa(kind));
    let script = || Script::new().with_tls(PeerTls::With(certificate.clone()));
    let (first, second) =
        (outside.host("mx1.two.example", script()), outside.host("mx2.two.example", script()));
    let world = outside.start(Engine::Sqlite, &[TRUSTED_RESOLVER]);
    assert_eq!(send_until_delivered(&world, "two.example").await["mx"], "mx2.two.example");
    assert_eq!((first.messages().len(), second.messages().len()), (0, 1));
}

both_engines!(unusable_tlsa_records_require_tls_with_any_certificate);

// The PKIX usages (0 and 1) are not for SMTP: records exist, so TLS is required, but they prescribe no certificate.
async fn unusable_tlsa_records_require_tls_with_any_certificate(engine: Engine) {
    let outside = validating_outside();
    let certificate = TestCertificate::self_signed(&["whoever.example"]);
    let _web = site(&outside, "web.example", (1, 1, 1), &certificate, &certificate);
    outside.dns.tlsa("mx.plain.example", outside.port(), (0, 0, 1), &[7; 32]);
    let plain = outside.site("plain.example", Script::new());
    let world = outside.start(engine, &[TRUSTED_RESOLVER, SLOWER_RETRIES]);
    let delivery = send_until_delivered(&world, "web.example").await;
    assert_eq!((&delivery["tls_policy"], &delivery["sent_with_ssl"]), (&json!("dane_encrypt"), &json!(true)));
    assert_details(&send_until_deferred(&world, "plain.example", &plain).await, "TLS is demanded by DANE");
}

both_engines!(unsigned_dns_answers_change_nothing);

async fn unsigned_dns_answers_change_nothing(engine: Engine) {
    let outside = validating_outside();
    let (kind, presented) = ((3, 1, 1), TestCertificate::self_signed(&["whoever.example"]));
    let other = TestCertificate::self_signed(&["whoever.example"]);
    // Three cases: everything is unsigned, only the domain, or only the TLSA records.
    let _unsigned = site(&outside, "unsigned.example", kind, &other, &presented);
    let shared = site(&outside, "signed.example", kind, &other, &presented);
    outside.dns.mx("customer.example", 10, "mx.signed.example").unsigned("customer.example");
    let _records = site(&outside, "records.example", kind, &other, &presented);
    outside.dns.unsigned("unsigned.example").unsigned("_tcp.mx.records.example");
    let world = outside.start(engine, &[TRUSTED_RESOLVER, SLOWER_RETRIES]);
    for domain in ["unsigned.example", "customer.example", "records.example"] {
        let delivery = send_until_delivered(&world, domain).await;
        assert_eq!(delivery["tls_policy"], Value::Null, "{domain}: {delivery}");
    }
    // The same host for a signed domain: the connection for the unsigned domain is not reused.
    let id = world.accepted_id(&to("ann@signed.example")).await;
    let deliveries = world.until_deliveries(id, 2).await;
    assert!(deliveries.iter().all(|delivery| delivery["status"] == "SoftFail"), "{deliveries:#?}");
    let recipients: Vec<String> = shared.messages().into_iter().flat_map(|message| message.rcpt_to).collect();
    assert_eq!(recipients, ["ann@customer.example"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_trusted_resolver_tlsa_records_are_not_looked_up() {
    let outside = validating_outside();
    let presented = TestCertificate::self_signed(&["whoever.example"]);
    let other = TestCertificate::self_signed(&["whoever.example"]);
    let _peer = site(&outside, "any.example", (3, 1, 1), &other, &presented);
    let world = outside.start(Engine::Sqlite, &[]);
    assert_eq!(send_until_delivered(&world, "any.example").await["tls_policy"], Value::Null);
    let tlsa = format!("_{}._tcp.mx.any.example", outside.port());
    assert_eq!(outside.dns.questions(&tlsa, RecordType::TLSA), 0);
}

/// RFC 8461 2: MTA-STS must not weaken DANE, and a policy that fails does not stop what DANE allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dane_wins_over_mta_sts() {
    let outside = validating_outside();
    let web = TestCertificate::for_names(&["mta-sts.wrong.example", "mta-sts.right.example"]);
    let policies = HttpsServer::start(&web);
    for (domain, mx) in [("wrong.example", "mx.wrong.example"), ("right.example", "other.right.example")] {
        let host = format!("mta-sts.{domain}");
        let policy = format!("version: STSv1\r\nmode: enforce\r\nmx: {mx}\r\nmax_age: 86400\r\n");
        policies.answer(&format!("{host}/.well-known/mta-sts.txt"), HttpsAnswer::text(&policy));
        outside.dns.txt(&format!("_mta-sts.{domain}"), "v=STSv1; id=1;").a(&host, [127, 0, 0, 1]);
    }
    let trusted = TestCertificate::for_names(&["mx.wrong.example"]);
    let own = TestCertificate::self_signed(&["mx.right.example"]);
    let wrong = site(&outside, "wrong.example", (3, 1, 1), &own, &trusted);
    let _right = site(&outside, "right.example", (3, 1, 1), &own, &own);
    let authorities = Authorities::of(&[&web, &trusted]);
    let port = policies.address().port().to_string();
    let envs = [
        TRUSTED_RESOLVER,
        SLOWER_RETRIES,
        ("POSTROAD_DELIVERY_CA_FILE", authorities.path()),
        ("POSTROAD_DELIVERY_MTA_STS_PORT", port.as_str()),
    ];
    let world = outside.start(Engine::Sqlite, &envs);
    assert_details(&send_until_deferred(&world, "wrong.example", &wrong).await, "is demanded by DANE");
    assert_eq!(send_until_delivered(&world, "right.example").await["tls_policy"], "dane");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeline_of_a_message_shows_the_tlsa_records() {
    let outside = validating_outside();
    let certificate = TestCertificate::self_signed(&["whoever.example"]);
    let _peer = site(&outside, "good.example", (3, 1, 1), &certificate, &certificate);
    let world = outside.start(Engine::Sqlite, &[TRUSTED_RESOLVER]);
    let id = world.accepted_id(&to("ann@good.example")).await;
    world.until_status(id, "Sent").await;
    let timeline = world.call("/api/v1/messages/timeline", &json!({ "id": id })).await;
    let items = timeline["data"]["items"].as_array().expect("a list").clone();
    let of_kind = |kind: &str| items.iter().find(|item| item["kind"] == kind).expect("an item of this kind");
    let answer = of_kind("dns")["data"]["answer"].as_str().expect("an answer");
    assert!(answer.contains("DANE: 1 usable TLSA records at mx.good.example"), "{answer}");
    assert_eq!(of_kind("attempt")["data"]["tls_policy"], "dane");
}
