//! The signing pool gives the same signatures as the signer, however many callers wait. Its threads end with it.

#![cfg(test)]

use std::sync::Arc;

use postroad_delivery::signing::SigningPool;
use postroad_mail::{Canonical, DkimKey, Signer};
use postroad_model::{DomainName, ServerId, Timestamp};
use tokio::task::JoinSet;

const AT: Timestamp = Timestamp::from_micros(1_794_711_600_000_000);

fn signer() -> Arc<Signer> {
    let key = DkimKey::generate().unwrap();
    let domain = DomainName::parse("example.com").unwrap();
    Arc::new(Signer::rsa("pr1", domain, key.private_pkcs8_der()).unwrap())
}

fn canonical(number: usize) -> Arc<Canonical> {
    Arc::new(Canonical::of(format!("From: a@example.com\r\nSubject: {number}\r\n\r\nText\r\n").as_bytes()))
}

#[tokio::test]
async fn each_message_gets_its_own_signature_however_many_wait() {
    let pool = Arc::new(SigningPool::start(2).unwrap());
    let signer = signer();
    let mut waiting = JoinSet::new();
    for number in 0..400 {
        let (pool, signer) = (Arc::clone(&pool), Arc::clone(&signer));
        waiting.spawn(async move { (number, pool.sign(ServerId(1), signer, canonical(number), AT).await) });
    }
    while let Some(signed) = waiting.join_next().await {
        let (number, signature) = signed.unwrap();
        assert_eq!(signature, signer.sign(&canonical(number), AT));
    }
}

#[test]
fn the_threads_end_with_the_pool() {
    let signer = signer();
    let pool = SigningPool::start(0).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(pool.sign(ServerId(1), Arc::clone(&signer), canonical(1), AT));
    // Returns when the threads have ended, and they hold nothing afterwards.
    drop(pool);
    assert_eq!(Arc::strong_count(&signer), 1);
}
