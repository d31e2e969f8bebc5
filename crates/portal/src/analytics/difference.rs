//! Differences between a figure and the same figure of the previous period.

/// Difference of counts and times, such as `+12 %`; `None` if a figure is absent or the earlier one is 0.
pub(super) fn relative(now: Option<f64>, then: Option<f64>) -> Option<String> {
    let (now, then) = (now?, then.filter(|then| *then > 0.0)?);
    Some(signed((now / then - 1.0) * 100.0, 0, "%"))
}

/// Difference of rates in percentage points, such as `+0.50 points`.
pub(super) fn points(now: Option<f64>, then: Option<f64>) -> Option<String> {
    Some(signed((now? - then?) * 100.0, 2, "points"))
}

fn signed(value: f64, digits: usize, unit: &str) -> String {
    let text = format!("{:.digits$}", value.abs());
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = match value {
        _ if is_zero => '±',
        value if value < 0.0 => '−',
        _ => '+',
    };
    format!("{sign}{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_and_a_unit() {
        let compared = |now, then| relative(Some(now), Some(then));
        assert_eq!(compared(112.0, 100.0).as_deref(), Some("+12 %"));
        assert_eq!(compared(0.0, 3.0).as_deref(), Some("−100 %"));
        assert_eq!(compared(1_001.0, 1_000.0).as_deref(), Some("±0 %"));
        assert_eq!(compared(5.0, 0.0), None, "there is nothing to compare with");
        assert_eq!(points(Some(0.975), Some(0.98)).as_deref(), Some("−0.50 points"));
        assert_eq!(points(Some(0.975), None), None);
    }
}
