//! Lifetime of a known policy: expiry, replacement, and failures that do not end it.

use std::time::Duration;

use futures_util::future::join_all;
use postroad_net::mta_sts::StsVerdict;
use postroad_testkit::dns_server::Failure;
use postroad_testkit::{HttpsAnswer, TestCertificate};

use super::{HOST, RECORD, Scene, URL, enforced_hosts};

const HOUR: Duration = Duration::from_hours(1);
/// Maximum age of every policy here.
const MAX_AGE: Duration = Duration::from_hours(168);

#[tokio::test]
async fn a_policy_is_fetched_once_for_its_id_and_again_for_the_next_id() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "old.example.com");
    for _ in 0..3 {
        assert_eq!(enforced_hosts(&scene.ask().await), ["old.example.com"]);
    }
    scene.publish("enforce", "new.example.com");
    assert_eq!(enforced_hosts(&scene.ask_after(HOUR).await), ["old.example.com"]);
    assert_eq!(scene.fetches(), 1);
    scene.announce("2");
    assert_eq!(enforced_hosts(&scene.ask_after(HOUR).await), ["new.example.com"]);
    assert_eq!(scene.fetches(), 2);
    scene.announce("3").publish("none", "new.example.com");
    assert_eq!(scene.ask_after(HOUR).await, StsVerdict::None);
}

#[tokio::test]
async fn nothing_but_time_ends_a_known_policy() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com");
    enforced_hosts(&scene.ask().await);

    scene.dns.fail(RECORD, Failure::ServFail);
    enforced_hosts(&scene.ask_after(HOUR).await);
    scene.dns.clear_failures(RECORD).remove(RECORD);
    enforced_hosts(&scene.ask_after(HOUR * 2).await);
    scene.announce("1").dns.txt(RECORD, "v=STSv1; id=2;");
    enforced_hosts(&scene.ask_after(HOUR * 3).await);
    scene.announce("3").web.answer(URL, HttpsAnswer::status(500));
    enforced_hosts(&scene.ask_after(HOUR * 4).await);
    scene.announce("4").web.answer(URL, HttpsAnswer::text("nonsense"));
    enforced_hosts(&scene.ask_after(HOUR * 5).await);
    scene.announce("5").publish("none", "mx.example.com");
    scene.web.set_certificate(&TestCertificate::for_names(&[HOST]));
    enforced_hosts(&scene.ask_after(HOUR * 6).await);
    scene.announce("6").dns.fail(HOST, Failure::ServFail);
    enforced_hosts(&scene.ask_after(HOUR * 7).await);

    let almost = MAX_AGE.checked_sub(Duration::from_secs(1)).unwrap();
    enforced_hosts(&scene.ask_after(almost).await);
    assert_eq!(scene.ask_after(MAX_AGE).await, StsVerdict::None);
}

#[tokio::test]
async fn a_policy_in_use_is_refreshed_before_it_expires() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com");
    enforced_hosts(&scene.ask().await);
    enforced_hosts(&scene.ask_after(HOUR * 23).await);
    assert_eq!(scene.fetches(), 1);
    enforced_hosts(&scene.ask_after(HOUR * 24).await);
    assert_eq!(scene.fetches(), 2);
    scene.web.answer(URL, HttpsAnswer::status(500));
    enforced_hosts(&scene.ask_after(MAX_AGE + HOUR * 23).await);
    assert_eq!(scene.ask_after(MAX_AGE + HOUR * 24).await, StsVerdict::None);
}

#[tokio::test]
async fn a_failed_fetch_is_not_repeated_for_five_minutes() {
    let scene = Scene::new();
    scene.announce("1").web.answer(URL, HttpsAnswer::status(500));
    for _ in 0..3 {
        assert_eq!(scene.ask().await, StsVerdict::None);
    }
    assert_eq!(scene.fetches(), 1);
    scene.publish("enforce", "mx.example.com");
    assert_eq!(scene.ask_after(Duration::from_secs(299)).await, StsVerdict::None);
    enforced_hosts(&scene.ask_after(Duration::from_mins(5)).await);
    assert_eq!(scene.fetches(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_share_one_fetch() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com");
    for verdict in join_all((0..100).map(|_| scene.ask())).await {
        enforced_hosts(&verdict);
    }
    assert_eq!(scene.fetches(), 1);
}
