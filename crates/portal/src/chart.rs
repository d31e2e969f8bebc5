//! Stacked bar charts as SVG, with grid lines and a tooltip for each bar. Colours come from classes, so charts
//! follow the light or dark theme. Lengths are in SVG units.

use std::fmt::Write as _;

use crate::display::count;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
/// Minimum width of the margin on the left, which has the values of the grid lines; long values get more.
const LEFT_MIN: f64 = 64.0;
/// Width of a digit on narrow screens, where texts are largest.
const DIGIT_WIDTH: f64 = 12.5;
const RIGHT: f64 = 8.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 30.0;
/// Maximum number of labels below the bars.
const LABELS_MAX: usize = 12;

/// A segment of every bar, such as `delivered`.
pub(crate) struct Part {
    /// Class with its colour: `c1` to `c4`.
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
}

pub(crate) struct Bar {
    /// Text below the axis.
    pub(crate) label: String,
    /// One value for each part, from below.
    pub(crate) values: Vec<u64>,
}

/// The chart as SVG. Texts are not escaped: callers pass only numbers, times, names of time zones and fixed words.
pub(crate) fn bars(parts: &[Part], bars: &[Bar], description: &str) -> String {
    let largest = bars.iter().map(|bar| bar.values.iter().sum::<u64>()).max().unwrap_or(0);
    let step = grid_step(largest);
    let top = largest.div_ceil(step).max(1) * step;
    let left = LEFT_MIN.max(16.0 + DIGIT_WIDTH * count(top).chars().count() as f64);
    let (inner_width, inner_height) = (WIDTH - left - RIGHT, HEIGHT - TOP - BOTTOM);
    let y = |value: u64| TOP + inner_height * (1.0 - value as f64 / top as f64);
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{description}\">"
    );
    let mut value = 0;
    while value <= top {
        let at = y(value);
        // Writing into a String cannot fail.
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\" dominant-baseline=\"middle\">{}</text>",
            WIDTH - RIGHT,
            left - 6.0,
            count(value)
        );
        value += step;
    }
    let slot = inner_width / bars.len().max(1) as f64;
    let label_interval = bars.len().div_ceil(LABELS_MAX).max(1);
    for (at, bar) in bars.iter().enumerate() {
        let x = left + slot * at as f64;
        let mut below = 0;
        let words: Vec<String> = parts
            .iter()
            .zip(&bar.values)
            .map(|(part, value)| format!("{} {}", count(*value), part.name))
            .collect();
        let _ = write!(
            svg,
            "<g><title>{}: {}</title><path class=\"slot\" d=\"M{x:.1} {TOP}h{slot:.1}v{inner_height}h-{slot:.1}z\"/>",
            bar.label,
            words.join(", ")
        );
        for (part, value) in parts.iter().zip(&bar.values).filter(|(_, value)| **value > 0) {
            let (from, to) = (y(below), y(below + value));
            let _ = write!(
                svg,
                "<rect class=\"{}\" x=\"{:.1}\" y=\"{to:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                part.class,
                x + slot * 0.1,
                slot * 0.8,
                from - to
            );
            below += value;
        }
        svg.push_str("</g>");
        if at % label_interval == 0 {
            // The last label may be wider than its bar: keep it within the chart.
            let half_width = bar.label.chars().count() as f64 * DIGIT_WIDTH / 2.0 + RIGHT;
            let _ = write!(
                svg,
                "<text{} x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                // Narrow screens show only every second label.
                if (at / label_interval).is_multiple_of(2) { "" } else { " class=\"minor\"" },
                (x + slot / 2.0).min(WIDTH - half_width),
                HEIGHT - 8.0,
                bar.label
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Distance between grid lines: 1, 2 or 5 times a power of ten, so that at most four lines lie above zero.
fn grid_step(largest: u64) -> u64 {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if power * factor * 4 >= largest {
                return power * factor;
            }
        }
        power *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_titles_labels_and_lines_at_round_values() {
        assert_eq!(
            (grid_step(0), grid_step(4), grid_step(7), grid_step(900), grid_step(1_234_567)),
            (1, 1, 2, 500, 500_000)
        );
        let parts = [Part { class: "c1", name: "delivered" }, Part { class: "c3", name: "bounced" }];
        let svg = bars(&parts, &[Bar { label: "Mon".to_owned(), values: vec![1_500, 0] }], "Messages");
        assert!(svg.contains("<title>Mon: 1\u{202f}500 delivered, 0 bounced</title>"), "{svg}");
        assert_eq!((svg.matches("<rect").count(), svg.matches("class=\"slot\"").count()), (1, 1), "{svg}");
        assert!(svg.starts_with("<svg class=\"chart\"") && svg.ends_with("</svg>"));
        assert!(bars(&parts, &[], "none").contains("</svg>"));
    }
}
