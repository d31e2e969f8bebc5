//! `check-config`, `config default`, `--help`, environment variables and unknown keys.

use std::process::Output;

use postroad_testkit::daemon;

use crate::world::program;

fn run(args: &[&str], envs: &[(&str, &str)]) -> Output {
    daemon::command(program(), envs).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `check-config` on this configuration; returns whether it is good, and everything that was printed.
fn check(config: &str, envs: &[(&str, &str)]) -> (bool, String) {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("postroad.toml");
    std::fs::write(&file, config).unwrap();
    let output = run(&["check-config", "--config", file.to_str().unwrap()], envs);
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn the_default_configuration_is_good_and_explained() {
    let default = text(&run(&["config", "default"], &[]).stdout);
    assert!(default.lines().filter(|line| line.starts_with('#')).count() > 20, "{default}");
    assert!(check(&default, &[]).0);
}

#[test]
fn unknown_keys_are_reported_with_the_nearest_known_one() {
    let (is_good, report) = check("hostnam = \"a.example\"\n[http]\nlistn = \"127.0.0.1:1\"\n", &[]);
    assert!(!is_good);
    assert!(report.contains("`hostnam`") && report.contains("`hostname`"), "{report}");
    assert!(report.contains("`http.listn`") && report.contains("`http.listen`"), "{report}");
}

#[test]
fn wrong_values_are_reported_with_a_fix() {
    let (is_good, report) = check("[http]\nlisten = \"everywhere\"\n[limits]\nattachments = \"many\"\n", &[]);
    assert!(!is_good);
    assert!(report.contains("http.listen") && report.contains("limits.attachments"), "{report}");
    let (is_good, report) = check("[http]\nlisten = \"0.0.0.0:8025\"\n", &[]);
    assert!(!is_good);
    assert!(report.contains("allow_plain") && report.contains("https_listen"), "{report}");
    let (is_good, report) = check("[http]\nhttps_listen = \"127.0.0.1:8443\"\n", &[]);
    assert!(!is_good);
    assert!(report.contains("tls.certificate"), "{report}");
}

#[test]
fn every_key_can_come_from_the_environment() {
    let (is_good, report) = check("", &[("POSTROAD_HTTP_LISTEN", "nonsense")]);
    assert!(!is_good);
    assert!(report.contains("POSTROAD_HTTP_LISTEN"), "{report}");
    assert!(check("[http]\nlisten = \"nonsense\"\n", &[("POSTROAD_HTTP_LISTEN", "127.0.0.1:0")]).0);
    let (is_good, report) = check("", &[("POSTROAD_HTTP_LISTN", "127.0.0.1:0")]);
    assert!(is_good);
    assert!(report.contains("POSTROAD_HTTP_LISTEN"), "{report}");
}

/// Paths of a certificate, of a key that does not belong to it, and of its own key.
fn certificate_and_keys(folder: &std::path::Path) -> [String; 3] {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    [path("a/dev-certificate.pem"), path("b/dev-key.pem"), path("a/dev-key.pem")]
}

#[test]
fn check_config_finds_what_serve_would_refuse() {
    let folder = tempfile::TempDir::new().unwrap();
    let [certificate, wrong_key, right_key] = certificate_and_keys(folder.path());
    for name in ["a", "b"] {
        let data = folder.path().join(name);
        let args = crate::world::DEV_ARGUMENTS.into_iter().chain(["--data-dir", data.to_str().unwrap()]);
        // The first start creates a self-signed certificate and its key in the data folder.
        drop(postroad_testkit::Daemon::start(program(), args, &[]));
    }
    let pair = |key: &str| format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    let cases: [(String, &[&str]); 7] = [
        (pair(&wrong_key), &["`tls.certificate`", "does not belong to the certificate"]),
        (pair("/nowhere.pem"), &["`tls.certificate`", "/nowhere.pem"]),
        (
            "[delivery]\nproviders_file = \"/nowhere.toml\"\n".into(),
            &["`delivery.providers_file`", "/nowhere.toml"],
        ),
        ("[delivery]\nca_file = \"/nowhere.pem\"\n".into(), &["`delivery.ca_file`", "/nowhere.pem"]),
        ("[webhooks]\nca_file = \"/nowhere.pem\"\n".into(), &["`webhooks.ca_file`"]),
        (format!("data_dir = {certificate:?}\n"), &["`data_dir`", "is a file"]),
        (
            "[http]\nlisten = \"127.0.0.1:8025\"\n[smtp]\nplain_listen = \"127.0.0.1:8025\"\n".into(),
            &["`smtp.plain_listen`", "`http.listen`"],
        ),
    ];
    for (config, expected) in cases {
        let (is_good, report) = check(&config, &[]);
        assert!(!is_good, "{config}{report}");
        assert!(expected.iter().all(|part| report.contains(part)), "{config}{report}");
        assert!(report.contains("postroad.toml:"), "it names the line: {report}");
        // And `serve` refuses it with the same words.
        let file = folder.path().join("postroad.toml");
        std::fs::write(&file, &config).unwrap();
        let output = run(&["serve", "--config", file.to_str().unwrap()], &[]);
        let error = text(&output.stderr);
        assert!(!output.status.success() && expected.iter().all(|part| error.contains(part)), "{output:?}");
    }
    assert!(check(&pair(&right_key), &[]).0);
}

#[test]
fn check_config_warns_of_the_default_host_name_and_of_listeners_that_are_off() {
    let (is_good, report) = check("[http]\nlisten = \"\"\n", &[]);
    assert!(is_good, "{report}");
    for expected in
        ["`hostname`: is still the default", "`smtp.bounce_listen`: is off", "`http.listen`: is off"]
    {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    let complete = "hostname = \"mx.example.com\"\n[smtp]\nbounce_listen = \"0.0.0.0:25\"\n";
    assert_eq!(check(complete, &[]), (true, "The configuration is good.\n".to_owned()));
    let output = run(&["check-config", "--json"], &[("POSTROAD_HOSTNAME", "mx.example.com")]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["good"], answer["warnings"].as_array().unwrap().len()),
        (&true.into(), 1),
        "{answer}"
    );
}

/// Arguments of `/bin/sh`, which sets the limits and then runs the program with `args` in its place.
fn shell_args<'a>(limits: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let program = program().to_str().expect("the target folder has a plain name");
    ["-c", limits, program].into_iter().chain(args.iter().copied()).collect()
}

#[test]
fn check_config_warns_when_the_system_allows_too_few_open_files() {
    let config = "hostname = \"mx.example.com\"\n[smtp]\nbounce_listen = \"0.0.0.0:25\"\n[delivery]\nconnections = 3000\n";
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("postroad.toml");
    std::fs::write(&file, config).unwrap();
    let args = ["check-config", "--config", file.to_str().unwrap()];
    let report_with = |limits: &str| {
        let output = daemon::command("/bin/sh", &[]).args(shell_args(limits, &args)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout) + &text(&output.stderr)
    };
    // The soft limit does not matter: the service raises it.
    assert_eq!(report_with("ulimit -Sn 256; exec \"$0\" \"$@\""), "The configuration is good.\n");
    let warned = report_with("ulimit -n 1500; exec \"$0\" \"$@\"");
    for expected in ["`delivery.connections`", "the system allows 1500", "LimitNOFILE="] {
        assert!(warned.contains(expected), "{expected}: {warned}");
    }
    // 3,000 connections to other mail servers, half as many more that wait for a final reply, 2,000 sessions for
    // submission and as many for bounces.
    let warned = report_with("ulimit -n 8000; exec \"$0\" \"$@\"");
    assert!(warned.contains("the system allows 8000"), "{warned}");
}

#[test]
fn a_service_raises_its_limit_of_open_files_as_far_as_it_may() {
    let folder = tempfile::TempDir::new().unwrap();
    let dev: Vec<&str> = crate::world::DEV_ARGUMENTS
        .into_iter()
        .chain(["--data-dir", folder.path().to_str().unwrap()])
        .collect();
    let args = shell_args("ulimit -Sn 600; ulimit -Hn 1900; exec \"$0\" \"$@\"", &dev);
    let daemon = postroad_testkit::Daemon::start(std::path::Path::new("/bin/sh"), args, &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(numbers, ["1900", "1900"], "{line}");
}

#[test]
fn a_refused_database_url_is_printed_without_its_password() {
    let (_, report) = check("", &[("POSTROAD_DATABASE", "mysql://u:hunter2@h/d")]);
    assert!(!report.contains("hunter2"), "{report}");
}

/// `UPDATE_GOLDEN=1` rewrites the file.
#[test]
fn help_matches_the_golden_file() {
    let commands: [&[&str]; 12] = [
        &["--help"],
        &["dev", "--help"],
        &["serve", "--help"],
        &["check-config", "--help"],
        &["admin", "--help"],
        &["admin", "server", "--help"],
        &["admin", "domain", "--help"],
        &["admin", "key", "--help"],
        &["admin", "suppression", "--help"],
        &["explain", "--help"],
        &["explain", "reply", "--help"],
        &["explain", "bounce", "--help"],
    ];
    let shown = commands.map(|command| {
        let output = run(command, &[("COLUMNS", "100")]);
        assert!(output.status.success());
        format!("$ postroad {}\n{}\n", command.join(" "), text(&output.stdout).trim_end())
    });
    let help = shown.concat();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &help).unwrap();
    }
    assert_eq!(help, std::fs::read_to_string(golden).unwrap_or_default());
}
