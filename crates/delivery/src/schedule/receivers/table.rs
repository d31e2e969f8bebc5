//! The table, and the thresholds that every change has to keep.

use std::time::Duration;

use postroad_testkit::hidden_receiver::RefusedAt;

use super::rows::{self, Measured};
use super::seeds;

/// Seeds of the tests: the first ones, which include every way in which receivers count a minute.
const SEEDS: u64 = 8;
const MINUTES: u64 = 6;
const MINUTES_OF_BENCH: u64 = 12;

struct Row {
    name: String,
    play: Box<dyn Fn(u64) -> Measured + Sync>,
    target: Measured,
}

fn row(name: impl Into<String>, target: Measured, play: impl Fn(u64) -> Measured + Sync + 'static) -> Row {
    Row { name: name.into(), play: Box::new(play), target }
}

fn all(length: u64) -> Vec<Row> {
    let mut all = Vec::new();
    for rate in [100.0, 300.0, 1_000.0, 3_000.0] {
        let target = Measured { share: Some(90.0), refused: Some(1.0), ..Measured::default() };
        all.push(row(format!("{rate} a minute"), target, move |seed| rows::rate_limit(rate, length, seed)));
    }
    let target = Measured { share: Some(90.0), refused: Some(3.0), ..Measured::default() };
    all.push(row("30 a minute", target, move |seed| rows::rate_limit(30.0, length, seed)));
    for most in [1, 2, 3] {
        let target = Measured { share: Some(95.0), unoffered: Some(0.0), ..Measured::default() };
        all.push(row(format!("{most} connections"), target, move |seed| {
            rows::connection_limit(most, RefusedAt::Banner, seed)
        }));
    }
    let target = Measured { share: Some(95.0), unoffered: Some(0.0), ..Measured::default() };
    all.push(row("2 connections, refused at MAIL", target, |seed| {
        rows::connection_limit(2, RefusedAt::MailFrom, seed)
    }));
    let target = Measured { share: Some(85.0), refusals: Some(20.0), ..Measured::default() };
    all.push(row("limit rises x 4", target, |seed| rows::step(300.0, 1_200.0, seed)));
    let target = Measured { share: Some(85.0), refusals: Some(20.0), ..Measured::default() };
    all.push(row("limit falls to a twelfth", target, |seed| rows::step(1_200.0, 100.0, seed)));
    let target = Measured { p90: Some(90.0), ..Measured::default() };
    all.push(row("greylisting 60 s", target, |seed| rows::greylisting(Duration::from_mins(1), seed)));
    all.push(row("greylisting 300 s", Measured { p90: Some(340.0), ..Measured::default() }, |seed| {
        rows::greylisting(Duration::from_mins(5), seed)
    }));
    let target = Measured { share: Some(95.0), p90: Some(90.0), ..Measured::default() };
    all.push(row("greylisting by address, pool of 4", target, rows::greylisting_by_address));
    all.push(row(
        "4 addresses, 200 domains",
        Measured { uneven: Some(20.0), ..Measured::default() },
        |seed| rows::addresses(&[1; 4], 200, 1, seed),
    ));
    all.push(row(
        "weights 1/2/5, 20 domains",
        Measured { uneven: Some(5.0), ..Measured::default() },
        |seed| rows::addresses(&[1, 2, 5], 20, 80, seed),
    ));
    all.push(row(
        "one domain refuses",
        Measured { p95: Some(5.0), ..Measured::default() },
        rows::refusing_domain,
    ));
    all.push(row(
        "one domain takes no more",
        Measured { p95: Some(5.0), ..Measured::default() },
        rows::rate_limited_domain,
    ));
    let target = Measured { refusals: Some(10.0), ..Measured::default() };
    all.push(row("one of 4 addresses listed", target, rows::listed_address));
    let target = Measured { p90: Some(60.0), refusals: Some(40.0), ..Measured::default() };
    all.push(row("host down 10 min", target, |seed| rows::outage("", seed)));
    // No target for refusals: on connections that are open at the beginning, each message is refused.
    let target = Measured { p90: Some(60.0), ..Measured::default() };
    all.push(row("451 at the banner for 10 min", target, |seed| {
        rows::outage("451 4.3.0 Temporary server error", seed)
    }));
    // Nobody's mail waits for longer than the block and the time to find its end.
    let target = Measured { p90: Some(60.0), p95: Some(660.0), ..Measured::default() };
    all.push(row("block of 10 min", target, rows::block));
    let target = Measured { p90: Some(60.0), refusals: Some(80.0), ..Measured::default() };
    all.push(row("block at all domains of a provider", target, rows::provider_block));
    let target = Measured { p95: Some(5.0), ..Measured::default() };
    all.push(row("one domain of a provider refuses", target, rows::refusing_domain_of_provider));
    let target = Measured { share: Some(80.0), p95: Some(1.0), unoffered: Some(0.0), ..Measured::default() };
    all.push(row("tarpit of 20 s, and others", target, rows::tarpit));
    all
}

fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut values: Vec<f64> = values.flatten().collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = if values.len().is_multiple_of(2) { values[values.len() / 2 - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

/// The worst seed reaches this part of the share that the median has to reach.
const WORST_SHARE: f64 = 0.8;
/// The worst seed is refused at most this many times as often as the median may be.
const WORST_REFUSED: f64 = 3.0;

fn shown(value: Option<f64>, target: Option<f64>) -> String {
    let value = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    target.map_or(value.clone(), |target| format!("{value} ({target})"))
}

#[test]
fn every_row_reaches_its_targets() {
    let wanted = seeds::wanted();
    let length = if wanted.is_some() { MINUTES_OF_BENCH } else { MINUTES };
    let seeds: Vec<u64> = (0..wanted.unwrap_or(SEEDS)).collect();
    let head = [
        "receiver",
        "share %",
        "refused %",
        "refusals",
        "p90 s",
        "p95 s",
        "unoffered",
        "uneven %",
        "faults",
        "worst share %",
        "worst refused %",
    ];
    println!(
        "median of {} seeds; targets in brackets\n| {} |\n|{}",
        seeds.len(),
        head.join(" | "),
        "---|".repeat(head.len())
    );
    let mut missed = Vec::new();
    for row in all(length) {
        let measured = seeds::play_all(&seeds, &row.play);
        let of = |get: fn(&Measured) -> Option<f64>| median(measured.iter().map(get));
        let figures: [fn(&Measured) -> Option<f64>; 7] =
            [|m| m.share, |m| m.refused, |m| m.refusals, |m| m.p90, |m| m.p95, |m| m.unoffered, |m| m.uneven];
        let cells = figures.map(|get| shown(of(get), get(&row.target)));
        let faults: f64 = measured.iter().map(|m| m.faults).sum();
        let worst_share = measured.iter().filter_map(|m| m.share).min_by(f64::total_cmp);
        let worst_refused = measured.iter().filter_map(|m| m.refused).max_by(f64::total_cmp);
        let share_target = row.target.share.map(|target| target * WORST_SHARE);
        let refused_target = row.target.refused.map(|target| target * WORST_REFUSED);
        println!(
            "| {} | {} | {faults} | {} | {} |",
            row.name,
            cells.join(" | "),
            shown(worst_share, share_target),
            shown(worst_refused, refused_target)
        );
        if share_target.is_some_and(|target| worst_share.is_none_or(|share| share < target)) {
            missed.push(format!("{}, worst share: {worst_share:?} instead of {share_target:?}", row.name));
        }
        if refused_target.is_some_and(|target| worst_refused.is_none_or(|refused| refused > target)) {
            missed.push(format!(
                "{}, worst refused: {worst_refused:?} instead of {refused_target:?}",
                row.name
            ));
        }
        for (at, get) in figures.iter().enumerate() {
            let Some(target) = get(&row.target) else { continue };
            let got = of(*get);
            let is_kept = got.is_some_and(|got| if at == 0 { got >= target } else { got <= target });
            if !is_kept {
                missed.push(format!("{}, {}: {got:?} instead of {target}", row.name, head[at + 1]));
            }
        }
        if faults > 0.0 {
            missed.push(format!("{}: {faults} messages failed, lost or sent twice", row.name));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
