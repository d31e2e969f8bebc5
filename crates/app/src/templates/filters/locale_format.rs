//! Language of a rendering; language and time zone that a filter names.

use icu_locale_core::Locale;
use jiff::tz::TimeZone;
use minijinja::Error;
use minijinja::value::Kwargs;

use crate::templates::invalid::invalid;

/// Determines how numbers and dates are written, unless a filter specifies otherwise.
#[derive(Debug, Clone)]
pub(crate) struct LocaleFormat {
    pub(super) locale: Locale,
}

impl Default for LocaleFormat {
    fn default() -> Self {
        Self { locale: Locale::try_from_str("en").expect("`en` is a language tag") }
    }
}

impl LocaleFormat {
    /// The format of a language; of English if the tag is absent or invalid.
    pub(crate) fn of(locale: Option<&str>) -> Self {
        locale.and_then(parse).map_or_else(Self::default, |locale| Self { locale })
    }

    /// The language that a filter names, else that of the mail.
    pub(super) fn locale(&self, kwargs: &Kwargs) -> Result<Locale, Error> {
        match kwargs.get::<Option<&str>>("locale")? {
            None => Ok(self.locale.clone()),
            Some(text) => {
                parse(text).ok_or_else(|| invalid(format!("`{}` is not a language tag", shortened(text))))
            }
        }
    }
}

fn parse(text: &str) -> Option<Locale> {
    if text.len() > 35 {
        return None;
    }
    Locale::try_from_str(&text.replace('_', "-")).ok()
}

/// The time zone that a filter names, such as `Europe/Vienna`, else UTC.
pub(super) fn time_zone(kwargs: &Kwargs) -> Result<TimeZone, Error> {
    match kwargs.get::<Option<&str>>("tz")? {
        None => Ok(TimeZone::UTC),
        Some(name) if name.len() <= 64 => {
            TimeZone::get(name).map_err(|_| invalid(format!("there is no time zone `{}`", shortened(name))))
        }
        Some(_) => Err(invalid("there is no such time zone")),
    }
}

pub(super) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}
