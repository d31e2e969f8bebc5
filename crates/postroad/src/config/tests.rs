//! Tests of loading: a file, some variables, and the messages about them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::*;

fn load(file: &str, variables: &[(&str, &str)]) -> Result<(Config, Vec<String>), Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("postroad.toml");
    std::fs::write(&path, file).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let folder = format!("{}/", folder.path().display());
    Config::load(Some(&path), variables)
        .map(|(config, warnings)| (config, warnings.iter().map(ToString::to_string).collect()))
        .map_err(|error| {
            error.problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
        })
}

fn config(file: &str, variables: &[(&str, &str)]) -> Config {
    load(file, variables).unwrap().0
}

fn problems(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    load(file, variables).unwrap_err()
}

#[test]
fn default_file_is_the_golden_one_and_parses_to_the_defaults() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/default.toml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, default_toml()).unwrap();
    }
    let golden = std::fs::read_to_string(golden).unwrap_or_default();
    assert_eq!(golden, default_toml(), "UPDATE_GOLDEN=1 rewrites the golden file");
    assert_eq!(config(&golden, &[]), Config::default());
}

/// Content of docs/configuration.md: a table of keys for each section.
fn reference_page() -> String {
    let mut page = "\
# Configuration

Every key with its default. `postroad config default` prints them as a file, `postroad check-config --config FILE` checks yours.
An environment variable takes precedence over the file; lists in it are separated by commas. Without `--config` (or `POSTROAD_CONFIG`)
no file is read: keys that no variable sets have their defaults. Durations are texts like `\"90s\"`, `\"5m\"`, `\"48h\"`, `\"30d\"` and `\"1h 30m\"`; sizes
are bytes or texts like `\"25 MiB\"`; rates are texts like `\"100/s\"` and `\"10/m\"`. Generated from the code:
`UPDATE_GOLDEN=1 cargo xtask test -- -p postroad reference` rewrites this page.

## Top of the file

| key | default | variable | |
|---|---|---|---|
"
    .to_owned();
    let mut current = "";
    for key in KEYS {
        let (section, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if section != current {
            writeln!(page, "\n## [{section}]\n\n| key | default | variable | |\n|---|---|---|---|").unwrap();
            current = section;
        }
        let doc = key.doc.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| `{name}` | `{}` | `{}` | {doc} |", key.default, key.variable()).unwrap();
    }
    page
}

#[test]
fn the_reference_page_is_the_table_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, reference_page()).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        golden == reference_page(),
        "docs/configuration.md is not what keys.rs says; UPDATE_GOLDEN=1 rewrites it"
    );
}

#[test]
fn default_limits_are_those_of_the_model() {
    assert_eq!(Config::default().limits, Limits::default());
}

#[test]
fn environment_wins_over_the_file_and_the_file_over_the_default() {
    let file = "hostname = \"mx.example.com\"\n[limits]\nattachments = 7\nrequest_bytes = \"1 MiB\"\n";
    let variables = [
        ("POSTROAD_LIMITS_ATTACHMENTS", "9"),
        ("POSTROAD_HTTP_TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("POSTROAD_HTTP_LISTEN", ""),
        ("POSTROAD_DATA_DIR", "/var/lib/postroad"),
        ("POSTROAD_DATABASE", "postgres://me:hunter2@db/postroad?password=hunter2"),
        ("POSTROAD_LOG_FORMAT", "json"),
        ("POSTROAD_LOG", "debug"),
        ("POSTROAD_CONFIG", "elsewhere.toml"),
        ("HOME", "/"),
    ];
    let (config, warnings) = load(file, &variables).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(config.hostname.as_str(), "mx.example.com");
    assert_eq!((config.limits.attachments_max, config.limits.request_bytes_max), (9, 1 << 20));
    assert_eq!(config.http.trusted_proxies, ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
    assert_eq!(config.http.listen, None);
    assert_eq!(config.data_dir, PathBuf::from("/var/lib/postroad"));
    assert_eq!(config.log.format, LogFormat::Json);
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn postgres_url_is_printed_without_passwords() {
    let cases = [
        ("postgres://me:secret@db:5432/mail", "postgres://…@db:5432/mail"),
        ("postgres://me@db/mail?password=a@secret", "postgres://…@db/mail"),
        ("postgres://me:a?secret@db/mail", "postgres://…@…"),
        ("postgres://db/mail", "postgres://…@…"),
    ];
    for (url, printed) in cases {
        assert_eq!(format!("{:?}", PostgresUrl(url.to_owned())), printed);
    }
}

#[test]
fn unknown_keys_are_reported_with_the_nearest_key() {
    let file =
        "listen = \"\"\nxyzzy = 1\n[http]\nlistn = \"\"\n[store]\nlevel = 1\n[htp]\nallow_plain = true\n";
    // TOML tables are read in the order of their keys' names.
    assert_eq!(
        problems(file, &[]),
        [
            "postroad.toml:8: unknown key `htp.allow_plain`: did you mean `http.allow_plain`?",
            "postroad.toml:4: unknown key `http.listn`: did you mean `http.listen`?",
            "postroad.toml:1: unknown key `listen`: did you mean `http.listen`?",
            "postroad.toml:6: unknown key `store.level`: `postroad config default` shows all keys",
            "postroad.toml:2: unknown key `xyzzy`: `postroad config default` shows all keys",
        ]
    );
}

#[test]
fn unknown_variables_are_warnings() {
    let (_, warnings) =
        load("", &[("POSTROAD_HTTP_LISTN", "x"), ("POSTROAD_LISTEN", "x"), ("POSTROAD_XYZZY", "x")]).unwrap();
    assert_eq!(
        warnings,
        [
            "environment variable POSTROAD_HTTP_LISTN is not a setting and is ignored; did you mean POSTROAD_HTTP_LISTEN?",
            "environment variable POSTROAD_LISTEN is not a setting and is ignored; did you mean POSTROAD_HTTP_LISTEN?",
            "environment variable POSTROAD_XYZZY is not a setting and is ignored",
        ]
    );
}

#[test]
fn every_wrong_value_is_reported_with_its_position_and_a_fix() {
    let file = "tls = 1\nhostname = \"mx\"\n[http]\nlisten = \"localhost:8025\"\nallow_plain = \"yes\"\n\
                [limits]\nattachments = -1\nmessage_bytes = \"25 apples\"\n[log]\nformat = \"xml\"\n";
    let variables =
        [("POSTROAD_HTTP_TRUSTED_PROXIES", "everyone"), ("POSTROAD_DATABASE", "mysql://a:secret@b")];
    // The mistake in the form of the file comes first; the values follow in the order of `KEYS`.
    assert_eq!(
        problems(file, &variables),
        [
            "postroad.toml:1: `tls` is a section, not a key; write [tls] and its keys below it",
            "environment variable POSTROAD_DATABASE: `database`: the value is neither \"sqlite:PATH\" nor \
             \"postgres://USER:PASSWORD@HOST/NAME\"; leave it empty for SQLite in data_dir",
            "postroad.toml:2: `hostname`: \"mx\": the domain needs at least two parts, like example.com; \
             write a full name like \"mx.example.com\"",
            "postroad.toml:4: `http.listen`: \"localhost:8025\" does not fit here; write an IP address and a port, \
             like \"127.0.0.1:8025\" or \"[::]:8025\", or \"\" for off",
            "postroad.toml:5: `http.allow_plain`: \"yes\" does not fit here; write true or false",
            "environment variable POSTROAD_HTTP_TRUSTED_PROXIES: `http.trusted_proxies`: \"everyone\" is not a \
             network; write an address or CIDR, like \"10.0.0.0/8\"",
            "postroad.toml:8: `limits.message_bytes`: \"25 apples\" is not a size; write bytes, or a number with a \
             unit like \"25 MiB\"",
            "postroad.toml:7: `limits.attachments`: -1 does not fit here; write a whole number, at least 0",
            "postroad.toml:10: `log.format`: \"xml\" does not fit here; write \"text\" or \"json\"",
        ]
    );
}

#[test]
fn a_password_without_quotes_is_not_repeated() {
    assert_eq!(
        problems("[delivery]\nsmarthost_password = 12345678\n", &[]),
        [
            "postroad.toml:2: `delivery.smarthost_password`: a number does not fit here; write a text in quotes"
        ]
    );
}

#[test]
fn retention_needs_a_pause_between_two_sweeps() {
    let found = problems("[retention]\ncheck_every = \"0s\"\n", &[]);
    assert!(
        found.len() == 1 && found[0].contains("`retention.check_every`: is less than 100 ms"),
        "{found:?}"
    );
}

#[test]
fn broken_or_missing_files_are_named() {
    assert_eq!(problems("a = \n", &[]).len(), 1);
    assert!(
        problems("[http]\nlisten = 1 2\n", &[])[0].starts_with("postroad.toml:2: the file is not valid TOML")
    );
    let missing = Config::load(Some(Path::new("missing.toml")), std::iter::empty()).unwrap_err();
    assert!(missing.to_string().contains("`postroad config default > missing.toml` writes one"), "{missing}");
}

#[test]
fn settings_that_cannot_work_together_are_refused() {
    let cases = [
        (
            "[http]\nhttps_listen = \"[::]:443\"",
            "postroad.toml:2: `http.https_listen`: HTTPS needs a certificate",
        ),
        ("[tls]\nkey = \"k.pem\"", "postroad.toml:2: `tls.key`: a private key needs its certificate"),
        (
            "[tls]\ncertificate = \"c.pem\"",
            "postroad.toml:2: `tls.certificate`: a certificate needs its private key",
        ),
        (
            "[http]\nlisten = \"0.0.0.0:80\"",
            "postroad.toml:2: `http.listen`: other machines reach this address",
        ),
        ("[limits]\nin_flight_bytes = \"1 MiB\"", "postroad.toml:2: `limits.in_flight_bytes`: is less than"),
        ("[domains]\ncheck_interval = \"10ms\"", "postroad.toml:2: `domains.check_interval`: is less than"),
        (
            "[domains]\ncheck_interval_max = \"5s\"",
            "postroad.toml:2: `domains.check_interval_max`: is shorter",
        ),
        ("[limits]\nrequest_bytes = \"1 GiB\"", "default: `limits.in_flight_bytes`: is less than"),
    ];
    for (file, expected) in cases {
        let problems = problems(file, &[]);
        assert!(problems.len() == 1 && problems[0].starts_with(expected), "{file}: {problems:?}");
    }
    let https = "[http]\nlisten = \"0.0.0.0:80\"\nhttps_listen = \"0.0.0.0:443\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"";
    assert!(config(https, &[]).http.https_listen.is_some());
    assert!(config("[http]\nlisten = \"0.0.0.0:80\"\nallow_plain = true", &[]).http.allow_plain);
}

#[test]
fn counters_by_the_minute_are_not_kept_longer_than_the_others() {
    let text = "is longer than `retention.counters`";
    for (minutes, counters) in [("8d", "7d"), ("forever", "800d")] {
        let file = format!("[retention]\nminute_counters = \"{minutes}\"\ncounters = \"{counters}\"\n");
        let found = problems(&file, &[]);
        assert!(found.len() == 1 && found[0].contains(text), "{found:?}");
        assert!(found[0].contains("retention.minute_counters"), "{found:?}");
    }
    for (minutes, counters) in [("7d", "7d"), ("7d", "forever"), ("forever", "forever")] {
        config(&format!("[retention]\nminute_counters = \"{minutes}\"\ncounters = \"{counters}\"\n"), &[]);
    }
}
