//! A recipient's domain that refuses our mail, by its own policy or as too fast for the domain. While it has refused
//! mail of only one server, the mail of others continues.

use std::time::Duration;

use postroad_model::{ServerId, Timestamp};

use crate::pacing::{Reason, Standstill};

#[derive(Debug, Default)]
pub(super) struct DomainTrouble {
    standstill: Standstill,
    /// The server whose mail was refused; `None` if mail of several servers was.
    only_server: Option<ServerId>,
}

impl DomainTrouble {
    /// A message of this server was refused; `needed` refusals in a row stop sending.
    pub(super) fn on_refused(&mut self, server: ServerId, needed: u32, reason: &Reason, now: Timestamp) {
        if self.standstill.is_clear() {
            self.only_server = Some(server);
        } else if self.only_server != Some(server) {
            self.only_server = None;
        }
        self.standstill.on_refused(needed, reason, now);
    }

    /// Ends the standstill, if it concerns this server. Returns whether its mail was stopped until now.
    pub(super) fn end(&mut self, server: ServerId) -> bool {
        self.concerns(server) && self.standstill.end()
    }

    pub(super) fn concerns(&self, server: ServerId) -> bool {
        self.only_server.is_none_or(|only_server| only_server == server)
    }

    pub(super) fn is_stopped(&self, server: ServerId) -> bool {
        self.concerns(server) && self.standstill.is_stopped()
    }

    /// Whether no refusals are remembered.
    pub(super) fn is_clear(&self) -> bool {
        self.standstill.is_clear()
    }

    pub(super) fn blocked_until(&self, server: ServerId, now: Timestamp) -> Option<Timestamp> {
        self.standstill.blocked_until(now).filter(|_| self.concerns(server))
    }

    /// Call right before a message of this server is sent.
    pub(super) fn on_send(&mut self, server: ServerId, now: Timestamp) {
        if self.concerns(server) {
            self.standstill.on_send(now);
        }
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        self.standstill.since()
    }

    /// The receiver's reply.
    pub(super) fn reason(&self) -> Reason {
        self.standstill.reason()
    }

    pub(super) fn shift_back(&mut self, by: Duration) {
        self.standstill.shift_back(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(server: ServerId) -> Reason {
        Reason::of_message("550 5.7.1 rejected by policy", server)
    }

    #[test]
    fn refused_mail_of_one_server_stops_its_mail_and_refused_mail_of_two_servers_stops_all_mail() {
        let (spammer, other, third) = (ServerId(1), ServerId(2), ServerId(3));
        let now = Timestamp::from_micros(1_794_711_600_000_000);
        let mut trouble = DomainTrouble::default();
        for _ in 0..3 {
            assert!(!trouble.end(other), "no mail of the other server was stopped");
            trouble.on_refused(spammer, 3, &refusal(spammer), now);
        }
        assert!(trouble.is_stopped(spammer) && !trouble.is_stopped(other));
        assert_eq!(trouble.blocked_until(other, now), None);
        assert!(
            !trouble.end(other) && trouble.is_stopped(spammer),
            "accepted mail of one server does not end another's standstill"
        );

        trouble.on_refused(other, 3, &refusal(other), now);
        assert!(trouble.is_stopped(third));
        assert!(trouble.end(third) && trouble.is_clear());
    }

    #[test]
    fn accepted_mail_ends_the_standstill_of_its_server() {
        let (server, now) = (ServerId(1), Timestamp::from_micros(1_794_711_600_000_000));
        let mut trouble = DomainTrouble::default();
        for _ in 0..3 {
            trouble.on_refused(server, 3, &refusal(server), now);
        }
        assert!(trouble.end(server) && trouble.is_clear() && !trouble.is_stopped(server));
    }
}
