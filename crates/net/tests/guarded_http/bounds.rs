//! Limits on the work that a receiver can cause.

use postroad_testkit::{CatcherAnswer, DnsServer, WebhookCatcher};

use super::{client, failure_class, post, settings};

#[tokio::test]
async fn only_16_kib_of_an_endless_answer_are_read() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    catcher.answer("/", CatcherAnswer::Endless);
    let client = client(&dns, None, settings());
    let answer = post(&client, &catcher.url("/")).await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 16 * 1024));
    // The connection of a cut answer is not reused.
    post(&client, &catcher.url("/")).await.unwrap();
    assert_eq!(catcher.connections(), 2);
}

#[tokio::test]
async fn redirects_are_answers_and_not_followed() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    catcher.answer("/", CatcherAnswer::redirect(&catcher.url("/inside")));
    let answer = post(&client(&dns, None, settings()), &catcher.url("/")).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(catcher.received().len(), 1);
}

#[tokio::test]
async fn a_head_without_end_is_a_protocol_failure() {
    let (dns, catcher) = (DnsServer::start(), WebhookCatcher::start());
    let headers = vec![("x-long".to_owned(), "x".repeat(200_000))];
    catcher.answer("/", CatcherAnswer::Full(200, headers, Vec::new()));
    assert_eq!(failure_class(&client(&dns, None, settings()), &catcher.url("/")).await, "protocol");
}
