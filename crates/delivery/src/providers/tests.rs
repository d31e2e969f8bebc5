//! Tests of the providers: every entry has matching samples, no entry is shadowed, and each error about an operator's
//! file names the key.

use super::*;

#[test]
fn every_sample_is_found_under_its_own_provider() {
    let providers = Providers::built_in();
    for provider in providers.iter() {
        for sample in &provider.samples {
            assert_eq!(providers.find(sample).name, provider.name, "{sample}");
        }
    }
}

#[test]
fn every_suffix_has_a_sample_that_needs_it() {
    let providers = Providers::built_in();
    for provider in providers.iter() {
        for suffix in &provider.mx_suffixes {
            let has_suffix = |sample: &&String| sample.ends_with(&format!(".{suffix}"));
            let sample = provider.samples.iter().find(has_suffix);
            let sample =
                sample.unwrap_or_else(|| panic!("{}: no sample has the suffix {suffix}", provider.name));
            // Without the suffix, the sample must not be found under this provider.
            let mut without = providers.clone();
            without.by_suffix.remove(suffix);
            assert_ne!(
                without.find(sample).name,
                provider.name,
                "{suffix} is redundant: another suffix of the provider covers it"
            );
        }
    }
}

#[test]
fn built_in_providers_have_a_basis() {
    let providers = Providers::built_in();
    let names: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "apple",
            "comcast",
            "gmx",
            "google",
            "microsoft_365",
            "microsoft_consumer",
            "orange",
            "yahoo",
            "default"
        ]
    );
    assert!(providers.iter().all(|provider| !provider.basis.trim().is_empty()));
}

#[test]
fn suffixes_match_whole_labels_in_any_case() {
    let providers = Providers::built_in();
    for (host, name) in [
        ("ASPMX.L.Google.COM.", "google"),
        ("google.com", "google"),
        ("notgoogle.com", "default"),
        ("google.com.example.net", "default"),
        ("contoso-com.mail.protection.outlook.com", "microsoft_365"),
        ("x.olc.protection.outlook.com", "microsoft_consumer"),
        ("protection.outlook.com", "default"),
        ("mx.example.com", "default"),
        ("localhost", "default"),
        ("", "default"),
        ("...", "default"),
    ] {
        assert_eq!(providers.find(host).name, name, "{host}");
    }
}

#[test]
fn an_operator_changes_single_keys_and_adds_providers() {
    let providers = Providers::with_overrides(
        "[default]\nidle_seconds_max = 7\n[google]\nconnections_max = 3\nmessages_per_minute = 90\n\
         [acme]\nmx = [\"MX.Acme.example\"]\nslow_start_connections = 50\n",
    )
    .unwrap();
    let google = providers.find("smtp.google.com");
    assert_eq!((google.connections_max, google.messages_per_connection_max), (3, 50));
    assert_eq!(google.messages_per_minute, Some(90.0));
    // A changed default applies to providers that do not set the key.
    assert_eq!(google.idle_max, Duration::from_secs(7));
    assert_eq!(providers.find("mx1.comcast.net").idle_max, Duration::from_secs(20));

    let acme = providers.find("a.mx.acme.example");
    assert_eq!((acme.name.as_str(), acme.connections_max), ("acme", 10));
    assert_eq!(acme.slow_start_connections, 10, "the slow start never exceeds `connections_max`");
}

#[test]
fn a_longer_suffix_of_the_operator_takes_hosts_of_a_built_in_entry() {
    let providers = Providers::with_overrides(
        "[partner]\nmx = [\"partner-com.mail.protection.outlook.com\"]\nconnections_max = 1\n",
    )
    .unwrap();
    assert_eq!(providers.find("partner-com.mail.protection.outlook.com").name, "partner");
    assert_eq!(providers.find("other-com.mail.protection.outlook.com").name, "microsoft_365");
}

#[track_caller]
fn check_problem(toml: &str, expected: &str) {
    let problem = Providers::with_overrides(toml).expect_err("the overrides are invalid").to_string();
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn errors_in_overrides_name_the_key() {
    check_problem("[google\n", "not valid TOML");
    check_problem("google = 3\n", "[google]: ");
    check_problem("[google]\nconections_max = 3\n", "[google]: unknown field `conections_max`");
    check_problem("[google]\nconnections_max = \"3\"\n", "connections_max");
    check_problem("[google]\nconnections_max = -3\n", "connections_max");
    check_problem("[google]\nconnections_max = 0\n", "google.connections_max: must be at least 1");
    check_problem("[default]\nidle_seconds_max = 0\n", "default.idle_seconds_max: must be at least 1");
    check_problem("[acme]\nconnections_max = 3\n", "acme.mx: missing");
    check_problem("[default]\nmx = [\"example.com\"]\n", "default.mx: ");
    check_problem("[acme]\nmx = [\".acme.example\"]\n", "acme.mx: `.acme.example` is not the end");
    check_problem("[acme]\nmx = [\"google.com\"]\n", "acme.mx: `google.com` belongs to google already");
    check_problem(
        "[acme]\nmx = [\"a.example\", \"A.example\"]\n",
        "acme.mx: `a.example` belongs to acme already",
    );
}
