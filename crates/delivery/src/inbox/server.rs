//! The inbox's own mail server: the last hop in `postroad dev` is a real SMTP session.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use postroad_boxed_futures::boxed_futures;
use postroad_smtp::Reply;
use postroad_smtp::server::{MailFrom, RcptTo, StandardReply};

use super::Inbox;
use crate::local_smtp::{IncomingMessage, LocalSmtp, Policy, RcptReply};

/// Mail server of the inbox; stops when dropped.
#[derive(Debug)]
pub struct InboxServer {
    _server: LocalSmtp,
}

#[boxed_futures]
impl InboxServer {
    /// Listens on a free loopback port; everything sent there ends in `inbox`.
    pub async fn start(inbox: Inbox) -> io::Result<(Self, SocketAddr)> {
        let (server, address) = LocalSmtp::start("inbox.postroad.test", Arc::new(CatchAll(inbox))).await?;
        Ok((Self { _server: server }, address))
    }
}

struct CatchAll(Inbox);

impl Policy for CatchAll {
    fn rcpt(&self, _: &MailFrom, _: &RcptTo) -> RcptReply {
        RcptReply::Say(StandardReply::RecipientOk.into())
    }

    fn take(&self, received: IncomingMessage) -> Reply {
        self.0.catch(&received);
        Reply::new(250, vec!["2.0.0 OK caught in the inbox".to_owned()])
    }
}
