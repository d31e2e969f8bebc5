//! Table of settings. A row has a key, its default, its explanation, and the function that sets its field.
//!
//! The default file, the environment variables, the check for unknown keys and the typed values are derived from this
//! table. A new setting is one row here and one field in `Config`.

use postroad_net::dns::DnssecTrust;

use super::raw_value::RawValue;
use super::tracking::parse_base;
use super::{Config, LogFormat, SmartHostTls};

pub(super) type SetField = fn(&mut Config, &RawValue) -> Result<(), String>;

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.name`, or `name` at the top of the file.
    pub(crate) path: &'static str,
    /// Default value, written as in the default file.
    pub(crate) default: &'static str,
    /// Comment lines of the default file.
    pub(crate) doc: &'static str,
    /// Parses a value and stores it in the field of `Config`.
    pub(super) set: SetField,
}

impl Key {
    /// Name of the environment variable: `http.listen` is `POSTROAD_HTTP_LISTEN`.
    pub(crate) fn variable(&self) -> String {
        format!("POSTROAD_{}", self.path.replace('.', "_").to_uppercase())
    }
}

/// Variables that control the program without being settings of the file.
pub(super) const RESERVED_VARIABLES: &[&str] = &[
    "POSTROAD_ACCOUNT_API_KEY",
    "POSTROAD_API_KEY",
    "POSTROAD_CONFIG",
    "POSTROAD_LOG",
    "POSTROAD_OPERATOR_API_KEY",
    "POSTROAD_PROFILE",
    "POSTROAD_URL",
];

/// All keys. Keys of one section are together; keys without a section come first, as TOML requires.
pub(crate) const KEYS: &[Key] = &[
    Key {
        path: "data_dir",
        default: r#""./postroad-data""#,
        doc: "Folder for everything this node keeps: the SQLite database, large bodies, the flight journal, secrets.key,\n\
              the control socket. Relative paths start at the folder where postroad is started.",
        set: |config, value| put(&mut config.data_dir, value.text().and_then(non_empty)),
    },
    Key {
        path: "database",
        default: r#""""#,
        doc: "Empty: SQLite in data_dir. Otherwise \"sqlite:PATH\", or \"postgres://USER:PASSWORD@HOST/NAME\"\n\
              for a PostgreSQL database that several nodes share.",
        set: |config, value| put(&mut config.database, value.database()),
    },
    Key {
        path: "hostname",
        default: r#""postroad.localhost""#,
        doc: "The public name of this host, as other mail servers see it.",
        set: |config, value| put(&mut config.hostname, value.domain()),
    },
    Key {
        path: "http.listen",
        default: r#""127.0.0.1:8025""#,
        doc: "Address and port of plain HTTP; empty for off. On a loopback address it serves the API;\n\
              on any other it redirects to HTTPS, unless allow_plain is true.",
        set: |config, value| put(&mut config.http.listen, value.listen()),
    },
    Key {
        path: "http.https_listen",
        default: r#""""#,
        doc: "Address and port of HTTPS; empty for off. Needs certificate and key in [tls].",
        set: |config, value| put(&mut config.http.https_listen, value.listen()),
    },
    Key {
        path: "http.allow_plain",
        default: "false",
        doc: "Serve the API over plain HTTP on an address that other machines can reach. Only behind a proxy that does\n\
              TLS: otherwise API keys are sent unencrypted.",
        set: |config, value| put(&mut config.http.allow_plain, value.flag()),
    },
    Key {
        path: "http.trusted_proxies",
        default: "[]",
        doc: "Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted, like\n\
              [\"10.0.0.0/8\"].",
        set: |config, value| put(&mut config.http.trusted_proxies, value.networks()),
    },
    Key {
        path: "tls.certificate",
        default: r#""""#,
        doc: "PEM file with the certificate and its chain.",
        set: |config, value| put(&mut config.tls.certificate, value.path()),
    },
    Key {
        path: "tls.key",
        default: r#""""#,
        doc: "PEM file with the certificate's private key.",
        set: |config, value| put(&mut config.tls.key, value.path()),
    },
    Key {
        path: "smtp.starttls_listen",
        default: r#""""#,
        doc: "Address and port of SMTP submission with STARTTLS, usually port 587; empty for off.\n\
              Needs certificate and key in [tls].",
        set: |config, value| put(&mut config.smtp.starttls_listen, value.listen()),
    },
    Key {
        path: "smtp.tls_listen",
        default: r#""""#,
        doc: "Address and port of SMTP submission inside TLS, usually port 465; empty for off.\n\
              Needs certificate and key in [tls].",
        set: |config, value| put(&mut config.smtp.tls_listen, value.listen()),
    },
    Key {
        path: "smtp.extra_listen",
        default: r#""""#,
        doc: "One more listener like starttls_listen, usually port 2525, for networks that block port 587; empty for off.",
        set: |config, value| put(&mut config.smtp.extra_listen, value.listen()),
    },
    Key {
        path: "smtp.plain_listen",
        default: r#""""#,
        doc: "Address and port of SMTP without TLS and AUTH; empty for off. It accepts mail only from networks that a\n\
              key is bound to (`postroad admin key create --server S --address CIDR`).",
        set: |config, value| put(&mut config.smtp.plain_listen, value.listen()),
    },
    Key {
        path: "smtp.bounce_listen",
        default: r#""""#,
        doc: "Address and port for bounces and complaints, port 25 of the host that rp.<hostname> points to; empty for\n\
              off. It accepts mail about messages sent from here, and relays nothing.",
        set: |config, value| put(&mut config.smtp.bounce_listen, value.listen()),
    },
    Key {
        path: "smtp.proxy_protocol_from",
        default: "[]",
        doc: "Networks of proxies that begin each SMTP connection with the PROXY protocol (version 1 or 2),\n\
              like [\"10.0.0.0/8\"]. From them it is required; connections from other addresses must not send it.",
        set: |config, value| put(&mut config.smtp.proxy_protocol_from, value.networks()),
    },
    Key {
        path: "smtp.in_flight_bytes",
        default: r#""256 MiB""#,
        doc: "Memory for messages being received by SMTP; further ones wait, then get 452. The bounce listener has\n\
              memory of its own: as much, but at most 64 MiB.",
        set: |config, value| put(&mut config.smtp.in_flight_bytes_max, value.size(1_024)),
    },
    Key {
        path: "smtp.sessions",
        default: "2000",
        doc: "SMTP sessions at the same time, on all submission listeners together. The bounce listener has as many of its\n\
              own.",
        set: |config, value| put(&mut config.smtp.sessions_max, value.count(1)),
    },
    Key {
        path: "smtp.sessions_per_address",
        default: "100",
        doc: "SMTP sessions at the same time from one address (IPv6: one /64). This machine's own sessions do not\n\
              count.",
        set: |config, value| put(&mut config.smtp.sessions_per_address_max, value.count(1)),
    },
    Key {
        path: "feedback.addresses",
        default: "[]",
        doc: "Addresses for complaints of feedback loops, in addition to fbl@<hostname>, like [\"fbl@example.com\"]. The\n\
              MX record of their domain must lead to the bounce listener. An abuse@ or postmaster@ address in this\n\
              list works like that of the host: complaints count, and other mail goes to forward_to.",
        set: |config, value| put(&mut config.feedback.addresses, value.mailboxes()),
    },
    Key {
        path: "feedback.forward_to",
        default: r#""""#,
        doc: "Your own address: mail to postmaster@ and abuse@ of this host that is not a complaint is forwarded to it.\n\
              Empty: the bounce listener refuses such mail; complaints are still accepted.",
        set: |config, value| put(&mut config.feedback.forward_to, value.mailbox()),
    },
    Key {
        path: "portal.base_url",
        default: r#""""#,
        doc: "URL of the portal, like \"https://mail.example.com\": for links in invitations and for new passwords.\n\
              Empty: https:// and the hostname; `postroad dev` uses its own address.",
        set: |config, value| put(&mut config.portal.base_url, value.text().and_then(parse_base)),
    },
    Key {
        path: "portal.mail_from",
        default: r#""""#,
        doc: "Sender of mail to people who use the portal; empty for postroad@<hostname>. The mail is sent by the\n\
              server `operator` of the account `postroad`; the service creates both when it first sends such mail.\n\
              Verify the domain of this address for that server.",
        set: |config, value| put(&mut config.portal.mail_from, value.mailbox()),
    },
    Key {
        path: "secrets.key_file",
        default: r#""""#,
        doc: "File with the key that seals secrets in the database: 32 random bytes in base64. It must not be\n\
              accessible to all users of the machine. Empty: secrets.key in the data directory, created at the first\n\
              start. Nodes of one database need the same key.",
        set: |config, value| put(&mut config.secrets.key_file, value.path()),
    },
    Key {
        path: "dns.nameservers",
        default: "[]",
        doc: "Name servers to ask, like [\"127.0.0.1:53\"]; empty for the system's.",
        set: |config, value| put(&mut config.dns.nameservers, value.addresses()),
    },
    Key {
        path: "dns.dnssec",
        default: r#""off""#,
        doc: "Whether to trust the AD bit of the name servers (DNSSEC validated). DANE for SMTP needs it. \"loopback\"\n\
              trusts a validating resolver (such as unbound) on this machine; \"always\" also trusts resolvers on other\n\
              machines: use it only if nobody can forge their answers.",
        set: |config, value| {
            let choices = [
                ("off", DnssecTrust::Off),
                ("loopback", DnssecTrust::Loopback),
                ("always", DnssecTrust::Always),
            ];
            put(&mut config.dns.dnssec, value.choice(&choices))
        },
    },
    Key {
        path: "delivery.smtp_port",
        default: "25",
        doc: "Port of remote mail servers.",
        set: |config, value| put(&mut config.delivery.smtp_port, value.port()),
    },
    Key {
        path: "delivery.smarthost",
        default: r#""""#,
        doc: "Hand all mail to this \"host:port\" instead of sending it directly; empty for direct sending.",
        set: |config, value| put(&mut config.delivery.smarthost, value.host_port()),
    },
    Key {
        path: "delivery.smarthost_tls",
        default: r#""opportunistic""#,
        doc: "\"off\", \"opportunistic\", \"required\" (STARTTLS and a valid certificate) or \"implicit\" (port 465).",
        set: |config, value| {
            let choices = [
                ("off", SmartHostTls::Off),
                ("opportunistic", SmartHostTls::Opportunistic),
                ("required", SmartHostTls::Required),
                ("implicit", SmartHostTls::Implicit),
            ];
            put(&mut config.delivery.smarthost_tls, value.choice(&choices))
        },
    },
    Key {
        path: "delivery.smarthost_username",
        default: r#""""#,
        doc: "User name, if the smart host requires authentication.\n\
              Set the password in the environment rather than in the file.",
        set: |config, value| put(&mut config.delivery.smarthost_username, value.text()),
    },
    Key {
        path: "delivery.smarthost_password",
        default: r#""""#,
        doc: "Password for the smart host.",
        set: |config, value| put(&mut config.delivery.smarthost_password, value.text()),
    },
    Key {
        path: "delivery.smarthost_connections",
        default: "20",
        doc: "Connections to the smart host at once, from each source address of this node. The provider limits\n\
              (`providers_file`) do not apply to it.",
        set: |config, value| put(&mut config.delivery.smarthost_connections, value.count(1)),
    },
    Key {
        path: "delivery.smarthost_rate",
        default: r#""""#,
        doc: "Rate of messages to the smart host, such as \"100/s\" or \"6000/h\", from each source address of this node;\n\
              empty for no limit.",
        set: |config, value| put(&mut config.delivery.smarthost_rate, value.rate()),
    },
    Key {
        path: "delivery.allow_private_destinations",
        default: "false",
        doc: "Also send to mail servers on loopback and private addresses. Then anybody whose MX record points into\n\
              your network can reach it with mail.",
        set: |config, value| put(&mut config.delivery.allow_private_destinations, value.flag()),
    },
    Key {
        path: "delivery.catch_all",
        default: r#""auto""#,
        doc: "\"on\" keeps all mail in an inbox in memory (GET /dev/messages) instead of sending it; \"off\" sends it.\n\
              \"auto\" is off for `serve`, and on for `dev` unless smarthost or allow_private_destinations is set.",
        set: |config, value| {
            let choices = [("auto", None), ("on", Some(true)), ("off", Some(false))];
            put(&mut config.delivery.catch_all, value.choice(&choices))
        },
    },
    Key {
        path: "delivery.retry_schedule",
        default: "[]",
        doc: "Pauses before the next attempts; the last one repeats. Empty: 1m, 5m, 10m, 20m, 40m, 1h, 2h, 4h, 6h\n\
              (`dev`: 1s, 2s, 5s, 10s, 30s, 1m, 2m, 5m, 10m).",
        set: |config, value| put(&mut config.delivery.retry_schedule, value.durations()),
    },
    Key {
        path: "delivery.give_up_after",
        default: r#""48h""#,
        doc: "Undelivered messages fail after this long.",
        set: |config, value| put(&mut config.delivery.give_up_after, value.duration()),
    },
    Key {
        path: "delivery.delay_notice_after",
        default: r#""5m""#,
        doc: "Messages that wait this long without an attempt get a SoftFail delivery with the cause, and the event\n\
              message.delayed.",
        set: |config, value| put(&mut config.delivery.delay_notice_after, value.duration()),
    },
    Key {
        path: "delivery.connect_timeout",
        default: r#""30s""#,
        doc: "Longest wait for a connection to one address.",
        set: |config, value| put(&mut config.delivery.connect_timeout, value.duration()),
    },
    Key {
        path: "delivery.busy_greeting_timeout",
        default: r#""30s""#,
        doc: "Longest wait for greeting, EHLO, MAIL, RCPT and DATA replies while other hosts wait for a connection;\n\
              reply_timeout otherwise.",
        set: |config, value| put(&mut config.delivery.busy_greeting_timeout, value.duration()),
    },
    Key {
        path: "delivery.reply_timeout",
        default: r#""5m""#,
        doc: "Longest wait for a reply; RFC 5321's shorter limits still apply.",
        set: |config, value| put(&mut config.delivery.reply_timeout, value.duration()),
    },
    Key {
        path: "delivery.final_reply_timeout",
        default: r#""10m""#,
        doc: "Longest wait for the final reply to a message. A short one causes duplicates.",
        set: |config, value| put(&mut config.delivery.final_reply_timeout, value.duration()),
    },
    Key {
        path: "delivery.idle_timeout",
        default: r#""5s""#,
        doc: "Idle connections are closed after this long.",
        set: |config, value| put(&mut config.delivery.idle_timeout, value.duration()),
    },
    Key {
        path: "delivery.connection_lifetime",
        default: r#""5m""#,
        doc: "A connection takes no new messages after this long.",
        set: |config, value| put(&mut config.delivery.connection_lifetime, value.duration()),
    },
    Key {
        path: "delivery.connections",
        default: "1000",
        doc: "Connections of this node to other mail servers, in total. Up to half as many additional connections may\n\
              wait for the final reply to a message.",
        set: |config, value| put(&mut config.delivery.connections_max, value.count(1)),
    },
    Key {
        path: "delivery.drain_timeout",
        default: r#""30s""#,
        doc: "At shutdown, messages whose last bytes were sent may finish for this long.",
        set: |config, value| put(&mut config.delivery.drain_timeout, value.duration()),
    },
    Key {
        path: "delivery.signing_threads",
        default: "0",
        doc: "Threads that make DKIM signatures; 0 for one per core.",
        set: |config, value| put(&mut config.delivery.signing_threads, value.count(0)),
    },
    Key {
        path: "delivery.fresh_bytes",
        default: r#""64 MiB""#,
        doc: "Memory for messages just accepted; further ones are read from the store when it is their turn.",
        set: |config, value| put(&mut config.delivery.fresh_bytes_max, value.size(0)),
    },
    Key {
        path: "delivery.messages_in_memory",
        default: "2000000",
        doc: "Messages that wait in memory, about 300 bytes each; more of them stay in the store until there is room.\n\
              One server gets at most half.",
        set: |config, value| put(&mut config.delivery.messages_max, value.count(1)),
    },
    Key {
        path: "delivery.providers_file",
        default: r#""""#,
        doc: "TOML file that changes the limits for large mail providers or adds others; see docs/delivery.md.",
        set: |config, value| put(&mut config.delivery.providers_file, value.path()),
    },
    Key {
        path: "delivery.warmup_plan",
        default: "[]",
        doc: "Messages a day to each provider while a new address is warmed up, like [\"150\", \"210\", …].\n\
              Empty: 150, then 1.4 times as many each day for three weeks.",
        set: |config, value| put(&mut config.delivery.warm_up_plan, value.counts()),
    },
    Key {
        path: "delivery.simulator",
        default: r#""auto""#,
        doc: "\"on\" simulates mail servers for recipients at simulator_domain; \"off\" fails mail to them at once. \"auto\"\n\
              is on for `dev` and off for `serve`.",
        set: |config, value| {
            let choices = [("auto", None), ("on", Some(true)), ("off", Some(false))];
            put(&mut config.delivery.simulator, value.choice(&choices))
        },
    },
    Key {
        path: "delivery.simulator_domain",
        default: r#""sim.postroad.test""#,
        doc: "Recipients at this domain never leave the machine and behave by their name (missing@, defer@ …).",
        set: |config, value| put(&mut config.delivery.simulator_domain, value.domain()),
    },
    Key {
        path: "delivery.ca_file",
        default: r#""""#,
        doc: "PEM file of authorities to trust for mail servers' certificates, in addition to the public ones.",
        set: |config, value| put(&mut config.delivery.ca_file, value.path()),
    },
    Key {
        path: "delivery.mta_sts_port",
        default: "443",
        doc: "The port of the hosts that publish MTA-STS policies.",
        set: |config, value| put(&mut config.delivery.mta_sts_port, value.port()),
    },
    Key {
        path: "delivery.ipv6",
        default: "true",
        doc: "Also send to IPv6 addresses.",
        set: |config, value| put(&mut config.delivery.ipv6, value.flag()),
    },
    Key {
        path: "delivery.dkim",
        default: "true",
        doc: "Sign mail with DKIM. Turn it off only if a smart host signs.",
        set: |config, value| put(&mut config.delivery.dkim, value.flag()),
    },
    Key {
        path: "delivery.dkim_ed25519",
        default: "false",
        doc: "Give new domains a second DKIM key (Ed25519) in addition to the RSA one; mail is signed with both.",
        set: |config, value| put(&mut config.delivery.dkim_ed25519, value.flag()),
    },
    Key {
        path: "domains.per_server",
        default: "1000",
        doc: "Domains that one server may have. An account may have as many domains of its own; domains of its servers do not\n\
              count.",
        set: |config, value| put(&mut config.domains.per_server, value.count(1)),
    },
    Key {
        path: "domains.check_interval",
        default: r#""1m""#,
        doc: "Shortest pause between two checks of a domain's records, and before the first one. The longer a domain waits\n\
              for its records, the longer the pauses.",
        set: |config, value| put(&mut config.domains.checks.shortest, value.duration()),
    },
    Key {
        path: "domains.check_interval_max",
        default: r#""6h""#,
        doc: "Longest pause between two checks; domains whose records are in order are checked this often.",
        set: |config, value| put(&mut config.domains.checks.longest, value.duration()),
    },
    Key {
        path: "webhooks.allow",
        default: "[]",
        doc: "Networks outside the public internet that webhooks may be posted to, and from which the portal may load\n\
              pictures of mail, like [\"10.1.0.0/16\"]. `dev` allows the loopback.",
        set: |config, value| put(&mut config.webhooks.allow, value.networks()),
    },
    Key {
        path: "webhooks.concurrency",
        default: "8",
        doc: "Posts to one webhook at the same time, once it answers well.",
        set: |config, value| put(&mut config.webhooks.concurrency, value.count(1)),
    },
    Key {
        path: "webhooks.per_server",
        default: "50",
        doc: "Webhooks that one server may have. Each adds a little work to every send of its server.",
        set: |config, value| put(&mut config.webhooks.per_server, value.count(1)),
    },
    Key {
        path: "webhooks.retry_schedule",
        default: r#"["5s", "1m", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"]"#,
        doc: "Pauses before the next attempts for an event; after the last one it is given up.",
        set: |config, value| put(&mut config.webhooks.retry_schedule, value.durations()),
    },
    Key {
        path: "webhooks.disable_after",
        default: r#""5d""#,
        doc: "A webhook is disabled when its posts have failed for this long without a success between them.",
        set: |config, value| put(&mut config.webhooks.disable_after, value.duration()),
    },
    Key {
        path: "webhooks.ca_file",
        default: r#""""#,
        doc: "PEM file of authorities to trust for receivers' certificates, in addition to the public ones.",
        set: |config, value| put(&mut config.webhooks.ca_file, value.path()),
    },
    Key {
        path: "tracking.base_url",
        default: r#""""#,
        doc: "Base URL of tracking links, like \"https://track.example.com\"; it must lead to this service. Empty:\n\
              https://track. and the hostname; `postroad dev` uses its own address.",
        set: |config, value| put(&mut config.tracking.base_url, value.text().and_then(parse_base)),
    },
    Key {
        path: "tracking.allow",
        default: "[]",
        doc: "Networks outside the public internet that customers' tracking hosts may be in, like [\"10.1.0.0/16\"]: for\n\
              the check that such a host answers with a valid certificate.",
        set: |config, value| put(&mut config.tracking.allow, value.networks()),
    },
    Key {
        path: "tracking.ca_file",
        default: r#""""#,
        doc: "PEM file of authorities to trust for certificates of customers' tracking hosts, in addition to the public\n\
              ones.",
        set: |config, value| put(&mut config.tracking.ca_file, value.path()),
    },
    Key {
        path: "tracking.host_port",
        default: "443",
        doc: "Port of customers' tracking hosts. Links contain it unless it is 443.",
        set: |config, value| put(&mut config.tracking.host_port, value.port()),
    },
    Key {
        path: "limits.request_bytes",
        default: r#""40 MiB""#,
        doc: "The largest HTTP request body. Sizes are bytes, or texts like \"25 MiB\" and \"25 MB\".",
        set: |config, value| put(&mut config.limits.request_bytes_max, value.size(1_024)),
    },
    Key {
        path: "limits.batch_bytes",
        default: r#""50 MiB""#,
        doc: "The largest HTTP request body of send/batch.",
        set: |config, value| put(&mut config.limits.batch_bytes_max, value.size(1_024)),
    },
    Key {
        path: "limits.message_bytes",
        default: r#""25 MiB""#,
        doc: "The largest message, headers and encoded attachments included.",
        set: |config, value| put(&mut config.limits.message_bytes_max, value.size(1_024)),
    },
    Key {
        path: "limits.attachments",
        default: "100",
        doc: "Attachments of one message.",
        set: |config, value| put(&mut config.limits.attachments_max, value.count(0)),
    },
    Key {
        path: "limits.subject_bytes",
        default: "998",
        doc: "The longest subject.",
        set: |config, value| put(&mut config.limits.subject_bytes_max, value.size(1)),
    },
    Key {
        path: "limits.tag_bytes",
        default: "255",
        doc: "The longest tag.",
        set: |config, value| put(&mut config.limits.tag_bytes_max, value.size(1)),
    },
    Key {
        path: "limits.header_value_bytes",
        default: r#""8 KiB""#,
        doc: "The longest value of a custom header.",
        set: |config, value| put(&mut config.limits.header_value_bytes_max, value.size(1)),
    },
    Key {
        path: "limits.custom_headers",
        default: "200",
        doc: "Custom headers of one message.",
        set: |config, value| put(&mut config.limits.custom_headers_max, value.count(0)),
    },
    Key {
        path: "limits.in_flight_bytes",
        default: r#""512 MiB""#,
        doc: "Memory for request bodies and large answers, in total; further ones wait.",
        set: |config, value| put(&mut config.in_flight_bytes_max, value.size(1_024)),
    },
    Key {
        path: "store.disk_reserve_bytes",
        default: r#""64 MiB""#,
        doc: "SQLite: free space to keep on the disk of the database. With less, no new message is accepted, so that\n\
              accepted ones can still be delivered.",
        set: |config, value| put(&mut config.store.disk_reserve_bytes, value.size(0)),
    },
    Key {
        path: "store.postgres_connections",
        default: "16",
        doc: "Maximum number of connections of this node to PostgreSQL; at least 4 are used.",
        set: |config, value| put(&mut config.store.postgres_connections_max, value.count(2)),
    },
    Key {
        path: "store.postgres_ca_file",
        default: r#""""#,
        doc: "PEM file of authorities to trust for TLS to PostgreSQL; empty for the public ones. Connections to a\n\
              database on another machine always use TLS (unless sslmode=disable).",
        set: |config, value| put(&mut config.store.postgres_ca_file, value.path()),
    },
    Key {
        path: "store.reader_threads",
        default: "2",
        doc: "Reader threads for SQLite, in addition to the writer.",
        set: |config, value| put(&mut config.store.reader_threads, value.count(1)),
    },
    Key {
        path: "retention.bodies",
        default: r#""30d""#,
        doc: "Bodies of messages. PostgreSQL deletes a week at a time, so some stay up to a week longer. Every retention\n\
              period is a duration, or \"forever\"; queued, scheduled and held messages are kept longer.",
        set: |config, value| put(&mut config.retention.bodies, value.retention()),
    },
    Key {
        path: "retention.messages",
        default: r#""90d""#,
        doc: "Messages with all their data.",
        set: |config, value| put(&mut config.retention.messages, value.retention()),
    },
    Key {
        path: "retention.events",
        default: r#""90d""#,
        doc: "Events in the feed. Events that a webhook waits for are kept longer.",
        set: |config, value| put(&mut config.retention.events, value.retention()),
    },
    Key {
        path: "retention.attempts",
        default: r#""90d""#,
        doc: "Delivery attempts and their transcripts.",
        set: |config, value| put(&mut config.retention.attempts, value.retention()),
    },
    Key {
        path: "retention.webhook_attempts",
        default: r#""30d""#,
        doc: "Webhook attempts and their answers.",
        set: |config, value| put(&mut config.retention.webhook_attempts, value.retention()),
    },
    Key {
        path: "retention.counters",
        default: r#""800d""#,
        doc: "Analytics counters.",
        set: |config, value| put(&mut config.retention.counters, value.retention()),
    },
    Key {
        path: "retention.minute_counters",
        default: r#""7d""#,
        doc: "Analytics counters by the minute; not longer than counters.",
        set: |config, value| put(&mut config.retention.minute_counters, value.retention()),
    },
    Key {
        path: "retention.check_every",
        default: r#""10m""#,
        doc: "How often expired data is removed. Messages, events and attempts younger than this are never removed.",
        set: |config, value| put(&mut config.retention.check_every, value.duration()),
    },
    Key {
        path: "log.format",
        default: r#""text""#,
        doc: "\"text\" for people or \"json\" for machines. The level comes from POSTROAD_LOG, like POSTROAD_LOG=debug.",
        set: |config, value| {
            put(&mut config.log.format, value.choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]))
        },
    },
];

const HEADING: &str = "\
# Postroad's settings with their defaults. Keep the lines you change and delete the rest.
# Every key can also be set in the environment, which wins over this file: `listen` of [http]
# is POSTROAD_HTTP_LISTEN. Lists in the environment are separated by commas.
";

/// The commented default file, as `postroad config default` prints it.
pub(crate) fn default_toml() -> String {
    let mut lines: Vec<String> = HEADING.lines().map(ToOwned::to_owned).collect();
    let mut current = "";
    for key in KEYS {
        let (section, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if section != current {
            lines.extend([String::new(), format!("[{section}]")]);
            current = section;
        } else if section.is_empty() {
            lines.push(String::new());
        }
        lines.extend(key.doc.lines().map(|line| format!("# {line}")));
        lines.push(format!("{name} = {}", key.default));
    }
    lines.join("\n") + "\n"
}

fn put<T, V: Into<T>>(field: &mut T, value: Result<V, String>) -> Result<(), String> {
    *field = value?.into();
    Ok(())
}

fn non_empty(text: &str) -> Result<&str, String> {
    if text.is_empty() { Err("the value is empty; write the path of a folder".to_owned()) } else { Ok(text) }
}
