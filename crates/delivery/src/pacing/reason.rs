//! A receiver's reply as the reason why messages wait; the messages may belong to many servers.

use std::fmt;
use std::sync::Arc;

use postroad_model::ServerId;
use postroad_smtp::EnhancedCode;

/// Reader of a reason's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    Operator,
    Server(ServerId),
    /// Any server: the text is stored with messages of several servers.
    Anyone,
}

/// A receiver's reply. A reply to a message may quote the message: only the operator and the message's server see the
/// whole reply; others, and `Display`, get its codes. A reply to a connection is shown to everyone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    reply: Arc<str>,
    /// Server of the refused message; `None` if the reply came before any message, or was restored from a
    /// `PacingNote`.
    server: Option<ServerId>,
}

impl Reason {
    /// A reply to a message of this server, from `MAIL FROM` on.
    pub fn of_message(reply: &str, server: ServerId) -> Self {
        Self { reply: reply.into(), server: Some(server) }
    }

    /// A reply to a connection, before any message.
    pub fn of_connection(reply: &str) -> Self {
        Self { reply: reply.into(), server: None }
    }

    /// Restores the reason stored in a `PacingNote`. Keeps only the codes: earlier releases stored whole replies.
    pub fn restored(stored: &str) -> Self {
        Self { reply: codes(stored).into(), server: None }
    }

    /// The part that this reader may see.
    pub fn text(&self, reader: Reader) -> &str {
        let is_shown = match (self.server, reader) {
            (None, _) | (_, Reader::Operator) => true,
            (Some(server), Reader::Server(reader)) => server == reader,
            (Some(_), Reader::Anyone) => false,
        };
        if is_shown { &self.reply } else { self.codes() }
    }

    /// Whether the reply names this domain, alone or in an address; names of its hosts do not count.
    pub fn names_domain(&self, domain: &str) -> bool {
        let reply = self.reply.to_ascii_lowercase();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        reply.match_indices(&domain.to_ascii_lowercase()).any(|(at, found)| {
            let before = reply[..at].chars().next_back();
            let mut after = reply[at + found.len()..].chars();
            let is_longer = match after.next() {
                Some('.') => after.next().is_some_and(is_part),
                next => next.is_some_and(is_part),
            };
            !before.is_some_and(|c| is_part(c) || c == '.') && !is_longer
        })
    }

    /// The reply code and the enhanced code, if the reply has them.
    pub fn codes(&self) -> &str {
        codes(&self.reply)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(Reader::Anyone))
    }
}

/// The beginning of a reply: `451 4.7.1` or `451`; empty if there is no code.
fn codes(reply: &str) -> &str {
    let is_code = |code: &str| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let (code, rest) = reply.split_once(' ').unwrap_or((reply, ""));
    if !is_code(code) {
        return "";
    }
    let enhanced = EnhancedCode::find(rest).and(rest.split(' ').next());
    enhanced.map_or(code, |enhanced| &reply[..code.len() + 1 + enhanced.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_reply_is_shown_only_to_the_operator_and_the_server_of_the_message() {
        let (own, other) = (ServerId(1), ServerId(2));
        let reply = "451 4.7.1 <jane@one.example>: rate limited";
        let reason = Reason::of_message(reply, own);
        assert_eq!(reason.text(Reader::Operator), reply);
        assert_eq!(reason.text(Reader::Server(own)), reply);
        assert_eq!(reason.text(Reader::Server(other)), "451 4.7.1");
        assert_eq!(reason.to_string(), "451 4.7.1");
        assert_eq!(Reason::restored(reply).text(Reader::Operator), "451 4.7.1");
        assert_eq!(Reason::of_connection("421 go away").text(Reader::Server(other)), "421 go away");
    }

    #[test]
    fn a_domain_is_named_alone_or_in_an_address_but_not_by_its_hosts() {
        let names = |reply: &str| Reason::of_connection(reply).names_domain("one.example");
        assert!(names("451 4.7.1 <jane@One.example>: too many messages"));
        assert!(names("451 4.7.1 Domain one.example has exceeded its limit"));
        assert!(names("451 too many messages to one.example."));
        assert!(!names("421 mx.one.example slow down"));
        assert!(!names("421 one.example.net slow down"));
        assert!(!names("421 someone.example slow down"));
    }

    #[test]
    fn codes_end_before_the_text_of_the_reply() {
        let cases = [
            ("421 slow down", "421"),
            ("421", "421"),
            ("550 5.7.1", "550 5.7.1"),
            ("451 4.7.1jane@one.example x", "451"),
            ("jane@one.example", ""),
            ("", ""),
        ];
        for (reply, wanted) in cases {
            assert_eq!(codes(reply), wanted, "{reply}");
        }
    }
}
