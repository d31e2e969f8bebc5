//! Time grows linearly with the input, for every target and every hostile pattern.
//!
//! Most patterns are so fast that nothing needs to be compared. For a slow one, the time at a quarter of the
//! size is measured as well: linear parsers take a quarter of the time, quadratic parsers a sixteenth.

use std::time::{Duration, Instant};

use postroad_fuzz::{Pattern, Target, find_target, patterns};

const LARGE_BYTES: usize = 96 << 10;
const SMALL_BYTES: usize = LARGE_BYTES / 4;
/// Patterns that take less time at the large size are not compared.
const COMPARED_TIME_MIN: Duration = Duration::from_millis(100);
/// Largest accepted ratio of the times at the two sizes: between 4 (linear) and 16 (quadratic).
const RATIO_MAX: f64 = 9.0;

/// Best time of `runs` runs: other load only adds time.
fn best_time(target: &Target, pattern: Pattern, bytes: usize, runs: usize) -> Duration {
    let text = pattern.text(bytes);
    let once = || {
        let started = Instant::now();
        (target.run)(&text);
        started.elapsed()
    };
    std::iter::repeat_with(once).take(runs).min().unwrap_or_default()
}

/// Other load may make one comparison look quadratic, but hardly three.
const COMPARISONS: usize = 3;

fn is_quadratic(target: &Target, pattern: Pattern) -> bool {
    (0..COMPARISONS).all(|_| {
        let small = best_time(target, pattern, SMALL_BYTES, 3).as_secs_f64();
        let large = best_time(target, pattern, LARGE_BYTES, 3).as_secs_f64();
        large / small.max(1e-6) > RATIO_MAX
    })
}

fn check(name: &str) {
    let target = find_target(name).expect("the table of targets has it");
    let is_slow = |pattern: &Pattern| {
        best_time(target, *pattern, LARGE_BYTES, 1) >= COMPARED_TIME_MIN && is_quadratic(target, *pattern)
    };
    let slow: Vec<Pattern> = patterns(target).filter(is_slow).collect();
    assert!(slow.is_empty(), "{name} is not linear on {slow:#?}");
}

macro_rules! linear {
    ($($test:ident: $name:literal;)+) => {
        $(#[test]
        fn $test() {
            check($name);
        })+
    };
}

linear! {
    addresses: "addresses";
    csv: "csv";
    dns_texts: "dns-texts";
    http: "http";
    mime: "mime";
    reports: "reports";
    returned: "returned";
    smtp_client: "smtp-client";
    smtp_server: "smtp-server";
    templates: "templates";
    tokens: "tokens";
}
