//! Reads and parses the stored bytes of a message. Permits limit how many messages are in memory at the same time. A
//! permit is held until its message is dropped, even if the reader has disconnected.

use axum::body::Bytes;
use postroad_app::access::Operation;
use postroad_app::{MessageDetail, MessageView, view_message};
use postroad_model::{AccountId, MessageId};
use postroad_net::limits::{ByteShare, FairPermit};
use postroad_store::Message;

use crate::problem::Problem;
use crate::visit::Visit;
use crate::work_permits::WorkPermits;

/// A parsed message with its permit.
pub(crate) struct ParsedMessage {
    pub(crate) view: MessageView,
    pub(crate) permit: FairPermit,
}

/// The record of a message, or 404.
pub(crate) async fn record(visit: &Visit, server: i64, id: i64) -> Result<Message, Problem> {
    let caller = visit.caller(server, Operation::MessagesMessage).await?;
    let found = visit.app().find_message(&caller, MessageId(id), MessageDetail::Record).await?;
    found.record.ok_or(Problem::NotFound)
}

/// The stored bytes; `None` if retention has removed them.
pub(super) async fn bytes(visit: &Visit, server: i64, record: &Message) -> Result<Option<Vec<u8>>, Problem> {
    let caller = visit.caller(server, Operation::MessagesMessage).await?;
    Ok(visit.app().read_message_bytes(&caller, record).await?)
}

/// The parsed message; `None` if retention has removed its bytes.
pub(crate) async fn view(
    visit: &Visit,
    server: i64,
    record: &Message,
) -> Result<Option<ParsedMessage>, Problem> {
    let permit = visit.state.work.body(visit.person.user.account_id).await?;
    let Some(bytes) = bytes(visit, server, record).await? else { return Ok(None) };
    parse(bytes, permit).await.map(Some)
}

/// Parses a message off the async threads.
pub(crate) async fn parse(
    bytes: impl AsRef<[u8]> + Send + 'static,
    permit: FairPermit,
) -> Result<ParsedMessage, Problem> {
    let work = move || ParsedMessage { view: view_message(bytes.as_ref()), permit };
    run_blocking(work).await
}

/// Runs long work off the async threads. The work owns its permits and returns them, because it continues even if the
/// reader disconnects.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::Internal(error.to_string()))
}

/// Content of a download or preview, with its share of the memory. The share is tied to the bytes, not to the answer:
/// hyper drops the answer when it takes the last piece, which a slow reader may receive much later.
pub(super) async fn with_memory_share(
    visit: &Visit,
    content: impl AsRef<[u8]> + Send + 'static,
) -> Result<Bytes, Problem> {
    with_share_of(&visit.state.work, visit.person.user.account_id, content).await
}

/// `with_memory_share` without a `Visit`, for tests.
async fn with_share_of(
    work: &WorkPermits,
    account: AccountId,
    content: impl AsRef<[u8]> + Send + 'static,
) -> Result<Bytes, Problem> {
    let share = work.download(account, content.as_ref().len()).await?;
    Ok(Bytes::from_owner(CountedContent { content, _share: share }))
}

struct CountedContent<T> {
    content: T,
    _share: ByteShare,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for CountedContent<T> {
    fn as_ref(&self) -> &[u8] {
        self.content.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const ACCOUNT: AccountId = AccountId(1);
    const MOMENT: Duration = Duration::from_millis(50);

    /// Bytes of a message that take long to read.
    struct Slow(Receiver<()>);

    impl AsRef<[u8]> for Slow {
        fn as_ref(&self) -> &[u8] {
            self.0.recv().ok();
            b"Subject: x\r\n\r\nx"
        }
    }

    #[tokio::test]
    async fn a_permit_is_held_while_a_message_is_parsed_even_if_its_reader_has_gone() {
        let work = WorkPermits::default();
        let mut parsing: Vec<Sender<()>> = Vec::new();
        while let Ok(permit) = timeout(MOMENT, work.body(ACCOUNT)).await {
            let (end, wait) = channel();
            parsing.push(end);
            let reader = parse(Slow(wait), permit.expect("it was free"));
            assert!(timeout(MOMENT, reader).await.is_err(), "it takes long");
            assert!(parsing.len() < 10, "permits are limited");
        }
        parsing.pop();
        let permit = work.body(ACCOUNT).await.expect("one is parsed");
        let parsed = parse(b"Subject: x\r\n\r\nx".to_vec(), permit).await.expect("it is short");
        assert!(timeout(MOMENT, work.body(ACCOUNT)).await.is_err(), "the parsed message holds the permit");
        drop(parsed);
        work.body(ACCOUNT).await.expect("it is free again");
        drop(parsing);
    }

    #[tokio::test]
    async fn a_download_counts_until_it_is_sent() {
        let work = WorkPermits::default();
        let large = with_share_of(&work, ACCOUNT, vec![0_u8; 100 << 20])
            .await
            .expect("it gets all that the account may have");
        let piece = large.slice(..1);
        drop(large);
        assert!(
            timeout(MOMENT, with_share_of(&work, ACCOUNT, "x")).await.is_err(),
            "a piece of it is not sent"
        );
        with_share_of(&work, AccountId(2), "x").await.expect("others have their own share");
        drop(piece);
        with_share_of(&work, ACCOUNT, "x").await.expect("it was sent");
    }
}
