//! A rate over time as SVG: a line with a dot for each span of time that had mail, and a tooltip for each span. A
//! dashed line marks the rate to stay below. Lengths are in SVG units.

use std::fmt::Write as _;

use crate::display::percent;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;
/// Width of a digit on narrow screens, where texts are largest.
const DIGIT_WIDTH: f64 = 9.0;
/// Maximum number of labels below the line.
const LABELS_MAX: usize = 6;
/// Share of the chart's height at which the limit is drawn, unless a high rate needs the room.
const LIMIT_SHARE: f64 = 0.75;

pub(crate) struct RatePoint {
    /// Text below the axis.
    pub(crate) label: String,
    /// `None` if the span had no mail.
    pub(crate) rate: Option<f64>,
}

/// The chart as SVG. Texts are not escaped: callers pass only numbers, times and fixed words.
pub(crate) fn rate_chart(points: &[RatePoint], limit: f64, description: &str) -> String {
    let largest = points.iter().filter_map(|point| point.rate).fold(0.0, f64::max);
    let top = (limit / LIMIT_SHARE).max(largest * 1.1);
    let slot = (WIDTH - LEFT - RIGHT) / points.len().max(1) as f64;
    let x = |at: usize| LEFT + slot * (at as f64 + 0.5);
    let y = |rate: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - rate / top);
    let mut svg = format!(
        "<svg class=\"chart rate\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{description}\">"
    );
    for (class, rate) in [("grid", 0.0), ("limit", limit)] {
        let at = y(rate);
        // Writing into a String cannot fail.
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\" dominant-baseline=\"middle\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            percent(Some(rate))
        );
    }
    let label_interval = points.len().div_ceil(LABELS_MAX).max(1);
    let (mut line, mut slots) = (String::new(), String::new());
    let mut is_drawing = false;
    for (at, point) in points.iter().enumerate() {
        if at % label_interval == 0 {
            // The last label may be wider than its span: keep it within the chart.
            let half_width = point.label.chars().count() as f64 * DIGIT_WIDTH / 2.0;
            let _ = write!(
                svg,
                "<text{} x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                // Narrow screens show only every second label.
                if (at / label_interval).is_multiple_of(2) { "" } else { " class=\"minor\"" },
                x(at).min(WIDTH - half_width),
                HEIGHT - 8.0,
                point.label
            );
        }
        let words = point.rate.map_or_else(|| "no mail".to_owned(), |rate| percent(Some(rate)));
        let _ = write!(
            slots,
            "<g><title>{}: {words}</title><path class=\"slot\" d=\"M{:.1} {TOP}h{slot:.1}v{}h-{slot:.1}z\"/>",
            point.label,
            x(at) - slot / 2.0,
            HEIGHT - TOP - BOTTOM
        );
        let Some(rate) = point.rate else {
            is_drawing = false;
            slots.push_str("</g>");
            continue;
        };
        let _ = write!(line, "{}{:.1} {:.1}", if is_drawing { 'L' } else { 'M' }, x(at), y(rate));
        is_drawing = true;
        let _ = write!(
            slots,
            "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/></g>",
            if rate > limit { "c3" } else { "c4" },
            x(at),
            y(rate)
        );
    }
    let _ = write!(svg, "<path class=\"line\" d=\"{line}\"/>{slots}</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rates: &[Option<f64>]) -> Vec<RatePoint> {
        rates.iter().map(|rate| RatePoint { label: "03-01".to_owned(), rate: *rate }).collect()
    }

    #[test]
    fn the_line_is_interrupted_where_there_was_no_mail() {
        let svg = rate_chart(&points(&[Some(0.01), Some(0.05), None, Some(0.0)]), 0.04, "Bounce rate");
        let line = svg.split("class=\"line\"").nth(1).unwrap().split("/>").next().unwrap();
        assert_eq!((line.matches('M').count(), svg.matches("<circle").count()), (2, 3), "{svg}");
        assert_eq!(svg.matches("class=\"c3\"").count(), 1, "one is above the limit: {svg}");
        assert!(svg.contains("<title>03-01: 5.00 %</title>"), "{svg}");
        assert!(svg.contains("<title>03-01: no mail</title>"), "{svg}");
    }

    #[test]
    fn rates_and_limit_are_within_the_picture() {
        for rates in [&[][..], &[None], &[Some(0.0)], &[Some(1.0)], &[Some(0.0008)]] {
            for limit in [0.04, 0.0008] {
                let svg = rate_chart(&points(rates), limit, "Rate");
                let ys = svg.split("cy=\"").skip(1).chain(svg.split("y1=\"").skip(1));
                for y in ys.map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap()) {
                    assert!((0.0..=HEIGHT).contains(&y), "{svg}");
                }
            }
        }
    }
}
