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
fn unknown_keys_name_the_nearest_known_one() {
    let (good, said) = check("hostnam = \"a.example\"\n[http]\nlistn = \"127.0.0.1:1\"\n", &[]);
    assert!(!good);
    assert!(said.contains("`hostnam`") && said.contains("`hostname`"), "{said}");
    assert!(said.contains("`http.listn`") && said.contains("`http.listen`"), "{said}");
}

#[test]
fn wrong_values_say_what_is_right() {
    let (good, said) = check("[http]\nlisten = \"everywhere\"\n[limits]\nattachments = \"many\"\n", &[]);
    assert!(!good);
    assert!(said.contains("http.listen") && said.contains("limits.attachments"), "{said}");
    let (good, said) = check("[http]\nlisten = \"0.0.0.0:8025\"\n", &[]);
    assert!(!good);
    assert!(said.contains("allow_plain") && said.contains("https_listen"), "{said}");
    let (good, said) = check("[http]\nhttps_listen = \"127.0.0.1:8443\"\n", &[]);
    assert!(!good);
    assert!(said.contains("tls.certificate"), "{said}");
}

#[test]
fn every_key_can_come_from_the_environment() {
    let (good, said) = check("", &[("POSTROAD_HTTP_LISTEN", "nonsense")]);
    assert!(!good);
    assert!(said.contains("POSTROAD_HTTP_LISTEN"), "{said}");
    assert!(check("[http]\nlisten = \"nonsense\"\n", &[("POSTROAD_HTTP_LISTEN", "127.0.0.1:0")]).0);
    let (good, said) = check("", &[("POSTROAD_HTTP_LISTN", "127.0.0.1:0")]);
    assert!(good);
    assert!(said.contains("POSTROAD_HTTP_LISTEN"), "{said}");
}

#[test]
fn a_database_url_is_never_printed_with_its_password() {
    let (_, said) = check("", &[("POSTROAD_DATABASE", "mysql://u:hunter2@h/d")]);
    assert!(!said.contains("hunter2"), "{said}");
}

/// `UPDATE_GOLDEN=1` writes it anew.
#[test]
fn help_is_as_it_was_agreed() {
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
