//! Suppression lists as CSV.

use postroad_app::suppressions::read_csv;

use super::{Target, texts};

const LINES_MAX: usize = 1_000;

pub(super) const TARGET: Target = Target {
    name: "csv",
    run,
    seeds: || {
        texts(&[
            "address,reason,expires_at\na@example.com,manual,\n\"b,c\"@example.com,complaint,2030-01-01T00:00:00Z\n",
            "a@example.com\nb@example.com\n",
            "email;reason\r\n\"x\"\"y\"@example.com;hard_bounce\r\n",
        ])
    },
    frames: &["{}", "address\n{}", "address,reason\n\"{}\",manual\n"],
};

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = read_csv(&text, LINES_MAX);
}
