//! Bounces, complaints and automatic replies, and the SMTP replies in them.

use postroad_mail::{Reply, classify, returned};

use super::{Target, texts};

pub(super) const TARGET: Target = Target {
    name: "returned",
    run,
    seeds,
    frames: &[
        "{}",
        "Subject: {}\r\n\r\n",
        "From: mailer-daemon@x\r\nSubject: Undelivered\r\n\r\n{}",
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: \
         message/delivery-status\r\n\r\n{}",
        "Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\n{}",
        "Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n{}",
        "550 {}",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered Mail\r\nContent-Type: multipart/report; \
         report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nSorry.\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; a@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <1@x>\r\n\
         \r\n--b--\r\n",
        "From: fbl@example.net\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\r\nspam\r\n\
         --b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: x\r\nVersion: 1\r\n\
         Original-Rcpt-To: <a@example.com>\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nhi\r\n--b--\r\n",
        "Subject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nI am away.\r\n",
        "Subject: failure notice\r\n\r\nHi. This is the qmail-send program.\r\n<a@example.com>:\r\n192.0.2.1 does not like \
         recipient.\r\nRemote host said: 550 5.1.1 unknown user\r\n",
        "452-4.2.2 over quota\r\n452 4.2.2 try later",
    ])
}

fn run(bytes: &[u8]) {
    let returned = returned::read(bytes);
    for recipient in &returned.recipients {
        assert!(!recipient.hard || recipient.permanent, "a hard bounce is permanent");
    }
    if let Ok(reply) = Reply::parse(&String::from_utf8_lossy(bytes)) {
        let _ = classify(&reply);
    }
}
