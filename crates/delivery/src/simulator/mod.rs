//! The simulator: recipients that behave as their name says, so that people can see what their application does with a
//! bounce without harming anybody. Delivery talks to it as to any other mail server.

mod behaviour;
mod repeats;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use postroad_smtp::Reply;
use postroad_smtp::server::{MailFrom, RcptTo, StandardReply};

use crate::local_smtp::{Answer, LocalSmtp, Policy, Received};
use behaviour::Behaviour;
use repeats::Repeats;

/// Simulates until it is dropped.
#[derive(Debug)]
pub struct SimulatorServer {
    _server: LocalSmtp,
}

impl SimulatorServer {
    /// On a free port of the loopback.
    pub async fn start() -> io::Result<(Self, SocketAddr)> {
        let (server, address) = LocalSmtp::start("sim.postroad.test", Arc::new(Simulator::default())).await?;
        Ok((Self { _server: server }, address))
    }
}

#[derive(Default)]
struct Simulator {
    repeats: Mutex<Repeats>,
}

impl Policy for Simulator {
    fn rcpt(&self, mail_from: &MailFrom, rcpt: &RcptTo) -> Answer {
        match Behaviour::of(rcpt.address.local_part()) {
            Behaviour::Say(reply) => Answer::Say(reply),
            Behaviour::Silent => Answer::Silence,
            Behaviour::SayFirst { times, reply } => {
                // The return path is the message's own, so it tells one message's attempts from another's.
                let attempt = format!("{} {}", rcpt.address.mailbox_key(), mail_from.path);
                let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
                let is_early = repeats.count(attempt) <= times;
                Answer::Say(if is_early { reply } else { StandardReply::RecipientOk.into() })
            }
        }
    }

    fn take(&self, _: Received) -> Reply {
        Reply::new(250, vec!["2.0.0 OK taken by the simulator".to_owned()])
    }
}
