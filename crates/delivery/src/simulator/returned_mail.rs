//! Messages that the simulator sends back: a bounce (RFC 3464) and a feedback report (RFC 5965), as real receivers
//! write them.

use postroad_model::{EmailAddress, Timestamp, token::random_text};

/// Enough of the original for its headers; real hosts cut as well.
const ORIGINAL_BYTES_MAX: usize = 16 << 10;

/// Data from which both messages are made.
pub(super) struct Original<'a> {
    pub(super) host: &'a str,
    /// Recipient of the returned mail.
    pub(super) return_path: &'a EmailAddress,
    /// The recipient of the original.
    pub(super) recipient: &'a EmailAddress,
    pub(super) bytes: &'a [u8],
    pub(super) now: Timestamp,
}

impl Original<'_> {
    pub(super) fn bounce(&self) -> String {
        let (host, recipient) = (self.host, self.recipient);
        let text = format!(
            "This is the mail system at host {host}.\r\n\r\nYour message could not be delivered to one recipient.\r\n\
             \r\n<{recipient}>: 550 5.1.1 User unknown in virtual mailbox table\r\n"
        );
        let fields = format!(
            "Reporting-MTA: dns; {host}\r\nArrival-Date: {date}\r\n\r\nFinal-Recipient: rfc822; {recipient}\r\n\
             Action: failed\r\nStatus: 5.1.1\r\nRemote-MTA: dns; {host}\r\n\
             Diagnostic-Code: smtp; 550 5.1.1 User unknown in virtual mailbox table\r\n",
            date = self.now.to_rfc2822(),
        );
        self.report(
            "Undelivered Mail Returned to Sender",
            "delivery-status",
            &text,
            ("message/delivery-status", &fields),
        )
    }

    pub(super) fn complaint(&self) -> String {
        let text = "This is an email abuse report for a message that one of our users called spam.\r\n";
        let fields = format!(
            "Feedback-Type: abuse\r\nUser-Agent: Postroad-Simulator/1.0\r\nVersion: 1\r\n\
             Original-Mail-From: <{return_path}>\r\nOriginal-Rcpt-To: <{recipient}>\r\nArrival-Date: {date}\r\n\
             Reporting-MTA: dns; {host}\r\n",
            return_path = self.return_path,
            recipient = self.recipient,
            date = self.now.to_rfc2822(),
            host = self.host,
        );
        self.report("Abuse report", "feedback-report", text, ("message/feedback-report", &fields))
    }

    /// RFC 6522: a text for people, fields for programs, the original's headers.
    fn report(&self, subject: &str, kind: &str, text: &str, (part, fields): (&str, &str)) -> String {
        let id = random_text(&mut rand::rng(), 24);
        let boundary = format!("report-{id}");
        format!(
            "From: Mail Delivery System <MAILER-DAEMON@{host}>\r\nTo: <{to}>\r\nSubject: {subject}\r\nDate: {date}\r\n\
             Message-ID: <{id}@{host}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type={kind};\r\n\tboundary=\"{boundary}\"\r\n\r\n\
             --{boundary}\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n{text}\r\n\
             --{boundary}\r\nContent-Type: {part}\r\n\r\n{fields}\r\n\
             --{boundary}\r\nContent-Type: text/rfc822-headers\r\n\r\n{headers}\r\n--{boundary}--\r\n",
            host = self.host,
            to = self.return_path,
            date = self.now.to_rfc2822(),
            headers = self.headers(),
        )
    }

    /// The original's headers, without bytes that are not ASCII text: a customer's raw message may contain anything.
    fn headers(&self) -> String {
        let cut = &self.bytes[..self.bytes.len().min(ORIGINAL_BYTES_MAX)];
        let original = String::from_utf8_lossy(cut);
        let head = original.split("\r\n\r\n").next().unwrap_or_default();
        let lines = head.split("\r\n").map(|line| {
            line.chars().filter(|c| c.is_ascii_graphic() || matches!(c, ' ' | '\t')).collect::<String>()
                + "\r\n"
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use postroad_mail::returned::{ReturnedKind, read};
    use postroad_model::BounceClass;

    use super::*;

    #[test]
    fn the_bounce_and_the_complaint_are_recognised() {
        let return_path = EmailAddress::parse("token-mac@rp.example.test").unwrap();
        let recipient = EmailAddress::parse("bounce-later@sim.postroad.test").unwrap();
        let original = Original {
            host: "sim.postroad.test",
            return_path: &return_path,
            recipient: &recipient,
            bytes: b"Subject: \xff\n odd\0\r\nMessage-ID: <one@example.test>\r\n\r\nHello\r\n",
            now: Timestamp::from_micros(0),
        };
        let bounce = read(original.bounce().as_bytes());
        let reported = &bounce.recipients[0];
        assert_eq!((bounce.kind, reported.class), (ReturnedKind::Bounce, Some(BounceClass::BadMailbox)));
        assert!(reported.permanent && reported.hard);
        assert_eq!(reported.recipient.as_deref(), Some(recipient.as_str()));
        assert_eq!(bounce.original_message_id.as_deref(), Some("one@example.test"));
        let complaint = read(original.complaint().as_bytes());
        assert_eq!(complaint.kind, ReturnedKind::Complaint);
        assert_eq!(complaint.recipients[0].recipient.as_deref(), Some(recipient.as_str()));
        assert_ne!(bounce.message_id, complaint.message_id);
    }
}
