//! Extensions that a server offers in its EHLO reply. Unknown keywords are ignored.

/// Extensions that the server offers. All are absent after HELO, and reset when TLS begins (RFC 3207 4.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// RFC 2920
    pub pipelining: bool,
    /// RFC 1870; `None` if no limit was announced.
    pub size_max: Option<u64>,
    /// RFC 1870: whether `SIZE=` is allowed with MAIL.
    pub size: bool,
    /// RFC 6152
    pub eight_bit_mime: bool,
    /// RFC 6531
    pub smtputf8: bool,
    /// RFC 3030
    pub chunking: bool,
    /// RFC 3207
    pub starttls: bool,
    /// RFC 4954, AUTH PLAIN
    pub auth_plain: bool,
    /// AUTH LOGIN
    pub auth_login: bool,
    /// RFC 2034
    pub enhanced_status_codes: bool,
    /// RFC 3461
    pub dsn: bool,
    /// RFC 9422, MAILMAX: maximum number of messages in one session.
    pub messages_max: Option<u32>,
}

impl Capabilities {
    /// `lines` are the texts of the reply; the first line is the greeting (RFC 5321 4.1.1.1).
    pub fn parse(lines: &[String]) -> Self {
        let mut found = Self::default();
        for line in lines.iter().skip(1) {
            found.take_line(line);
        }
        found
    }

    fn take_line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let Some(keyword) = words.next() else { return };
        match keyword.to_ascii_uppercase().as_str() {
            "PIPELINING" => self.pipelining = true,
            "SIZE" => {
                self.size = true;
                // RFC 1870 3: zero means no fixed limit.
                self.size_max = words.next().and_then(|limit| limit.parse().ok()).filter(|limit| *limit > 0);
            }
            "8BITMIME" => self.eight_bit_mime = true,
            "SMTPUTF8" => self.smtputf8 = true,
            "CHUNKING" => self.chunking = true,
            "STARTTLS" => self.starttls = true,
            "AUTH" => words.for_each(|mechanism| self.take_mechanism(mechanism)),
            "ENHANCEDSTATUSCODES" => self.enhanced_status_codes = true,
            "DSN" => self.dsn = true,
            "LIMITS" => words.for_each(|limit| self.take_limit(limit)),
            // `AUTH=PLAIN LOGIN`, a form older than the RFC; old smart hosts still send it.
            other => {
                if let Some(mechanism) = other.strip_prefix("AUTH=") {
                    self.take_mechanism(mechanism);
                    words.for_each(|mechanism| self.take_mechanism(mechanism));
                }
            }
        }
    }

    fn take_mechanism(&mut self, mechanism: &str) {
        self.auth_plain |= mechanism.eq_ignore_ascii_case("PLAIN");
        self.auth_login |= mechanism.eq_ignore_ascii_case("LOGIN");
    }

    /// RFC 9422 3: `NAME=VALUE`. Each message has one recipient, so only MAILMAX matters.
    fn take_limit(&mut self, limit: &str) {
        if let Some((name, value)) = limit.split_once('=')
            && name.eq_ignore_ascii_case("MAILMAX")
        {
            self.messages_max = value.parse().ok().filter(|max| *max > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Capabilities {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        Capabilities::parse(&lines)
    }

    #[test]
    fn every_supported_extension_is_recognised() {
        let found = parse(&[
            "mx.example greets you",
            "PIPELINING",
            "SIZE 35882577",
            "8bitmime",
            "SMTPUTF8",
            "CHUNKING",
            "STARTTLS",
            "AUTH LOGIN PLAIN XOAUTH2",
            "ENHANCEDSTATUSCODES",
            "DSN",
            "LIMITS MAILMAX=20 RCPTMAX=100",
            "XCLIENT NAME ADDR",
        ]);
        let all = Capabilities {
            pipelining: true,
            size_max: Some(35_882_577),
            size: true,
            eight_bit_mime: true,
            smtputf8: true,
            chunking: true,
            starttls: true,
            auth_plain: true,
            auth_login: true,
            enhanced_status_codes: true,
            dsn: true,
            messages_max: Some(20),
        };
        assert_eq!(found, all);
    }

    #[test]
    fn the_greeting_is_not_a_capability() {
        assert_eq!(parse(&["STARTTLS"]), Capabilities::default());
        assert_eq!(parse(&[]), Capabilities::default());
    }

    #[test]
    fn odd_values_mean_no_limit() {
        for line in ["SIZE", "SIZE 0", "SIZE many", "SIZE -1", "SIZE 99999999999999999999999"] {
            let found = parse(&["x", line]);
            assert!(found.size, "{line}");
            assert_eq!(found.size_max, None, "{line}");
        }
        assert_eq!(parse(&["x", "LIMITS MAILMAX=0 MAILMAX"]).messages_max, None);
    }

    #[test]
    fn the_old_form_of_auth_is_understood() {
        let found = parse(&["x", "AUTH=PLAIN LOGIN"]);
        assert!(found.auth_plain && found.auth_login);
    }
}
