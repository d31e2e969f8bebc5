//! The table of settings: the one place that names a key, its default, its explanation and its field.
//!
//! From it come the default file, the environment variables, the check for unknown keys and the typed values.
//! A new setting is one row here and one field in `Config`.

use super::given::Given;
use super::{Config, LogFormat};

pub(super) type Set = fn(&mut Config, &Given) -> Result<(), String>;

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// `section.name`, or `name` at the top of the file.
    pub(crate) path: &'static str,
    /// As it stands in the default file.
    pub(crate) default: &'static str,
    /// Comment lines of the default file.
    pub(crate) doc: &'static str,
    /// Reads a value into its field.
    pub(super) set: Set,
}

impl Key {
    /// `http.listen` is `POSTROAD_HTTP_LISTEN`.
    pub(crate) fn variable(&self) -> String {
        format!("POSTROAD_{}", self.path.replace('.', "_").to_uppercase())
    }
}

/// Variables that steer the program without being settings of the file.
pub(super) const RESERVED_VARIABLES: &[&str] = &["POSTROAD_CONFIG", "POSTROAD_LOG"];

/// Keys of one section stand together; those without a section stand first, as TOML demands.
pub(crate) const KEYS: &[Key] = &[
    Key {
        path: "data_dir",
        default: r#""./postroad-data""#,
        doc: "Folder for everything this node keeps: the SQLite database, large bodies, the control socket.\n\
              Relative paths start at the folder where postroad is started.",
        set: |config, given| put(&mut config.data_dir, given.text().and_then(non_empty)),
    },
    Key {
        path: "database",
        default: r#""""#,
        doc: "Empty: SQLite in data_dir. Otherwise \"sqlite:PATH\", or \"postgres://USER:PASSWORD@HOST/NAME\"\n\
              for a PostgreSQL database that several nodes share.",
        set: |config, given| put(&mut config.database, given.database()),
    },
    Key {
        path: "hostname",
        default: r#""postroad.localhost""#,
        doc: "The public name of this host, as other mail servers see it.",
        set: |config, given| put(&mut config.hostname, given.domain()),
    },
    Key {
        path: "http.listen",
        default: r#""127.0.0.1:8025""#,
        doc: "Address and port of plain HTTP; empty for off. On a loopback address it serves the API;\n\
              on any other it redirects to HTTPS, unless allow_plain is true.",
        set: |config, given| put(&mut config.http.listen, given.listen()),
    },
    Key {
        path: "http.https_listen",
        default: r#""""#,
        doc: "Address and port of HTTPS; empty for off. Needs certificate and key in [tls].",
        set: |config, given| put(&mut config.http.https_listen, given.listen()),
    },
    Key {
        path: "http.allow_plain",
        default: "false",
        doc: "Serve the API over plain HTTP on an address that other machines reach.\n\
              Only behind a proxy that does TLS: API keys travel unencrypted otherwise.",
        set: |config, given| put(&mut config.http.allow_plain, given.flag()),
    },
    Key {
        path: "http.trusted_proxies",
        default: "[]",
        doc: "Networks of proxies whose X-Forwarded-For header is believed, like [\"10.0.0.0/8\"].",
        set: |config, given| put(&mut config.http.trusted_proxies, given.networks()),
    },
    Key {
        path: "tls.certificate",
        default: r#""""#,
        doc: "PEM file with the certificate and its chain.",
        set: |config, given| put(&mut config.tls.certificate, given.path()),
    },
    Key {
        path: "tls.key",
        default: r#""""#,
        doc: "PEM file with the certificate's private key.",
        set: |config, given| put(&mut config.tls.key, given.path()),
    },
    Key {
        path: "smtp.starttls_listen",
        default: r#""""#,
        doc: "Address and port of SMTP submission with STARTTLS, usually port 587; empty for off.\n\
              Needs certificate and key in [tls].",
        set: |config, given| put(&mut config.smtp.starttls_listen, given.listen()),
    },
    Key {
        path: "smtp.tls_listen",
        default: r#""""#,
        doc: "Address and port of SMTP submission inside TLS, usually port 465; empty for off.\n\
              Needs certificate and key in [tls].",
        set: |config, given| put(&mut config.smtp.tls_listen, given.listen()),
    },
    Key {
        path: "smtp.extra_listen",
        default: r#""""#,
        doc: "One more like starttls_listen, usually port 2525, for networks that block 587; empty for off.",
        set: |config, given| put(&mut config.smtp.extra_listen, given.listen()),
    },
    Key {
        path: "smtp.plain_listen",
        default: r#""""#,
        doc: "Address and port of SMTP without TLS and AUTH; empty for off. It takes mail only from networks\n\
              that a key is bound to (`postroad admin key create --server S --address CIDR`).",
        set: |config, given| put(&mut config.smtp.plain_listen, given.listen()),
    },
    Key {
        path: "smtp.proxy_protocol_from",
        default: "[]",
        doc: "Networks of proxies that begin each SMTP connection with the PROXY protocol (version 1 or 2),\n\
              like [\"10.0.0.0/8\"]. From them it is required; from everybody else it is not understood.",
        set: |config, given| put(&mut config.smtp.proxy_protocol_from, given.networks()),
    },
    Key {
        path: "smtp.in_flight_bytes",
        default: r#""256 MiB""#,
        doc: "Memory that messages coming in by SMTP may take together; more of them wait, then hear 452.",
        set: |config, given| put(&mut config.smtp.in_flight_bytes_max, given.size(1_024)),
    },
    Key {
        path: "smtp.sessions",
        default: "2000",
        doc: "SMTP sessions at the same time, on all listeners together.",
        set: |config, given| put(&mut config.smtp.sessions_max, given.count(1)),
    },
    Key {
        path: "smtp.sessions_per_address",
        default: "100",
        doc: "SMTP sessions at the same time from one address (IPv6: one /64). This machine's own do not count.",
        set: |config, given| put(&mut config.smtp.sessions_per_address_max, given.count(1)),
    },
    Key {
        path: "limits.request_bytes",
        default: r#""40 MiB""#,
        doc: "The largest HTTP request body. Sizes are bytes, or texts like \"25 MiB\" and \"25 MB\".",
        set: |config, given| put(&mut config.limits.request_bytes_max, given.size(1_024)),
    },
    Key {
        path: "limits.message_bytes",
        default: r#""25 MiB""#,
        doc: "The largest message, headers and encoded attachments included.",
        set: |config, given| put(&mut config.limits.message_bytes_max, given.size(1_024)),
    },
    Key {
        path: "limits.attachments",
        default: "100",
        doc: "Attachments of one message.",
        set: |config, given| put(&mut config.limits.attachments_max, given.count(0)),
    },
    Key {
        path: "limits.subject_bytes",
        default: "998",
        doc: "The longest subject.",
        set: |config, given| put(&mut config.limits.subject_bytes_max, given.size(1)),
    },
    Key {
        path: "limits.tag_bytes",
        default: "255",
        doc: "The longest tag.",
        set: |config, given| put(&mut config.limits.tag_bytes_max, given.size(1)),
    },
    Key {
        path: "limits.header_value_bytes",
        default: r#""8 KiB""#,
        doc: "The longest value of a custom header.",
        set: |config, given| put(&mut config.limits.header_value_bytes_max, given.size(1)),
    },
    Key {
        path: "limits.custom_headers",
        default: "200",
        doc: "Custom headers of one message.",
        set: |config, given| put(&mut config.limits.custom_headers_max, given.count(0)),
    },
    Key {
        path: "limits.in_flight_bytes",
        default: r#""512 MiB""#,
        doc: "Memory that request bodies and large answers may take together; more of them wait.",
        set: |config, given| put(&mut config.in_flight_bytes_max, given.size(1_024)),
    },
    Key {
        path: "store.disk_reserve_bytes",
        default: r#""64 MiB""#,
        doc: "Free space to leave on the disk of data_dir: below it no new message is accepted,\n\
              so that what was accepted can still be worked off.",
        set: |config, given| put(&mut config.store.disk_reserve_bytes, given.size(0)),
    },
    Key {
        path: "store.postgres_connections",
        default: "16",
        doc: "Connections to PostgreSQL that this node holds at most.",
        set: |config, given| put(&mut config.store.postgres_connections_max, given.count(2)),
    },
    Key {
        path: "store.postgres_ca_file",
        default: r#""""#,
        doc: "PEM file of the authorities to trust for TLS to PostgreSQL; empty for the public ones.\n\
              A database on another machine is only ever spoken to over TLS (unless sslmode=disable).",
        set: |config, given| put(&mut config.store.postgres_ca_file, given.path()),
    },
    Key {
        path: "store.reader_threads",
        default: "2",
        doc: "Threads that read from SQLite beside the one that writes.",
        set: |config, given| put(&mut config.store.reader_threads, given.count(1)),
    },
    Key {
        path: "log.format",
        default: r#""text""#,
        doc: "\"text\" for people or \"json\" for machines. The level comes from POSTROAD_LOG, like POSTROAD_LOG=debug.",
        set: |config, given| {
            put(&mut config.log.format, given.choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]))
        },
    },
];

const HEADING: &str = "\
# Postroad's settings with their defaults. Keep the lines you change and delete the rest.
# Every key can also be set in the environment: `listen` of [http] is POSTROAD_HTTP_LISTEN
# (lists with commas), which wins over this file.
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
