//! Sizes such as "25 MiB" and durations such as "48h".

use std::time::Duration;

const SIZE_UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A whole number of bytes, with or without a unit; upper and lower case are the same.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim().to_ascii_lowercase();
    let parsed = text.parse().ok().or_else(|| parse_with_unit(&text, SIZE_UNITS));
    parsed.ok_or_else(|| {
        format!("{text:?} is not a size; write bytes, or a number with a unit like \"25 MiB\"")
    })
}

/// A whole number with a unit; several add up, as in "1h 30m".
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let parts = text.trim().split_inclusive(|c: char| c.is_ascii_alphabetic());
    // "ms" is one unit: join a single letter to the part before it.
    let mut words: Vec<String> = Vec::new();
    for part in parts {
        match words.last_mut() {
            Some(word) if part.len() == 1 => word.push_str(part),
            _ => words.push(part.to_owned()),
        }
    }
    let millis = words.iter().map(|word| parse_with_unit(word.trim(), DURATION_UNITS));
    let total = millis.reduce(|sum, next| sum?.checked_add(next?)).flatten();
    total.map(Duration::from_millis).ok_or_else(|| {
        format!("{text:?} is not a duration; write numbers with ms, s, m, h or d, like \"90s\" or \"1h 30m\"")
    })
}

fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit_start = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_start);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let good = [
            ("0", 0),
            ("41943040", 41_943_040),
            ("25 MiB", 25 << 20),
            ("25mb", 25_000_000),
            ("1 GiB", 1 << 30),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "25 M", "1.5 GiB", "many", "99999999999 GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_add_up() {
        let good =
            [("1m", 60_000), ("48h", 172_800_000), ("250ms", 250), ("1h 30m", 5_400_000), ("1m5s", 65_000)];
        for (text, millis) in good {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "m", "1 fortnight", "1h30", "-1s", "99999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
