//! Parameters of MAIL and RCPT: `NAME` or `NAME=value`, each at most once.

use super::config::Extensions;
use super::envelope::{MailFrom, Notify, RcptTo, Ret};
use super::replies::StandardReply;

/// Longest ENVID (RFC 3461 4.4).
const ENVID_BYTES_MAX: usize = 100;
/// Longest ORCPT (RFC 3461 4.2).
const ORCPT_BYTES_MAX: usize = 500;

/// Parses the parameters of MAIL and stores them in `mail`.
pub(super) fn apply_to_mail(
    mail: &mut MailFrom,
    text: &str,
    offered: Extensions,
) -> Result<(), StandardReply> {
    for parameter in parse_parameters(text)? {
        match (parameter.name.as_str(), parameter.value) {
            ("SIZE", Some(value)) if offered.size => mail.size = Some(parse_size(value)?),
            ("BODY", Some(value)) if offered.eight_bit_mime => mail.is_eight_bit = parse_body(value)?,
            ("SMTPUTF8", None) if offered.smtputf8 => mail.is_smtputf8 = true,
            ("RET", Some(value)) if offered.dsn => mail.ret = Some(parse_ret(value)?),
            ("ENVID", Some(value)) if offered.dsn => mail.envid = Some(decode_xtext(value, ENVID_BYTES_MAX)?),
            // RFC 4954 5: the identity that the client claims to speak for is ignored.
            ("AUTH", Some(_)) => {}
            // A value is missing or not allowed.
            ("SIZE" | "BODY" | "SMTPUTF8" | "RET" | "ENVID" | "AUTH", _)
                if is_offered(&parameter.name, offered) =>
            {
                return Err(StandardReply::BadArguments);
            }
            _ => return Err(StandardReply::UnknownParameter),
        }
    }
    Ok(())
}

/// Parses the parameters of RCPT and stores them in `rcpt`.
pub(super) fn apply_to_rcpt(rcpt: &mut RcptTo, text: &str, offered: Extensions) -> Result<(), StandardReply> {
    for parameter in parse_parameters(text)? {
        match (parameter.name.as_str(), parameter.value) {
            ("NOTIFY", Some(value)) if offered.dsn => rcpt.notify = Some(parse_notify(value)?),
            ("ORCPT", Some(value)) if offered.dsn => rcpt.orcpt = Some(parse_orcpt(value)?),
            ("NOTIFY" | "ORCPT", None) if offered.dsn => return Err(StandardReply::BadArguments),
            _ => return Err(StandardReply::UnknownParameter),
        }
    }
    Ok(())
}

/// Whether the extension of this parameter of MAIL is offered. AUTH is accepted in any case.
fn is_offered(name: &str, offered: Extensions) -> bool {
    match name {
        "SIZE" => offered.size,
        "BODY" => offered.eight_bit_mime,
        "SMTPUTF8" => offered.smtputf8,
        "RET" | "ENVID" => offered.dsn,
        _ => true,
    }
}

struct Parameter<'a> {
    /// Upper-case name.
    name: String,
    value: Option<&'a str>,
}

fn parse_parameters(text: &str) -> Result<Vec<Parameter<'_>>, StandardReply> {
    // `<path>SIZE=1` lacks the space before its parameter.
    if !text.is_empty() && !text.starts_with(' ') {
        return Err(StandardReply::BadArguments);
    }
    let mut found: Vec<Parameter<'_>> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let name = name.to_ascii_uppercase();
        if value == Some("") || found.iter().any(|known| known.name == name) {
            return Err(StandardReply::BadArguments);
        }
        found.push(Parameter { name, value });
    }
    Ok(found)
}

/// Parses SIZE: up to twenty digits (RFC 1870 6). A value over 64 bits exceeds any limit.
fn parse_size(value: &str) -> Result<u64, StandardReply> {
    if value.len() > 20 || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(StandardReply::BadArguments);
    }
    Ok(value.parse().unwrap_or(u64::MAX))
}

/// Whether BODY is 8BITMIME (RFC 6152 2). BINARYMIME (RFC 3030) is not offered.
fn parse_body(value: &str) -> Result<bool, StandardReply> {
    match value.to_ascii_uppercase().as_str() {
        "7BIT" => Ok(false),
        "8BITMIME" => Ok(true),
        _ => Err(StandardReply::UnknownParameter),
    }
}

fn parse_ret(value: &str) -> Result<Ret, StandardReply> {
    match value.to_ascii_uppercase().as_str() {
        "FULL" => Ok(Ret::Full),
        "HDRS" => Ok(Ret::Headers),
        _ => Err(StandardReply::BadArguments),
    }
}

fn parse_notify(value: &str) -> Result<Notify, StandardReply> {
    let mut notify = Notify::default();
    if value.eq_ignore_ascii_case("NEVER") {
        return Ok(Notify::NEVER);
    }
    for word in value.split(',') {
        match word.to_ascii_uppercase().as_str() {
            "SUCCESS" => notify.success = true,
            "FAILURE" => notify.failure = true,
            "DELAY" => notify.delay = true,
            _ => return Err(StandardReply::BadArguments),
        }
    }
    Ok(notify)
}

fn parse_orcpt(value: &str) -> Result<String, StandardReply> {
    let (kind, address) = value.split_once(';').ok_or(StandardReply::BadArguments)?;
    let is_kind = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_kind || address.is_empty() {
        return Err(StandardReply::BadArguments);
    }
    Ok(format!("{kind};{}", decode_xtext(address, ORCPT_BYTES_MAX)?))
}

/// Decodes xtext, in which `+41` is `A` (RFC 3461 4). Plain UTF-8 is allowed with SMTPUTF8 (RFC 6533 3).
fn decode_xtext(value: &str, bytes_max: usize) -> Result<String, StandardReply> {
    let bad = StandardReply::BadArguments;
    let mut pieces = value.split('+');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2).ok_or(bad)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or(bad)?;
        // The text may be shown in reports and logs: decode only to printable ASCII.
        if !(b' '..=b'~').contains(&byte) {
            return Err(bad);
        }
        text.push(char::from(byte));
        text.push_str(rest);
    }
    if value.contains('=') || text.len() > bytes_max { Err(bad) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::envelope::ReversePath;

    fn mail(text: &str, offered: Extensions) -> Result<MailFrom, StandardReply> {
        let mut mail = MailFrom {
            path: ReversePath::Null,
            size: None,
            is_eight_bit: false,
            is_smtputf8: false,
            ret: None,
            envid: None,
        };
        apply_to_mail(&mut mail, text, offered).map(|()| mail)
    }

    fn rcpt(text: &str) -> Result<RcptTo, StandardReply> {
        let address = postroad_model::EmailAddress::parse("a@example.org").unwrap();
        let mut rcpt = RcptTo { address, notify: None, orcpt: None };
        apply_to_rcpt(&mut rcpt, text, Extensions::default()).map(|()| rcpt)
    }

    #[test]
    fn parameters_of_mail_are_read() {
        let all = " SIZE=123 body=8bitmime SMTPUTF8 RET=hdrs ENVID=a+2Bb+20c AUTH=<>";
        let mail = mail(all, Extensions::default()).unwrap();
        assert_eq!((mail.size, mail.is_eight_bit, mail.is_smtputf8), (Some(123), true, true));
        assert_eq!((mail.ret, mail.envid.as_deref()), (Some(Ret::Headers), Some("a+b c")));
    }

    #[test]
    fn parameters_of_rcpt_are_read() {
        let rcpt = rcpt("  NOTIFY=success,DELAY ORCPT=rfc822;b+2Bc@example.org ").unwrap();
        assert_eq!(rcpt.notify, Some(Notify { success: true, failure: false, delay: true }));
        assert_eq!(rcpt.orcpt.as_deref(), Some("rfc822;b+c@example.org"));
    }

    #[test]
    fn odd_parameters_are_refused() {
        let offered = Extensions::default();
        for bad in [
            "SIZE=1",
            " SIZE",
            " SIZE=",
            " SIZE=-1",
            " SIZE=+1",
            " SIZE=1 size=2",
            " SMTPUTF8=yes",
            " RET=ALL",
        ] {
            assert_eq!(mail(bad, offered), Err(StandardReply::BadArguments), "{bad}");
        }
        for bad in
            [" ENVID=+4", " ENVID=+0A", " ENVID=+4a", " ENVID=a=b", &format!(" ENVID={}", "x".repeat(101))]
        {
            assert_eq!(mail(bad, offered), Err(StandardReply::BadArguments), "{bad}");
        }
        for bad in [" NOTIFY=", " NOTIFY=never,success", " NOTIFY", " ORCPT=a", " ORCPT=;a", " ORCPT=x;"] {
            assert_eq!(rcpt(bad), Err(StandardReply::BadArguments), "{bad}");
        }
        assert_eq!(mail(" BODY=BINARYMIME", offered), Err(StandardReply::UnknownParameter));
        assert_eq!(mail(" X", offered), Err(StandardReply::UnknownParameter));
        assert_eq!(rcpt(" SIZE=1"), Err(StandardReply::UnknownParameter));
    }

    #[test]
    fn parameters_that_are_not_offered_are_unknown() {
        let nothing = Extensions {
            pipelining: false,
            size: false,
            eight_bit_mime: false,
            smtputf8: false,
            enhanced_status_codes: false,
            chunking: false,
            dsn: false,
        };
        for parameter in [" SIZE=1", " BODY=7BIT", " SMTPUTF8", " RET=FULL", " ENVID=x", " SIZE"] {
            assert_eq!(mail(parameter, nothing), Err(StandardReply::UnknownParameter), "{parameter}");
        }
        assert!(mail(" SIZE=99999999999999999999", Extensions::default()).unwrap().size == Some(u64::MAX));
    }
}
