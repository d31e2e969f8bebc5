//! Table of the standard replies of server sessions and their drivers (docs/smtp.md).

use crate::reply::Reply;

/// Standard reply, named by its situation. A driver may also send its own `Reply`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StandardReply {
    // Success.
    Ok,
    SenderOk,
    RecipientOk,
    ChunkOk,
    SendMessage,
    Authenticated,
    StartTls,
    CannotVerify,
    Help,
    Goodbye,
    // Invalid commands.
    UnknownCommand,
    BareNewlineInCommand,
    CommandTooLong,
    CommandNotText,
    BadArguments,
    BadChunkSize,
    NotImplemented,
    UnknownMechanism,
    UnknownParameter,
    // Commands out of order.
    GreetFirst,
    MailFirst,
    MailAlready,
    ChunksBegun,
    NoRecipients,
    TlsAlready,
    AuthAlready,
    AuthDuringMail,
    // Authentication.
    MustStartTls,
    MustAuthenticate,
    AuthMalformed,
    AuthCancelled,
    BadCredentials,
    // Envelope.
    BadSender,
    BadRecipient,
    SourceRoute,
    Utf8NotAnnounced,
    TooManyRecipients,
    // Message.
    TooLarge,
    BareNewlineInMessage,
    NulInMessage,
    TextLineTooLong,
    // Decided by drivers.
    FromNotAuthorised,
    Suspended,
    StorageTrouble,
    // End of the session.
    Idle,
    ShuttingDown,
    TooManyErrors,
    TooManyCommands,
    TooManyBadCredentials,
    TooMuchAhead,
    NotSmtp,
}

use StandardReply as R;

/// Code and text of each reply, in the order of the enum.
const TABLE: [(StandardReply, u16, &str); 51] = [
    (R::Ok, 250, "2.0.0 OK"),
    (R::SenderOk, 250, "2.1.0 Sender OK"),
    (R::RecipientOk, 250, "2.1.5 Recipient OK"),
    (R::ChunkOk, 250, "2.0.0 Chunk OK"),
    (R::SendMessage, 354, "Send the message, end it with <CR><LF>.<CR><LF>"),
    (R::Authenticated, 235, "2.7.0 Authentication succeeded"),
    (R::StartTls, 220, "2.0.0 Ready to start TLS"),
    (R::CannotVerify, 252, "2.0.0 Cannot verify the user, but will take a message and try"), // RFC 5321 3.5.3
    (R::Help, 214, "2.0.0 EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, BDAT, RSET, NOOP, QUIT; see RFC 5321"),
    (R::Goodbye, 221, "2.0.0 Bye"),
    (R::UnknownCommand, 500, "5.5.1 Command not recognised"),
    (R::BareNewlineInCommand, 500, "5.5.2 A line ends with CRLF, and holds no other CR or LF"),
    (R::CommandTooLong, 500, "5.5.2 Line too long"),
    (R::CommandNotText, 500, "5.5.2 A command is UTF-8 text without control characters"),
    (R::BadArguments, 501, "5.5.4 Syntax error in the arguments"),
    (R::BadChunkSize, 501, "5.5.4 The size of the chunk cannot be read, closing the connection"),
    (R::NotImplemented, 502, "5.5.1 Command not implemented"),
    (R::UnknownMechanism, 504, "5.5.4 Authentication mechanism not offered"),
    (R::UnknownParameter, 555, "5.5.4 Parameter not recognised"),
    (R::GreetFirst, 503, "5.5.1 Say EHLO first"),
    (R::MailFirst, 503, "5.5.1 Say MAIL first"),
    (R::MailAlready, 503, "5.5.1 The sender was already named"),
    (R::ChunksBegun, 503, "5.5.1 The message has already begun with BDAT"),
    (R::NoRecipients, 554, "5.5.1 No valid recipients"),
    (R::TlsAlready, 503, "5.5.1 TLS is already on"),
    (R::AuthAlready, 503, "5.5.1 Already authenticated"),
    (R::AuthDuringMail, 503, "5.5.1 Not in the middle of a message"), // RFC 4954 4
    (R::MustStartTls, 530, "5.7.0 Must issue a STARTTLS command first"), // RFC 3207 4
    (R::MustAuthenticate, 530, "5.7.0 Authentication required"),
    (R::AuthMalformed, 501, "5.5.2 The authentication cannot be decoded"),
    (R::AuthCancelled, 501, "5.7.0 Authentication cancelled"),
    (R::BadCredentials, 535, "5.7.8 Authentication credentials invalid"),
    (R::BadSender, 501, "5.1.7 The sender's address is not valid"),
    (R::BadRecipient, 501, "5.1.3 The recipient's address is not valid"),
    (R::SourceRoute, 553, "5.1.3 Source routes are not accepted"),
    (R::Utf8NotAnnounced, 553, "5.6.7 The address needs SMTPUTF8 with MAIL"), // RFC 6531 3.5
    (R::TooManyRecipients, 452, "4.5.3 Too many recipients"),
    (R::TooLarge, 552, "5.3.4 The message is too large"),
    (R::BareNewlineInMessage, 550, "5.6.0 The message holds a CR or LF that is not part of a CRLF"),
    (R::NulInMessage, 550, "5.6.0 The message holds a NUL byte"),
    (R::TextLineTooLong, 550, "5.6.0 The message holds a line that is too long"),
    (R::FromNotAuthorised, 550, "5.7.1 The From address is not authorised to send mail from this server"),
    (R::Suspended, 554, "5.7.1 The mail server has been suspended"),
    (R::StorageTrouble, 451, "4.3.0 The message cannot be stored at the moment, try again later"),
    (R::Idle, 421, "4.4.2 Idle for too long, closing the connection"),
    (R::ShuttingDown, 421, "4.3.2 The service is shutting down, closing the connection"),
    (R::TooManyErrors, 421, "4.7.0 Too many errors, closing the connection"),
    (R::TooManyCommands, 421, "4.7.0 Too many commands, closing the connection"),
    (R::TooManyBadCredentials, 421, "4.7.0 Too many failed authentications, closing the connection"),
    (R::TooMuchAhead, 421, "4.7.0 Too much input ahead of its answers, closing the connection"),
    (R::NotSmtp, 421, "4.7.0 This is not a web server, closing the connection"),
];

impl StandardReply {
    pub const fn code(self) -> u16 {
        TABLE[self as usize].1
    }

    /// Text, with the enhanced code if it has one.
    pub const fn text(self) -> &'static str {
        TABLE[self as usize].2
    }
}

impl From<StandardReply> for Reply {
    fn from(standard: StandardReply) -> Self {
        Self::new(standard.code(), vec![standard.text().to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_are_sorted_and_their_codes_agree() {
        for (row, (standard, code, text)) in TABLE.iter().enumerate() {
            assert_eq!(*standard as usize, row, "{standard:?}");
            let reply = Reply::from(*standard);
            // RFC 2034 4: no enhanced codes with 3yz.
            match reply.enhanced {
                Some(enhanced) => assert_eq!(u16::from(enhanced.class), code / 100, "{text}"),
                None => assert_eq!(*code, 354, "{text}"),
            }
            assert!(text.is_ascii() && text.len() < 500, "{text}");
        }
    }

    #[test]
    fn no_two_situations_have_the_same_reply() {
        let texts: HashSet<_> = TABLE.iter().map(|(_, code, text)| (code, text)).collect();
        assert_eq!(texts.len(), TABLE.len());
    }
}
