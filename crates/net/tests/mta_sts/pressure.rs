//! Silent name servers, silent policy hosts and a file that cannot be written: look-ups end in time, and other
//! servers are not affected.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use postroad_model::ServerId;
use postroad_net::mta_sts::{MtaStsSettings, StsVerdict};
use postroad_testkit::dns_server::{Failure, RecordType};
use postroad_testkit::eventually;
use tokio::task::JoinSet;

use super::{RECORD, Scene, enforced_hosts};

/// Time after which the resolver gives up on a silent name server: three attempts of four seconds.
const DNS_TIMEOUT: Duration = Duration::from_secs(12);

#[tokio::test]
async fn a_record_look_up_without_an_answer_is_given_up_soon() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com").dns.fail(RECORD, Failure::Silent);
    let begun = Instant::now();
    assert_eq!(scene.ask().await, StsVerdict::Unknown, "the domain may have a policy");
    assert!(begun.elapsed() < DNS_TIMEOUT, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_known_policy_does_not_wait_for_a_silent_record() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com");
    enforced_hosts(&scene.ask().await);
    scene.dns.fail(RECORD, Failure::Silent);
    let begun = Instant::now();
    enforced_hosts(&scene.ask_after(Duration::from_hours(30)).await);
    assert!(begun.elapsed() < DNS_TIMEOUT, "{:?}", begun.elapsed());
}

/// Makes server 1 fetch policies from hosts that accept connections and stay silent, until it holds all permits that it
/// can get. There are so many hosts that the limit per destination does not apply.
async fn take_all_permits(scene: &Arc<Scene>) -> (Vec<TcpListener>, JoinSet<StsVerdict>) {
    let port = scene.web.address().port();
    let silent: Vec<TcpListener> =
        (1..=60).map(|host| TcpListener::bind((Ipv4Addr::new(127, 0, 1, host), port)).unwrap()).collect();
    let mut lookups = JoinSet::new();
    for number in 0..400 {
        let domain = format!("silent{number}.example");
        scene.dns.a(&format!("mta-sts.{domain}"), [127, 0, 1, 1 + (number % 60) as u8]);
        scene.dns.txt(&format!("_mta-sts.{domain}"), "v=STSv1; id=1;");
        let scene = Arc::clone(scene);
        lookups.spawn(async move { scene.ask_for(&domain, ServerId(1), Duration::ZERO).await });
    }
    // Once the last host is looked up, the fetches have asked for permits.
    wait_until_asked(scene, "mta-sts.silent399.example", RecordType::A).await;
    (silent, lookups)
}

/// Waits until the name server was asked for this record.
async fn wait_until_asked(scene: &Scene, name: &str, kind: RecordType) {
    eventually(async || match scene.dns.questions(name, kind) {
        0 => Err(format!("nobody asked for the {kind} record of {name}")),
        _ => Ok(()),
    })
    .await;
}

#[tokio::test]
async fn silent_policy_hosts_of_one_server_do_not_delay_fetches_of_another() {
    let scene = Arc::new(Scene::new());
    let (silent, mut lookups) = take_all_permits(&scene).await;
    scene.announce("1").publish("enforce", "mx.example.com");
    enforced_hosts(&scene.ask_for("example.com", ServerId(2), Duration::ZERO).await);
    lookups.shutdown().await;
    drop(silent);
}

#[tokio::test]
async fn a_fetch_does_not_fail_because_it_joined_that_of_a_server_without_permits() {
    let scene = Arc::new(Scene::new());
    let (silent, mut lookups) = take_all_permits(&scene).await;
    scene.announce("1").publish("enforce", "mx.example.com");
    let of_first = Arc::clone(&scene);
    lookups.spawn(async move { of_first.ask_for("example.com", ServerId(1), Duration::ZERO).await });
    wait_until_asked(&scene, RECORD, RecordType::TXT).await;
    enforced_hosts(&scene.ask_for("example.com", ServerId(2), Duration::ZERO).await);
    lookups.shutdown().await;
    drop(silent);
}

#[tokio::test]
async fn a_policy_that_could_not_be_stored_is_stored_later() {
    let folder = tempfile::TempDir::new().unwrap();
    let missing = folder.path().join("missing");
    let file = missing.join("policies");
    let settings =
        MtaStsSettings { allow_private: true, file: Some(file.clone()), ..MtaStsSettings::default() };
    let scene = Scene::with(&settings);
    scene.announce("1").publish("enforce", "mx.example.com");
    enforced_hosts(&scene.ask().await);
    assert!(!file.exists());
    std::fs::create_dir(&missing).unwrap();
    enforced_hosts(&scene.ask_after(Duration::from_mins(2)).await);
    assert!(std::fs::read_to_string(&file).unwrap().contains("example.com"));
}
