//! The figures of a run: medians, ratios, tables for people and JSON for programs.

#![expect(clippy::print_stdout, reason = "the figures are this command's answer")]

use serde_json::{Map, Value, json};

/// System that ratios refer to.
const PEER: &str = "postfix";
/// Figure that ratios are computed from, if measured.
const RATE: &str = "per_second";
const CPU: &str = "cpu_s_per_1000";
/// Suffix of the name of another build that a system is compared with.
const BEFORE: &str = " before";

/// Named figures of one run, in display order; the names include the unit.
pub(super) type Figures = Vec<(&'static str, f64)>;

#[derive(Debug)]
pub(super) struct Report {
    flushes_per_second: f64,
    works: Vec<Work>,
}

#[derive(Debug)]
struct Work {
    name: String,
    systems: Vec<(String, Vec<Figures>)>,
}

impl Report {
    pub(super) fn new(flushes_per_second: f64) -> Self {
        Self { flushes_per_second, works: Vec::new() }
    }

    /// Adds one run of a system on a work.
    pub(super) fn add(&mut self, work: &str, system: &str, figures: Figures) {
        let index = position_or_push(
            &mut self.works,
            |known| known.name == work,
            || Work { name: work.to_owned(), systems: Vec::new() },
        );
        let systems = &mut self.works[index].systems;
        let index = position_or_push(systems, |(name, _)| name == system, || (system.to_owned(), Vec::new()));
        systems[index].1.push(figures);
    }

    pub(super) fn to_json(&self) -> Value {
        let works = self.works.iter().map(|work| {
            let systems = work.systems.iter().map(|(name, runs)| {
                let mut fields: Map<String, Value> =
                    medians(runs).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
                fields.insert("system".into(), json!(name));
                fields.insert("runs".into(), json!(runs.len()));
                if let Some(ratio) = work.ratio_to_peer(runs) {
                    fields.insert("ratio_to_postfix".into(), json!(ratio));
                }
                for (field, figure) in [("rate_to_before", RATE), ("cpu_to_before", CPU)] {
                    if let Some(ratio) = work.ratio_to_before(name, runs, figure) {
                        fields.insert(field.into(), json!(ratio));
                    }
                }
                Value::Object(fields)
            });
            json!({ "work": work.name, "systems": systems.collect::<Vec<_>>() })
        });
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        json!({
            "cores": cores,
            "disk_flushes_per_second": self.flushes_per_second,
            "works": works.collect::<Vec<_>>(),
        })
    }

    pub(super) fn print(&self) {
        println!("flushes of this disk: {:.0}/s (append 4 kB, fdatasync)", self.flushes_per_second);
        for work in &self.works {
            work.print();
        }
    }
}

impl Work {
    fn ratio_to_peer(&self, runs: &[Figures]) -> Option<f64> {
        let (_, peer) = self.systems.iter().find(|(name, _)| name == PEER)?;
        Some(rate(runs)? / rate(peer)?)
    }

    /// Median of the ratios of each run to the same run of the other build: both builds alternate, so a machine that
    /// slows down slows both.
    fn ratio_to_before(&self, system: &str, runs: &[Figures], figure: &str) -> Option<f64> {
        let (_, before) = self.systems.iter().find(|(name, _)| name.strip_suffix(BEFORE) == Some(system))?;
        let value = |run: &Figures| run.iter().find(|(name, _)| *name == figure).map(|(_, value)| *value);
        let ratios = runs.iter().zip(before).filter_map(|(run, before)| Some(value(run)? / value(before)?));
        median(ratios.collect())
    }

    fn print(&self) {
        println!("\n{}", self.name);
        let Some((_, first)) = self.systems.first() else { return };
        let columns: Vec<&str> = medians(first).into_iter().map(|(name, _)| name).collect();
        let has_ratio = self.ratio_to_peer(first).is_some();
        let heads = columns.iter().map(|name| format!(" {:>18}", name.replace('_', " ")));
        let last = if has_ratio { format!(" {:>10}", "× postfix") } else { String::new() };
        println!("{:>27}{}{last}", "", heads.collect::<String>());
        for (name, runs) in &self.systems {
            let values = medians(runs).into_iter().map(|(_, value)| {
                let digits = if value.abs() < 10.0 { 2 } else { usize::from(value.abs() < 100.0) };
                format!(" {value:>18.digits$}")
            });
            let last = self.ratio_to_peer(runs).map_or_else(String::new, |ratio| format!(" {ratio:>10.1}"));
            println!("{name:>27}{}{last}", values.collect::<String>());
        }
        for (name, runs) in &self.systems {
            let ratio = |figure| self.ratio_to_before(name, runs, figure);
            if let (Some(rate), Some(cpu)) = (ratio(RATE), ratio(CPU)) {
                println!("{name:>27} compared with the build before: rate × {rate:.3}, CPU × {cpu:.3}");
            }
        }
    }
}

fn rate(runs: &[Figures]) -> Option<f64> {
    medians(runs).into_iter().find_map(|(name, value)| (name == RATE).then_some(value))
}

/// Median of each figure.
fn medians(runs: &[Figures]) -> Figures {
    let Some(first) = runs.first() else { return Vec::new() };
    let of = |name: &'static str| {
        let values = runs
            .iter()
            .filter_map(|run| run.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        Some((name, median(values.collect())?))
    };
    first.iter().filter_map(|(name, _)| of(name)).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn position_or_push<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_medians() {
        let mut report = Report::new(1.0);
        for (system, rates) in [("postfix", [90.0, 100.0, 500.0]), ("postroad", [400.0, 10.0, 900.0])] {
            for per_second in rates {
                report.add("smtp", system, vec![("per_second", per_second), ("p99_ms", 1.0)]);
            }
        }
        let json = report.to_json();
        assert_eq!(json["works"][0]["systems"][1]["ratio_to_postfix"], 4.0);
        assert_eq!(json["works"][0]["systems"][1]["runs"], 3);
        assert_eq!(json["works"][0]["systems"][0]["per_second"], 100.0);
    }

    #[test]
    fn another_build_is_compared_run_by_run() {
        let mut report = Report::new(1.0);
        for (system, rates) in [("postroad", [100.0, 51.0, 200.0]), ("postroad before", [100.0, 50.0, 100.0])]
        {
            for per_second in rates {
                report.add("smtp", system, vec![("per_second", per_second), ("cpu_s_per_1000", 0.5)]);
            }
        }
        let json = report.to_json();
        assert_eq!(json["works"][0]["systems"][0]["rate_to_before"], 1.02);
        assert_eq!(json["works"][0]["systems"][0]["cpu_to_before"], 1.0);
        assert_eq!(json["works"][0]["systems"][1].get("rate_to_before"), None);
    }
}
