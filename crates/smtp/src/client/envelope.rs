//! MAIL and RCPT commands.

use postroad_model::EmailAddress;

use super::config::OutgoingMessage;
use crate::capabilities::Capabilities;

/// The MAIL command, with only those parameters that the server offers (RFC 5321 2.2.1) and that are needed.
pub(super) fn mail_line(message: &OutgoingMessage, offered: &Capabilities) -> String {
    let mut line = format!("MAIL FROM:<{}>", message.mail_from.as_ref().map(mailbox).unwrap_or_default());
    if offered.size {
        line.push_str(" SIZE="); // RFC 1870 6
        line.push_str(&message.body.len().to_string());
    }
    // If 8BITMIME is not offered, the bytes are sent unchanged: RFC 6152 3 requires recoding, which would break the
    // signature, and hosts that are not 8-bit clean have died out.
    if offered.eight_bit_mime && message.body.is_eight_bit() {
        line.push_str(" BODY=8BITMIME"); // RFC 6152 2
    }
    // The server offers SMTPUTF8: otherwise `verdict_without_sending` has refused the message.
    if message.needs_smtputf8() {
        line.push_str(" SMTPUTF8"); // RFC 6531 3.4
    }
    line
}

pub(super) fn rcpt_line(message: &OutgoingMessage) -> String {
    format!("RCPT TO:<{}>", mailbox(&message.rcpt_to))
}

/// The address with the ASCII form of its domain, which every server accepts.
fn mailbox(address: &EmailAddress) -> String {
    format!("{}@{}", address.local_part(), address.domain())
}
