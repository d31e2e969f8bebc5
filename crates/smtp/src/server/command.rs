//! Parser of command lines. Verbs are case-insensitive (RFC 5321 2.4).

use super::config::Extensions;
use super::envelope::{MailFrom, RcptTo};
use super::replies::StandardReply;
use super::{parameters, path};

/// Longest host name (RFC 5321 4.5.3.1.2).
const HOST_BYTES_MAX: usize = 255;

#[derive(PartialEq, Eq)]
pub(super) enum Command<'a> {
    Ehlo(&'a str),
    Helo(&'a str),
    StartTls,
    Auth { mechanism: &'a str, initial_response: Option<&'a str> },
    Mail(MailFrom),
    Rcpt(RcptTo),
    Data,
    Bdat { size: u64, is_last: bool },
    Rset,
    Noop,
    Vrfy,
    Help,
    Quit,
}

/// Parses `line`, which has no CRLF.
pub(super) fn parse(line: &str, offered: Extensions) -> Result<Command<'_>, StandardReply> {
    let (verb, arguments) = match line.split_once(' ') {
        Some((verb, arguments)) => (verb, arguments.trim_matches(' ')),
        None => (line, ""),
    };
    let without_arguments =
        |command| if arguments.is_empty() { Ok(command) } else { Err(StandardReply::BadArguments) };
    match verb.to_ascii_uppercase().as_str() {
        "EHLO" => parse_host(arguments).map(Command::Ehlo),
        "HELO" => parse_host(arguments).map(Command::Helo),
        "STARTTLS" => without_arguments(Command::StartTls),
        "AUTH" => parse_auth(arguments),
        "MAIL" => parse_mail(arguments, offered).map(Command::Mail),
        "RCPT" => parse_rcpt(arguments, offered).map(Command::Rcpt),
        "DATA" => without_arguments(Command::Data),
        "BDAT" => parse_bdat(arguments).ok_or(StandardReply::BadChunkSize),
        "RSET" => without_arguments(Command::Rset),
        "NOOP" => Ok(Command::Noop),
        "VRFY" if arguments.is_empty() => Err(StandardReply::BadArguments),
        "VRFY" => Ok(Command::Vrfy),
        "HELP" => Ok(Command::Help),
        "QUIT" => without_arguments(Command::Quit),
        "EXPN" | "TURN" | "ETRN" | "SEND" | "SOML" | "SAML" => Err(StandardReply::NotImplemented),
        // A web page can make a browser connect to this port; the browser's HTTP headers must not be tried as commands.
        "GET" | "HEAD" | "POST" | "PUT" | "OPTIONS" | "CONNECT" => Err(StandardReply::NotSmtp),
        _ => Err(StandardReply::UnknownCommand),
    }
}

/// Parses the argument of EHLO. RFC 5321 4.1.1.1 requires a domain or an address literal, but clients send any machine
/// name. The dev inbox shows the name, so only harmless characters are accepted.
fn parse_host(text: &str) -> Result<&str, StandardReply> {
    let is_host_char = |c: char| c.is_alphanumeric() || "._-:[]".contains(c);
    let is_host = (1..=HOST_BYTES_MAX).contains(&text.len()) && text.chars().all(is_host_char);
    if is_host { Ok(text) } else { Err(StandardReply::BadArguments) }
}

fn parse_auth(arguments: &str) -> Result<Command<'_>, StandardReply> {
    let (mechanism, initial_response) = match arguments.split_once(' ') {
        Some((mechanism, initial_response)) => (mechanism, Some(initial_response.trim_start_matches(' '))),
        None => (arguments, None),
    };
    if mechanism.is_empty() {
        return Err(StandardReply::BadArguments);
    }
    Ok(Command::Auth { mechanism, initial_response })
}

fn parse_mail(arguments: &str, offered: Extensions) -> Result<MailFrom, StandardReply> {
    let (path, rest) = split_path(arguments, "FROM:").ok_or(StandardReply::BadSender)?;
    let mut mail = MailFrom {
        path: path::parse_sender(path)?,
        size: None,
        is_eight_bit: false,
        is_smtputf8: false,
        ret: None,
        envid: None,
    };
    parameters::apply_to_mail(&mut mail, rest, offered)?;
    // RFC 6531 3.4: a non-ASCII domain needs SMTPUTF8 too, although the client could have sent its ASCII form.
    if !path.is_ascii() && !mail.is_smtputf8 {
        return Err(StandardReply::Utf8NotAnnounced);
    }
    Ok(mail)
}

fn parse_rcpt(arguments: &str, offered: Extensions) -> Result<RcptTo, StandardReply> {
    let (path, rest) = split_path(arguments, "TO:").ok_or(StandardReply::BadRecipient)?;
    let mut rcpt = RcptTo { address: path::parse_recipient(path)?, notify: None, orcpt: None };
    parameters::apply_to_rcpt(&mut rcpt, rest, offered)?;
    Ok(rcpt)
}

/// Splits path and parameters. Accepts a space after the colon: RFC 5321 3.3 forbids the space, but it is too common
/// to refuse.
fn split_path<'a>(arguments: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let (word, rest) = arguments.split_at_checked(keyword.len())?;
    if word.eq_ignore_ascii_case(keyword) { path::split(rest.trim_start_matches(' ')) } else { None }
}

/// Parses `BDAT size [LAST]` (RFC 3030 2). Signs and empty words are refused.
fn parse_bdat(arguments: &str) -> Option<Command<'static>> {
    let (digits, end) = match arguments.split_once(' ') {
        Some((digits, end)) => (digits, Some(end.trim_start_matches(' '))),
        None => (arguments, None),
    };
    let is_last = match end {
        None => false,
        Some(end) if end.eq_ignore_ascii_case("LAST") => true,
        Some(_) => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let size = if is_number { digits.parse().ok()? } else { return None };
    Some(Command::Bdat { size, is_last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> Option<StandardReply> {
        parse(line, Extensions::default()).err()
    }

    #[test]
    fn verbs_are_case_insensitive() {
        for line in [
            "ehlo x",
            "HELO [192.0.2.1]",
            "EHLO my_pc.local ",
            "Mail From:<a@example.org>",
            "MAIL FROM: <> SIZE=1",
            "rcpt to:<a@example.org>",
            "bdat 10 last",
            "NOOP whatever",
            "help me",
            "Auth plain =",
            "data ",
        ] {
            assert_eq!(refusal(line), None, "{line}");
        }
    }

    #[test]
    fn invalid_commands_get_the_matching_reply() {
        use StandardReply as R;
        for (line, expected) in [
            ("", R::UnknownCommand),
            ("FROB", R::UnknownCommand),
            ("MAILFROM:<a@example.org>", R::UnknownCommand),
            (" NOOP", R::UnknownCommand),
            ("EHLO", R::BadArguments),
            ("EHLO a b", R::BadArguments),
            ("EHLO <script>", R::BadArguments),
            ("QUIT now", R::BadArguments),
            ("AUTH", R::BadArguments),
            ("VRFY", R::BadArguments),
            ("EXPN list", R::NotImplemented),
            ("MAIL", R::BadSender),
            ("MAIL a@example.org", R::BadSender),
            ("MAIL FROM:a@example.org", R::BadSender),
            ("MAIL FROM:<a@example.org", R::BadSender),
            ("RCPT FROM:<a@example.org>", R::BadRecipient),
            ("RCPT TO:<>", R::BadRecipient),
            ("MAIL FROM:<ä@example.org>", R::Utf8NotAnnounced),
            ("BDAT", R::BadChunkSize),
            ("BDAT -1", R::BadChunkSize),
            ("BDAT 1 LAST LAST", R::BadChunkSize),
            ("BDAT 99999999999999999999", R::BadChunkSize),
            ("POST / HTTP/1.1", R::NotSmtp),
        ] {
            assert_eq!(refusal(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn bdat_size_and_last_are_parsed() {
        let bdat = |line| parse(line, Extensions::default()).ok();
        assert!(bdat("BDAT 0 LAST") == Some(Command::Bdat { size: 0, is_last: true }));
        assert!(bdat("BDAT 77") == Some(Command::Bdat { size: 77, is_last: false }));
    }
}
