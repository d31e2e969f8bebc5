//! The filters `number`, `percent` and `currency`, which write in the format of the mail's language.
#![expect(clippy::needless_pass_by_value, reason = "minijinja gives filters their arguments by value")]

use icu_decimal::DecimalFormatter;
use icu_decimal::input::Decimal;
use icu_decimal::options::DecimalFormatterOptions;
use icu_locale_core::Locale;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, State, Value};

use super::kind_of;
use crate::templates::invalid::invalid;
use crate::templates::work::{Context, require};

/// Work charged for loading a language's tables.
const LOCALE_TABLES_WORK: u64 = 100;
/// Maximum number of decimals that a template can ask for.
const DIGITS_MAX: i16 = 20;
/// Maximum number of digits before the point, and after it. `1e30000` is a short text and a long number.
const PLACES_MAX: i16 = 40;
const NO_BREAK_SPACE: &str = "\u{a0}";

/// ISO 4217: currencies with a number of decimals other than two.
const DECIMALS: [(&str, i16); 25] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYI", 0),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
    ("CLF", 4),
];

/// Currency signs that are understood everywhere. Other currencies are written by their code.
const SIGNS: [(&str, &str); 14] = [
    ("EUR", "€"),
    ("USD", "$"),
    ("GBP", "£"),
    ("JPY", "¥"),
    ("INR", "₹"),
    ("KRW", "₩"),
    ("ILS", "₪"),
    ("VND", "₫"),
    ("UAH", "₴"),
    ("NGN", "₦"),
    ("TRY", "₺"),
    ("BRL", "R$"),
    ("PLN", "zł"),
    ("CZK", "Kč"),
];

/// Languages that write the sign before the amount, with a space (first list) or without (second list). All other
/// languages write the sign after the amount and a space (CLDR, standard currency patterns).
const SIGN_BEFORE_WITH_SPACE: [&str; 8] =
    ["nl", "de-AT", "de-CH", "de-LI", "pt-BR", "es-AR", "es-PY", "it-CH"];
const SIGN_BEFORE: [&str; 23] = [
    "en", "ja", "zh", "ko", "th", "hi", "bn", "ta", "te", "mr", "gu", "kn", "ml", "pa", "id", "ms", "tr",
    "fil", "sw", "es-MX", "es-US", "es-CL", "es-CO",
];

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("number", number);
    environment.add_filter("percent", percent);
    environment.add_filter("currency", currency);
}

/// `1234.5|number` is `1,234.5`; `number(2)` has two decimals.
fn number(
    state: &State<'_, '_>,
    value: &Value,
    digits: Option<i16>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let context = Context::of(state)?;
    let locale = context.locale_format.locale(&kwargs)?;
    kwargs.assert_all_used()?;
    context.charge(LOCALE_TABLES_WORK)?;
    format_decimal(&locale, &parse_decimal(value, digits)?)
}

/// `0.25|percent` is `25%`.
fn percent(
    state: &State<'_, '_>,
    value: &Value,
    digits: Option<i16>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let context = Context::of(state)?;
    let locale = context.locale_format.locale(&kwargs)?;
    kwargs.assert_all_used()?;
    context.charge(LOCALE_TABLES_WORK)?;
    let mut decimal = parse_decimal(value, None)?;
    decimal.multiply_pow10(2);
    decimal.trim_start();
    round(&mut decimal, digits)?;
    let text = format_decimal(&locale, &decimal)?;
    let has_space = matches!(
        locale.id.language.as_str(),
        "de" | "fr"
            | "es"
            | "cs"
            | "sk"
            | "sv"
            | "da"
            | "nb"
            | "nn"
            | "no"
            | "fi"
            | "ru"
            | "uk"
            | "bg"
            | "ro"
            | "hr"
            | "sl"
    );
    Ok(if has_space { format!("{text}{NO_BREAK_SPACE}%") } else { format!("{text}%") })
}

/// `9.5|currency("EUR")` is `€9.50`, in German `9,50 €`.
fn currency(state: &State<'_, '_>, value: &Value, code: &str, kwargs: Kwargs) -> Result<String, Error> {
    let context = Context::of(state)?;
    let locale = context.locale_format.locale(&kwargs)?;
    kwargs.assert_all_used()?;
    context.charge(LOCALE_TABLES_WORK)?;
    let code = code.to_ascii_uppercase();
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(invalid("`currency` takes a code of three letters, such as \"EUR\""));
    }
    let digits = DECIMALS.iter().find(|(known, _)| *known == code).map_or(2, |(_, digits)| *digits);
    let rounded = parse_decimal(value, Some(digits))?.to_string();
    let (is_negative, rounded) = match rounded.strip_prefix('-') {
        Some(rest) => (rest.bytes().any(|byte| matches!(byte, b'1'..=b'9')), rest),
        None => (false, rounded.as_str()),
    };
    let amount = format_decimal(&locale, &rounded.parse().expect("a written decimal can be parsed"))?;
    let sign = SIGNS.iter().find(|(known, _)| *known == code).map(|(_, sign)| *sign);
    let minus = if is_negative { "-" } else { "" };
    let text = match (sign_position(&locale), sign) {
        (SignPosition::Before, Some(sign)) => format!("{minus}{sign}{amount}"),
        (SignPosition::Before, None) => format!("{minus}{code}{NO_BREAK_SPACE}{amount}"),
        (SignPosition::BeforeWithSpace, sign) => {
            format!("{minus}{}{NO_BREAK_SPACE}{amount}", sign.unwrap_or(&code))
        }
        (SignPosition::After, sign) => format!("{minus}{amount}{NO_BREAK_SPACE}{}", sign.unwrap_or(&code)),
    };
    Ok(text)
}

enum SignPosition {
    Before,
    BeforeWithSpace,
    After,
}

fn sign_position(locale: &Locale) -> SignPosition {
    let language = locale.id.language;
    let with_region = locale.id.region.map(|region| format!("{language}-{region}"));
    let is_in = |list: &[&str]| {
        with_region.as_deref().is_some_and(|tag| list.contains(&tag)) || list.contains(&language.as_str())
    };
    if is_in(&SIGN_BEFORE_WITH_SPACE) {
        SignPosition::BeforeWithSpace
    } else if is_in(&SIGN_BEFORE) {
        SignPosition::Before
    } else {
        SignPosition::After
    }
}

fn format_decimal(locale: &Locale, decimal: &Decimal) -> Result<String, Error> {
    let formatter = DecimalFormatter::try_new(locale.into(), DecimalFormatterOptions::default())
        .map_err(|_| invalid("numbers cannot be written in this language"))?;
    Ok(formatter.format(decimal).to_string())
}

/// Parses a number, or a text that contains one: amounts are often sent as texts to keep all digits.
fn parse_decimal(value: &Value, digits: Option<i16>) -> Result<Decimal, Error> {
    require(value)?;
    let text = match value.kind() {
        ValueKind::Number => value.to_string(),
        ValueKind::String if value.as_str().is_some_and(|text| text.len() <= 40) => {
            value.as_str().unwrap_or_default().trim().to_owned()
        }
        _ => return Err(invalid(format!("a number is needed, not a {}", kind_of(value)))),
    };
    let mut decimal: Decimal = text.parse().map_err(|_| invalid("a number is needed, not this text"))?;
    if *decimal.absolute.magnitude_range().end() >= PLACES_MAX {
        return Err(invalid(format!("a number has at most {PLACES_MAX} digits before the point")));
    }
    if *decimal.absolute.magnitude_range().start() < -PLACES_MAX {
        decimal.round(-PLACES_MAX);
        decimal.trim_end();
    }
    round(&mut decimal, digits)?;
    Ok(decimal)
}

/// Rounds to `digits` decimals, with zeros at the end; does nothing if `digits` is `None`.
fn round(decimal: &mut Decimal, digits: Option<i16>) -> Result<(), Error> {
    let Some(digits) = digits else { return Ok(()) };
    if !(0..=DIGITS_MAX).contains(&digits) {
        return Err(invalid(format!("decimals are 0 to {DIGITS_MAX}")));
    }
    decimal.round(-digits);
    decimal.pad_end(-digits);
    Ok(())
}
