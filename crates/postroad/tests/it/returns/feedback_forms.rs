//! Reports of feedback loops as large receivers write them, around a message that was sent.

/// Yahoo: every part of RFC 5965, with the message unchanged.
pub(super) fn yahoo(original: &str, mail_from: &str, recipient: &str) -> String {
    format!(
        "Received: from 127.0.0.1 by omp.mail.yahoo.example with SMTP; Mon, 16 Nov 2026 10:00:00 +0000\r\n\
         From: Yahoo! Mail AntiSpam Feedback <feedback@arf.mail.yahoo.example>\r\nSubject: FW: Your order\r\n\
         Message-ID: <arf.{recipient}@mail.yahoo.example>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; boundary=\"=_yahoo\"; report-type=feedback-report\r\n\r\n\
         --=_yahoo\r\nContent-Type: text/plain; charset=US-ASCII\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
         This is an email abuse report for an email message from example.test on Mon, 16 Nov 2026 10:00:00 +0000\r\n\r\n\
         --=_yahoo\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n\
         User-Agent: Yahoo!-Mail-Feedback/2.0\r\nVersion: 0.1\r\nOriginal-Mail-From: <{mail_from}>\r\n\
         Original-Rcpt-To: {recipient}\r\nReceived-Date: Mon, 16 Nov 2026 10:00:00 +0000\r\n\
         Reported-Domain: example.test\r\nAuthentication-Results: mta.mail.yahoo.example; dkim=pass (ok) header.d=example.test\r\n\
         \r\n--=_yahoo\r\nContent-Type: message/rfc822\r\nContent-Disposition: inline\r\n\r\n\
         X-Apparently-To: {recipient}; Mon, 16 Nov 2026 10:00:00 +0000\r\n{original}\r\n--=_yahoo--\r\n"
    )
}

/// Microsoft's JMRP: no machine-readable part, only the message with a header that Microsoft added.
pub(super) fn microsoft(original: &str, recipient: &str) -> String {
    format!(
        "Received: from BAY004-FBL ([198.51.100.1]) by BAY004.hotmail.example with Microsoft SMTPSVC; \
         Mon, 16 Nov 2026 10:00:00 +0000\r\nDate: Mon, 16 Nov 2026 10:00:00 +0000\r\nFrom: <staff@hotmail.example>\r\n\
         Subject:  complaint about message from 192.0.2.222\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"F0000EEE2-0000\"\r\nMessage-ID: <jmrp.{recipient}@hotmail.example>\r\n\r\n\
         --F0000EEE2-0000\r\nContent-Type: message/rfc822\r\nContent-Disposition: inline\r\n\r\n\
         X-HmXmrOriginalRecipient: <{recipient}>\r\nX-Reporter-IP: 192.0.2.22\r\nX-SID-Result: PASS\r\n{original}\r\n\
         --F0000EEE2-0000--\r\n"
    )
}

/// Comcast, whose reports Validity sends: the recipient is redacted everywhere.
pub(super) fn comcast(original: &str, recipient: &str) -> String {
    let redacted = original.replace(recipient, "redacted@comcast.example");
    format!(
        "From: Comcast FBL Service <feedbackloop@comcastfbl.senderscore.example>\r\nSubject: Comcast Abuse Report\r\n\
         Message-ID: <1.fbl@mailstream.senderscore.example>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=47ddcc\r\n\r\n\
         --47ddcc\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
         This is a Comcast Abuse Report for an email message received from domain =\r\nexample.test\r\n\r\n\
         --47ddcc\r\nContent-Disposition: inline\r\nContent-Type: message/feedback-report\r\n\r\n\
         Source-Ip: 192.0.2.1\r\nUser-Agent: ReturnPathFBL/2.0\r\nOriginal-Rcpt-To: 1b2c3d4e5f@comcast.example\r\n\
         Source: Comcast\r\nAbuse-Type: complaint\r\nFeedback-Type: abuse\r\nVersion: 1\r\n\r\n\
         --47ddcc\r\nContent-Disposition: inline\r\nContent-Type: message/rfc822\r\n\r\n{redacted}\r\n--47ddcc--\r\n"
    )
}

/// A report that encloses only the message's headers, which RFC 5965 2 allows.
pub(super) fn headers_of(original: &str) -> String {
    let headers = original.split("\r\n\r\n").next().unwrap_or_default();
    format!(
        "From: abuse@isp.example\r\nSubject: Abuse report\r\nMessage-ID: <headers@isp.example>\r\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\r\nSpam.\r\n--b\r\n\
         Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\nUser-Agent: Isp/1\r\n\r\n--b\r\n\
         Content-Type: text/rfc822-headers\r\n\r\n{headers}\r\n\r\n--b--\r\n"
    )
}
