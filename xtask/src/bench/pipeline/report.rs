//! The figures of a run: medians, ratios, a table for people and JSON for programs.

#![expect(clippy::print_stdout, reason = "the figures are this command's answer")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What ratios refer to.
const PEER: &str = "postfix";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) per_second: f64,
    pub(crate) cpu_secs_per_1000: f64,
    pub(crate) memory_mib: f64,
}

/// Figures by work and system, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Report {
    works: Vec<String>,
    runs: BTreeMap<(usize, String), Vec<Figure>>,
}

impl Report {
    pub(crate) fn add(&mut self, work: &str, system: &str, figure: Figure) {
        let place = self.works.iter().position(|known| known == work).unwrap_or_else(|| {
            self.works.push(work.to_owned());
            self.works.len() - 1
        });
        self.runs.entry((place, system.to_owned())).or_default().push(figure);
    }

    /// The medians of one work, by system.
    fn medians(&self, place: usize) -> Vec<(&str, Figure, usize)> {
        let of = self.runs.iter().filter(|((work, _), _)| *work == place);
        of.map(|((_, system), figures)| (system.as_str(), median(figures), figures.len())).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let works = self.works.iter().enumerate().map(|(place, work)| {
            let medians = self.medians(place);
            let peer = medians.iter().find(|(system, ..)| *system == PEER).map(|(_, figure, _)| *figure);
            let systems = medians.iter().map(|(system, figure, runs)| {
                json!({
                    "system": system,
                    "runs": runs,
                    "messages_per_second": figure.per_second,
                    "cpu_seconds_per_1000": figure.cpu_secs_per_1000,
                    "peak_memory_mib": figure.memory_mib,
                    "ratio_to_postfix": peer.map(|peer| figure.per_second / peer.per_second),
                })
            });
            json!({ "work": work, "systems": systems.collect::<Vec<_>>() })
        });
        json!({ "pipeline": works.collect::<Vec<_>>() })
    }
}

fn median(figures: &[Figure]) -> Figure {
    let of = |part: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Figure {
        per_second: of(|figure| figure.per_second),
        cpu_secs_per_1000: of(|figure| figure.cpu_secs_per_1000),
        memory_mib: of(|figure| figure.memory_mib),
    }
}

pub(crate) fn print(report: &Report) {
    for (place, work) in report.works.iter().enumerate() {
        let medians = report.medians(place);
        let peer =
            medians.iter().find(|(system, ..)| *system == PEER).map(|(_, figure, _)| figure.per_second);
        println!("\n{work}");
        println!(
            "{:>22} {:>10} {:>12} {:>12} {:>10}",
            "system", "per second", "CPU s/1000", "peak MiB", "× postfix"
        );
        for (system, figure, _) in medians {
            let ratio =
                peer.map_or_else(|| "–".to_owned(), |peer| format!("{:.1}", figure.per_second / peer));
            println!(
                "{system:>22} {:>10.0} {:>12.2} {:>12.0} {ratio:>10}",
                figure.per_second, figure.cpu_secs_per_1000, figure.memory_mib
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_medians() {
        let mut report = Report::default();
        for (system, rates) in [("postfix", [90.0, 100.0, 500.0]), ("postroad", [400.0, 10.0, 900.0])] {
            for per_second in rates {
                report.add("smtp", system, Figure { per_second, cpu_secs_per_1000: 1.0, memory_mib: 1.0 });
            }
        }
        let json = report.to_json();
        assert_eq!(json["pipeline"][0]["systems"][1]["ratio_to_postfix"], 4.0);
        assert_eq!(json["pipeline"][0]["systems"][1]["runs"], 3);
    }
}
