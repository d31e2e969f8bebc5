//! Bounces on a full disk or without a database: a temporary refusal, and the retried bounce is accepted.

use postroad_testkit::eventually;
use postroad_testkit::postgres::{Database, PgProxy};

use super::{SentMessage, mail_back, notification, send_and_catch};
use crate::outage::limit_file_size;
use crate::world::{Engine, World};

const TEMPORARY_REFUSAL: &str = "451 4.3.0 The message cannot be stored at the moment, try again later";

fn bounce(sent: &SentMessage) -> String {
    notification(&sent.recipient, "failed", "5.1.1", "550 5.1.1 User unknown")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounce_refused_on_a_full_disk_is_accepted_later() {
    let world = World::start(Engine::Sqlite);
    let sent = send_and_catch(&world, "jo@example.com").await;
    limit_file_size(world.daemon.pid(), "4096");
    let large = format!("{}{}", bounce(&sent), "0123456789abcdef\r\n".repeat(60_000));
    for text in [&bounce(&sent), &large] {
        assert_eq!(mail_back(&world, &sent.return_path, text).await, TEMPORARY_REFUSAL);
    }
    limit_file_size(world.daemon.pid(), "unlimited");
    assert_eq!(world.expanded(sent.id).await["status"]["status"], "Sent");
    assert_eq!(mail_back(&world, &sent.return_path, &bounce(&sent)).await, "250 2.0.0 OK");
    assert_eq!(world.until_status(sent.id, "Bounced").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounce_refused_without_a_database_is_accepted_later() {
    let database = Database::create();
    let proxy = PgProxy::start(database.url());
    let world = World::start_on(Some(proxy.url()), Some(database), &[]);
    let sent = send_and_catch(&world, "jo@example.com").await;
    proxy.cut();
    assert_eq!(mail_back(&world, &sent.return_path, &bounce(&sent)).await, TEMPORARY_REFUSAL);
    proxy.restore();
    let reply = eventually(async || {
        let reply = mail_back(&world, &sent.return_path, &bounce(&sent)).await;
        if reply == TEMPORARY_REFUSAL {
            Err(format!("the bounce is not accepted: {reply}"))
        } else {
            Ok(reply)
        }
    });
    assert_eq!(reply.await, "250 2.0.0 OK");
    assert_eq!(world.until_status(sent.id, "Bounced").await.len(), 2);
}
