//! The simulator: recipients that behave as their name says, so that people can see how their application handles a
//! bounce without harming anybody. Delivery sends to it by SMTP, without gates and rates, with short retry pauses.
//! Returned mail arrives by SMTP at our own bounce listener.

mod attempt_counts;
mod behaviour;
mod links;
mod return_queue;
mod returned_mail;
mod visit;
mod visit_queue;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{Clock, DomainName, EmailAddress};
use postroad_smtp::Reply;
use postroad_smtp::server::{MailFrom, RcptTo, ReversePath, StandardReply};
use tokio::sync::watch;

use crate::local_smtp::{IncomingMessage, LocalSmtp, Policy, RcptReply};
use attempt_counts::AttemptCounts;
use behaviour::{Behaviour, FollowUp};
use return_queue::ReturnQueue;
use returned_mail::Original;
use visit_queue::VisitQueue;

const HOST: &str = "sim.postroad.test";

/// Mail server of the simulator; stops when dropped.
#[derive(Debug)]
pub struct SimulatorServer {
    _server: LocalSmtp,
    bounce_listener: watch::Sender<Option<SocketAddr>>,
    http_address: watch::Sender<Option<SocketAddr>>,
}

#[boxed_futures]
impl SimulatorServer {
    /// Starts on a free port of the loopback address.
    pub async fn start(clock: Arc<dyn Clock>) -> io::Result<(Self, SocketAddr)> {
        let (bounce_listener, bounce_listener_changes) = watch::channel(None);
        let name = DomainName::parse(HOST).expect("the constant is a domain name");
        let (http_address, http_address_changes) = watch::channel(None);
        let simulator = Simulator {
            clock,
            attempts: Mutex::default(),
            return_queue: ReturnQueue::start(name, bounce_listener_changes),
            visits: VisitQueue::start(http_address_changes),
        };
        let (server, address) = LocalSmtp::start(HOST, Arc::new(simulator)).await?;
        Ok((Self { _server: server, bounce_listener, http_address }, address))
    }

    /// Sets the listener to which bounces and complaints are sent from now on.
    pub(crate) fn set_bounce_listener(&self, bounce_listener: SocketAddr) {
        self.bounce_listener.send_replace(Some(bounce_listener));
    }

    /// Sets the address from which pixels and links are fetched from now on.
    pub(crate) fn set_http_address(&self, http_address: SocketAddr) {
        self.http_address.send_replace(Some(http_address));
    }
}

struct Simulator {
    clock: Arc<dyn Clock>,
    attempts: Mutex<AttemptCounts>,
    return_queue: ReturnQueue,
    visits: VisitQueue,
}

impl Simulator {
    fn follow_up(&self, received: &IncomingMessage, return_path: &EmailAddress, recipient: &EmailAddress) {
        let original =
            Original { host: HOST, return_path, recipient, bytes: &received.bytes, now: self.clock.now() };
        let text = match FollowUp::of(recipient.local_part()) {
            FollowUp::Nothing => return,
            FollowUp::Visit(visit) => return self.visits.submit(visit, received.bytes.clone()),
            FollowUp::Bounce => original.bounce(),
            FollowUp::Complaint => original.complaint(),
        };
        self.return_queue.submit(return_path.clone(), text);
    }
}

impl Policy for Simulator {
    fn rcpt(&self, mail_from: &MailFrom, rcpt: &RcptTo) -> RcptReply {
        match Behaviour::of(rcpt.address.local_part()) {
            Behaviour::Say(reply) => RcptReply::Say(reply),
            Behaviour::Silent => RcptReply::Silence,
            Behaviour::SayFirst { times, reply } => {
                // A return path is unique to its message, so it distinguishes the attempts of different messages. Only
                // messages with the null reverse-path share a count.
                let key = format!("{} {}", rcpt.address.mailbox_key(), mail_from.path);
                let mut attempts = self.attempts.lock();
                let is_early = attempts.count(key) <= times;
                RcptReply::Say(if is_early { reply } else { StandardReply::RecipientOk.into() })
            }
        }
    }

    fn take(&self, received: IncomingMessage) -> Reply {
        let envelope = &received.envelope;
        if let ReversePath::Address(return_path) = &envelope.mail_from.path {
            for rcpt in &envelope.rcpt_to {
                self.follow_up(&received, return_path, &rcpt.address);
            }
        }
        Reply::new(250, vec!["2.0.0 OK taken by the simulator".to_owned()])
    }
}
