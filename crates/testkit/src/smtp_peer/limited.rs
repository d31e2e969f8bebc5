//! Connects the SMTP peer's sockets, on the real clock, to a `HiddenReceiver`, which the pacing simulation uses too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use postroad_model::Timestamp;

use super::answer::{Answer, RuleContext, Stage};
use crate::hidden_receiver::{HiddenLimits, HiddenReceiver, OfferedMessage, Refusal, RefusedAt};

#[derive(Debug)]
pub(super) struct LimitedReceiver {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    receiver: HiddenReceiver,
    /// Connection numbers of the receiver, by the peer's connection numbers.
    connections: HashMap<u32, u64>,
    sources: Vec<IpAddr>,
    messages: i64,
}

impl LimitedReceiver {
    pub(super) fn new(limits: HiddenLimits) -> Self {
        let receiver = HiddenReceiver::new(limits, Timestamp::from_micros(0));
        let state = State { receiver, connections: HashMap::new(), sources: Vec::new(), messages: 0 };
        Self { started: Instant::now(), state: Mutex::new(state) }
    }

    pub(super) fn inspect<T>(&self, read: impl FnOnce(&HiddenReceiver) -> T) -> T {
        read(&self.state.lock().receiver)
    }

    /// A refusal, or the default reply after the receiver's delay. `None` at stages that the receiver does not limit.
    pub(super) fn answer(&self, context: &RuleContext<'_>, default: &str) -> Option<Answer> {
        let mut state = self.state.lock();
        let now = Timestamp::from_micros(self.started.elapsed().as_micros() as i64);
        let (at, time) = match context.stage {
            Stage::Banner => (RefusedAt::Banner, state.receiver.limits().connect_time),
            Stage::MailFrom => (RefusedAt::MailFrom, Duration::ZERO),
            Stage::RcptTo => (RefusedAt::RcptTo, Duration::ZERO),
            Stage::Message => (RefusedAt::EndOfData, state.receiver.limits().message_time),
            _ => return None,
        };
        match state.offer(at, context, now) {
            Ok(()) => Some(Answer::reply(default).after(time)),
            Err(Refusal { reply, closes, .. }) => {
                let answer = Answer::reply(&reply);
                Some(if closes { answer.then_close() } else { answer })
            }
        }
    }

    pub(super) fn disconnect(&self, connection: u32) {
        let mut state = self.state.lock();
        if let Some(number) = state.connections.remove(&connection) {
            state.receiver.disconnect(number);
        }
    }
}

impl State {
    fn offer(&mut self, at: RefusedAt, context: &RuleContext<'_>, now: Timestamp) -> Result<(), Refusal> {
        if at == RefusedAt::Banner {
            let source = self.source(context.client);
            let number = self.receiver.connect(source, now)?;
            self.connections.insert(context.connection, number);
            return Ok(());
        }
        // Read from the command: `context.rcpt_to` has only the recipients that were accepted before.
        let (_, path) = context.line.split_once('<').unwrap_or_default();
        let path = path.split('>').next().unwrap_or_default();
        let recipient = if at == RefusedAt::RcptTo { path } else { "" };
        let offered = OfferedMessage { id: self.messages, sender: context.mail_from, recipient };
        let number = self.connections.get(&context.connection).copied().unwrap_or_default();
        self.receiver.offer_stage(at, number, offered, now)?;
        self.messages += i64::from(at == RefusedAt::EndOfData);
        Ok(())
    }

    fn source(&mut self, client: IpAddr) -> i64 {
        let known = self.sources.iter().position(|source| *source == client);
        let index = known.unwrap_or_else(|| {
            self.sources.push(client);
            self.sources.len() - 1
        });
        index as i64
    }
}
