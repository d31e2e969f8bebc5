//! The table of `cargo xtask bench pacing`, and the thresholds that every change has to keep: for the median of the
//! seeds, and for the worst one.

use std::time::Duration;

use postroad_testkit::hidden_receiver::RefusedAt;

use super::rows::{self, Measurements};
use super::seeds;

/// Number of seeds in tests: enough to include every way in which receivers count a minute.
const SEEDS: u64 = 8;
const MINUTES: u64 = 6;
const MINUTES_OF_BENCH: u64 = 12;

struct Row {
    name: String,
    play: Box<dyn Fn(u64) -> Measurements + Sync>,
    target: Measurements,
}

fn row(
    name: impl Into<String>,
    target: Measurements,
    play: impl Fn(u64) -> Measurements + Sync + 'static,
) -> Row {
    Row { name: name.into(), play: Box::new(play), target }
}

fn all_rows(length: u64) -> Vec<Row> {
    let mut all = Vec::new();
    for rate in [100.0, 300.0, 1_000.0, 3_000.0] {
        let target = Measurements { share: Some(90.0), refused: Some(1.0), ..Measurements::default() };
        all.push(row(format!("{rate} a minute"), target, move |seed| rows::rate_limit(rate, length, seed)));
    }
    let target = Measurements { share: Some(90.0), refused: Some(3.0), ..Measurements::default() };
    all.push(row("30 a minute", target, move |seed| rows::rate_limit(30.0, length, seed)));
    for most in [1, 2, 3] {
        let target = Measurements { share: Some(95.0), unoffered: Some(0.0), ..Measurements::default() };
        all.push(row(format!("{most} connections"), target, move |seed| {
            rows::connection_limit(most, RefusedAt::Banner, seed)
        }));
    }
    let target = Measurements { share: Some(95.0), unoffered: Some(0.0), ..Measurements::default() };
    all.push(row("2 connections, refused at MAIL", target, |seed| {
        rows::connection_limit(2, RefusedAt::MailFrom, seed)
    }));
    let target = Measurements { share: Some(85.0), refusals: Some(20.0), ..Measurements::default() };
    all.push(row("limit rises x 4", target, |seed| rows::changed_limit(300.0, 1_200.0, seed)));
    let target = Measurements { share: Some(85.0), refusals: Some(20.0), ..Measurements::default() };
    all.push(row("limit falls to a twelfth", target, |seed| rows::changed_limit(1_200.0, 100.0, seed)));
    let target = Measurements { p90: Some(90.0), ..Measurements::default() };
    all.push(row("greylisting 60 s", target, |seed| rows::greylisting(Duration::from_mins(1), seed)));
    all.push(row(
        "greylisting 300 s",
        Measurements { p90: Some(340.0), ..Measurements::default() },
        |seed| rows::greylisting(Duration::from_mins(5), seed),
    ));
    let target = Measurements { share: Some(95.0), p90: Some(90.0), ..Measurements::default() };
    all.push(row("greylisting by address, pool of 4", target, rows::greylisting_by_address));
    all.push(row(
        "4 addresses, 200 domains",
        Measurements { uneven: Some(20.0), ..Measurements::default() },
        |seed| rows::addresses(&[1; 4], 200, 1, seed),
    ));
    all.push(row(
        "weights 1/2/5, 20 domains",
        Measurements { uneven: Some(5.0), ..Measurements::default() },
        |seed| rows::addresses(&[1, 2, 5], 20, 80, seed),
    ));
    all.push(row(
        "one domain refuses",
        Measurements { p95: Some(5.0), ..Measurements::default() },
        rows::refusing_domain,
    ));
    all.push(row(
        "many domains refuse one server",
        Measurements { p95: Some(5.0), ..Measurements::default() },
        rows::refused_server,
    ));
    all.push(row(
        "one domain takes no more",
        Measurements { p95: Some(5.0), ..Measurements::default() },
        rows::rate_limited_domain,
    ));
    let target = Measurements { refusals: Some(10.0), ..Measurements::default() };
    all.push(row("one of 4 addresses listed", target, rows::listed_address));
    let target = Measurements { p90: Some(60.0), refusals: Some(40.0), ..Measurements::default() };
    all.push(row("host down 10 min", target, |seed| rows::outage("", seed)));
    // No target for refusals: on connections that are open when the outage begins, each message is refused.
    let target = Measurements { p90: Some(60.0), ..Measurements::default() };
    all.push(row("451 at the banner for 10 min", target, |seed| {
        rows::outage("451 4.3.0 Temporary server error", seed)
    }));
    // `p95`: the length of the block, and a minute to find its end.
    let target = Measurements { p90: Some(60.0), p95: Some(660.0), ..Measurements::default() };
    all.push(row("block of 10 min", target, rows::block));
    let target = Measurements { p90: Some(60.0), refusals: Some(80.0), ..Measurements::default() };
    all.push(row("block at all domains of a provider", target, rows::provider_block));
    let target = Measurements { p95: Some(5.0), ..Measurements::default() };
    all.push(row("one domain of a provider refuses", target, rows::refusing_domain_of_provider));
    let target =
        Measurements { share: Some(80.0), p95: Some(1.0), unoffered: Some(0.0), ..Measurements::default() };
    all.push(row("tarpit of 20 s, and others", target, rows::tarpit));
    all
}

/// A measured value: a column of the table.
struct Figure {
    name: &'static str,
    value_of: fn(&Measurements) -> Option<f64>,
    /// Whether larger values are better.
    is_larger_better: bool,
    /// Bound for the worst seed, as a multiple of the target, which the median has to reach.
    worst: f64,
}

impl Figure {
    const fn new(name: &'static str, worst: f64, value_of: fn(&Measurements) -> Option<f64>) -> Self {
        Self { name, value_of, is_larger_better: false, worst }
    }

    fn reaches(&self, value: f64, bound: f64) -> bool {
        if self.is_larger_better { value >= bound } else { value <= bound }
    }

    /// Median and worst value of the seeds; `None` if the row does not measure it.
    fn summarise(&self, measured: &[Measurements]) -> Option<(f64, f64)> {
        let mut values: Vec<f64> = measured.iter().filter_map(self.value_of).collect();
        values.sort_by(f64::total_cmp);
        let worst = if self.is_larger_better { values.first() } else { values.last() };
        Some((median(&values)?, *worst?))
    }
}

const FIGURES: [Figure; 7] = [
    Figure { name: "share %", value_of: |m| m.share, is_larger_better: true, worst: 0.8 },
    Figure::new("refused %", 3.0, |m| m.refused),
    Figure::new("refusals", 3.0, |m| m.refusals),
    Figure::new("p90 s", 1.5, |m| m.p90),
    Figure::new("p95 s", 1.5, |m| m.p95),
    Figure::new("unoffered", 1.0, |m| m.unoffered),
    Figure::new("uneven %", 1.0, |m| m.uneven),
];

/// Median of sorted values.
fn median(values: &[f64]) -> Option<f64> {
    let upper = *values.get(values.len() / 2)?;
    let lower = if values.len().is_multiple_of(2) { values[values.len() / 2 - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

#[test]
fn every_row_reaches_its_targets() {
    let wanted = seeds::bench_seed_count();
    let length = if wanted.is_some() { MINUTES_OF_BENCH } else { MINUTES };
    let seeds: Vec<u64> = (0..wanted.unwrap_or(SEEDS)).collect();
    let begun = std::time::Instant::now();
    println!(
        "median / worst of {} seeds; targets of the median in brackets\n| receiver | {} | faults |\n|{}",
        seeds.len(),
        FIGURES.map(|figure| figure.name).join(" | "),
        "---|".repeat(FIGURES.len() + 2)
    );
    let mut missed = Vec::new();
    for row in all_rows(length) {
        let measured = seeds::play_all(&seeds, &row.play);
        let mut cells = Vec::new();
        for figure in &FIGURES {
            let (found, target) = (figure.summarise(&measured), (figure.value_of)(&row.target));
            let shown =
                found.map_or_else(|| "-".to_owned(), |(median, worst)| format!("{median:.1} / {worst:.1}"));
            cells.push(target.map_or(shown.clone(), |target| format!("{shown} ({target})")));
            let Some(target) = target else { continue };
            let (median, worst) = found.unwrap_or((f64::NAN, f64::NAN));
            if !figure.reaches(median, target) {
                missed.push(format!("{}, {}: {median} instead of {target}", row.name, figure.name));
            }
            if !figure.reaches(worst, target * figure.worst) {
                let bound = target * figure.worst;
                missed.push(format!("{}, {}, worst seed: {worst} instead of {bound}", row.name, figure.name));
            }
        }
        let faults: f64 = measured.iter().map(|m| m.faults).sum();
        println!("| {} | {} | {faults} |", row.name, cells.join(" | "));
        if faults > 0.0 {
            missed.push(format!("{}: {faults} messages failed, lost or sent twice", row.name));
        }
    }
    println!("in {:.0} s", begun.elapsed().as_secs_f64());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
