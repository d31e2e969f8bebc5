//! Discovery of the policy of an unknown domain.

use std::time::Duration;

use postroad_net::mta_sts::{MtaStsSettings, StsVerdict};
use postroad_testkit::dns_server::{Failure, RecordType};
use postroad_testkit::{HttpsAnswer, TestCertificate};

use super::{HOST, RECORD, Scene, URL, enforced_hosts};

#[tokio::test]
async fn each_mode_gives_its_verdict() {
    for mode in ["enforce", "testing", "none"] {
        let scene = Scene::new();
        scene.announce("1").publish(mode, "*.example.com");
        match (mode, scene.ask().await) {
            ("enforce", StsVerdict::Enforce(policy)) | ("testing", StsVerdict::Testing(policy)) => {
                assert!(policy.matches("mx1.example.com") && !policy.matches("mx.evil.example"));
            }
            ("none", StsVerdict::None) => {}
            (_, verdict) => panic!("{mode} gave {verdict:?}"),
        }
        assert_eq!(scene.fetches(), 1);
    }
}

#[tokio::test]
async fn nothing_is_fetched_unless_exactly_one_record_is_valid() {
    for texts in [
        &[][..],
        &["v=STSv1; id=;"],
        &["v=spf1 -all"],
        &["v=STSv1; id=1;", "v=STSv1; id=2;"],
        &["v=STSv1; id=has-hyphens;"],
    ] {
        let scene = Scene::new();
        scene.publish("enforce", "mx.example.com");
        for text in texts {
            scene.dns.txt(RECORD, text);
        }
        assert_eq!(scene.ask().await, StsVerdict::None, "{texts:?}");
        assert_eq!(scene.web.connections(), 0, "{texts:?}");
    }
}

#[tokio::test]
async fn if_the_record_look_up_fails_an_unknown_domain_has_no_policy() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com").dns.fail(RECORD, Failure::ServFail);
    assert_eq!(scene.ask().await, StsVerdict::None);
}

#[tokio::test]
async fn bad_answers_of_the_web_server_are_no_policy() {
    let policy = "version: STSv1\nmode: enforce\nmx: mx.example.com\nmax_age: 604800\n";
    let padded = format!("{policy}{}", "comment: x\n".repeat(6_000));
    assert!(padded.len() > 64 * 1024);
    for (name, answer) in [
        ("oversize", HttpsAnswer::text(&padded)),
        ("endless", HttpsAnswer::Endless),
        ("redirect", HttpsAnswer::redirect("https://mta-sts.example.com/other")),
        ("missing", HttpsAnswer::status(404)),
        ("no policy", HttpsAnswer::text("<html>Welcome</html>")),
        ("created", HttpsAnswer::Full { status: 201, headers: Vec::new(), body: policy.into() }),
    ] {
        let scene = Scene::new();
        scene.announce("1").web.answer(URL, answer);
        scene.web.answer("mta-sts.example.com/other", HttpsAnswer::text(policy));
        assert_eq!(scene.ask().await, StsVerdict::None, "{name}");
        assert_eq!(scene.fetches(), 1, "{name}");
        assert_eq!(scene.web.requests("mta-sts.example.com/other"), 0, "{name}");
    }
    let scene = Scene::new();
    scene.announce("1").web.answer(URL, HttpsAnswer::text(policy));
    enforced_hosts(&scene.ask().await);
}

#[tokio::test]
async fn a_silent_web_server_is_given_up() {
    let fetch_timeout = Duration::from_secs(1);
    let scene =
        Scene::with(&MtaStsSettings { allow_private: true, fetch_timeout, ..MtaStsSettings::default() });
    scene.announce("1").web.answer(URL, HttpsAnswer::Silent);
    assert_eq!(scene.ask().await, StsVerdict::None);
    assert_eq!(scene.web.connections(), 1);
}

#[tokio::test]
async fn wrong_certificates_are_refused_before_the_request() {
    let scene = Scene::new();
    scene.announce("1").publish("enforce", "mx.example.com");
    // Right name, but another CA.
    scene.web.set_certificate(&TestCertificate::for_names(&[HOST]));
    assert_eq!(scene.ask().await, StsVerdict::None);
    assert_eq!((scene.web.connections(), scene.fetches()), (1, 0));
}

#[tokio::test]
async fn private_addresses_are_not_dialled() {
    let scene = Scene::with(&MtaStsSettings::default());
    scene.announce("1").publish("enforce", "mx.example.com");
    assert_eq!(scene.ask().await, StsVerdict::None);
    assert_eq!(scene.dns.questions(HOST, RecordType::A), 1);
    assert_eq!(scene.web.connections(), 0);
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_is_dead() {
    let scene = Scene::new();
    // Nobody listens at ::1 on this port.
    scene.announce("1").publish("enforce", "mx.example.com").dns.aaaa(HOST, [0, 0, 0, 0, 0, 0, 0, 1]);
    enforced_hosts(&scene.ask().await);
}
