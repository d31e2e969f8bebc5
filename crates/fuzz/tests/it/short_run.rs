//! Short run of each target in every test run. The inputs are numbered, and the same on every machine.

use postroad_fuzz::{Mutator, find_target};

/// A failure names the input; `cargo xtask fuzz` searches longer.
fn run_briefly(name: &str, inputs: u64) {
    let target = find_target(name).expect("the table of targets has it");
    for seed in (target.seeds)() {
        (target.run)(&seed);
    }
    let mut mutator = Mutator::new((target.seeds)(), 1);
    for number in 0..inputs {
        let input = mutator.next_input();
        let outcome = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(outcome.is_ok(), "{name}, input {number}: {}", input.escape_ascii());
    }
}

macro_rules! short_runs {
    ($($test:ident: $name:literal, $inputs:literal;)+) => {
        $(#[test]
        fn $test() {
            run_briefly($name, $inputs);
        })+

        #[test]
        fn every_target_has_a_short_run() {
            let tested = [$($name),+];
            let all: Vec<&str> = postroad_fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(all, tested);
            // `cargo xtask` does not depend on this crate, so that it compiles fast. So it repeats the names.
            let xtask = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/src/fuzz.rs");
            let xtask = std::fs::read_to_string(xtask).expect("a source file");
            for name in all {
                assert!(xtask.contains(&format!("    \"{name}\",\n")), "`cargo xtask fuzz` lacks {name}");
            }
        }
    };
}

short_runs! {
    addresses: "addresses", 60_000;
    csv: "csv", 40_000;
    dns_texts: "dns-texts", 6_000;
    http: "http", 1_500;
    mime: "mime", 4_000;
    reports: "reports", 8_000;
    returned: "returned", 6_000;
    smtp_client: "smtp-client", 20_000;
    smtp_server: "smtp-server", 20_000;
    templates: "templates", 1_000;
    tokens: "tokens", 40_000;
}
