//! The filters `date`, `time` and `datetime`, which write in the format of the mail's language, in any time zone.

use icu_calendar::{Date, Gregorian};
use icu_datetime::fieldsets::{T, YMD, YMDE};
use icu_datetime::input::{DateTime, Time};
use icu_datetime::options::Length;
use icu_datetime::{FixedCalendarDateTimeFormatter, NoCalendarFormatter};
use jiff::{Timestamp, Zoned, civil};
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, State, Value};

use super::kind_of;
use super::locale_format::{shortened, time_zone};
use crate::templates::invalid::invalid;
use crate::templates::work::{Context, require};

/// Work charged for loading a language's tables.
const LOCALE_TABLES_WORK: u64 = 500;
const PATTERN_BYTES_MAX: usize = 100;

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter(
        "date",
        |state: &State<'_, '_>, value: &Value, style: Option<&str>, kwargs: Kwargs| {
            format_date(state, value, style, &kwargs, DateParts::Date)
        },
    );
    environment.add_filter(
        "time",
        |state: &State<'_, '_>, value: &Value, style: Option<&str>, kwargs: Kwargs| {
            format_date(state, value, style, &kwargs, DateParts::Time)
        },
    );
    environment.add_filter(
        "datetime",
        |state: &State<'_, '_>, value: &Value, style: Option<&str>, kwargs: Kwargs| {
            format_date(state, value, style, &kwargs, DateParts::Both)
        },
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DateParts {
    Date,
    Time,
    Both,
}

fn format_date(
    state: &State<'_, '_>,
    value: &Value,
    style: Option<&str>,
    kwargs: &Kwargs,
    parts: DateParts,
) -> Result<String, Error> {
    require(value)?;
    let context = Context::of(state)?;
    let locale = context.locale_format.locale(kwargs)?;
    let zoned = parse_time(value, kwargs)?;
    kwargs.assert_all_used()?;
    context.charge(LOCALE_TABLES_WORK)?;
    let style = style.unwrap_or("medium");
    if style.contains('%') {
        return format_by_pattern(&zoned, style);
    }
    let length = match style {
        "short" => Length::Short,
        "medium" => Length::Medium,
        "long" | "full" => Length::Long,
        other => {
            let message = "is not a style of dates: short, medium, long, full, or a pattern such as %d.%m.%Y";
            return Err(invalid(format!("`{}` {message}", shortened(other))));
        }
    };
    let date = Date::try_new_gregorian(zoned.year().into(), zoned.month() as u8, zoned.day() as u8)
        .map_err(|_| invalid("the date is outside of the calendar"))?;
    let time = Time::try_new(zoned.hour() as u8, zoned.minute() as u8, zoned.second() as u8, 0)
        .map_err(|_| invalid("the time is outside of the day"))?;
    let unsupported_language = |_| invalid("dates cannot be written in this language");
    let text = match (parts, style) {
        (DateParts::Time, _) => {
            let formatter = NoCalendarFormatter::<T>::try_new(locale.into(), T::hm().with_length(length));
            formatter.map_err(unsupported_language)?.format(&time).to_string()
        }
        (DateParts::Date, "full") => {
            let fields = YMDE::for_length(length);
            let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new(locale.into(), fields);
            formatter.map_err(unsupported_language)?.format(&date).to_string()
        }
        (DateParts::Date, _) => {
            let fields = YMD::for_length(length);
            let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new(locale.into(), fields);
            formatter.map_err(unsupported_language)?.format(&date).to_string()
        }
        (DateParts::Both, "full") => {
            let fields = YMDE::for_length(length).with_time_hm();
            let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new(locale.into(), fields);
            formatter.map_err(unsupported_language)?.format(&DateTime { date, time }).to_string()
        }
        (DateParts::Both, _) => {
            let fields = YMD::for_length(length).with_time_hm();
            let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new(locale.into(), fields);
            formatter.map_err(unsupported_language)?.format(&DateTime { date, time }).to_string()
        }
    };
    Ok(text)
}

/// Parses a time of RFC 3339, with or without its offset, a date alone, or seconds since 1970.
fn parse_time(value: &Value, kwargs: &Kwargs) -> Result<Zoned, Error> {
    let zone = time_zone(kwargs)?;
    if value.kind() == ValueKind::Number {
        let seconds = f64::try_from(value.clone()).unwrap_or(f64::NAN);
        let timestamp = Timestamp::from_second(seconds as i64).ok().filter(|_| seconds.is_finite());
        return timestamp
            .map(|timestamp| timestamp.to_zoned(zone))
            .ok_or_else(|| invalid("the number is not a time in seconds since 1970"));
    }
    let text = value.as_str().filter(|text| text.len() <= 60);
    let text = text.ok_or_else(|| invalid(format!("a time is needed, not a {}", kind_of(value))))?.trim();
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.to_zoned(zone));
    }
    // A time without an offset is in `zone`.
    let civil = text.parse::<civil::DateTime>().ok().and_then(|civil| civil.to_zoned(zone).ok());
    civil.ok_or_else(|| {
        invalid(format!("`{}` is not a time such as 2026-11-15T09:30:00Z or 2026-11-15", shortened(text)))
    })
}

fn format_by_pattern(zoned: &Zoned, pattern: &str) -> Result<String, Error> {
    // A width in the pattern could create a text of any length.
    let is_plain = pattern.len() <= PATTERN_BYTES_MAX
        && !pattern
            .as_bytes()
            .windows(2)
            .any(|pair| pair[0] == b'%' && (pair[1].is_ascii_digit() || pair[1] == b'.'));
    if !is_plain {
        return Err(invalid("the pattern of the date is too long, or has a width"));
    }
    jiff::fmt::strtime::BrokenDownTime::from(zoned)
        .to_string(pattern)
        .map_err(|_| invalid("the pattern of the date is not understood"))
}
