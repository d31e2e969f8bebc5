//! The filter `plural`, which chooses the form of a word that a number needs in the language of the mail.
#![expect(clippy::needless_pass_by_value, reason = "minijinja gives filters their arguments by value")]

use icu_plurals::{PluralCategory, PluralRules, PluralRulesOptions};
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, State, Value};

use crate::templates::invalid::invalid;
use crate::templates::work::{Context, require};

/// Work charged for loading a language's tables.
const LOCALE_TABLES_WORK: u64 = 100;

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("plural", plural);
}

/// `n|plural("item", "items")`; further forms by name: `n|plural(one=…, few=…, many=…, other=…)`.
fn plural(
    state: &State<'_, '_>,
    value: &Value,
    one: Option<&str>,
    other: Option<&str>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    require(value)?;
    let context = Context::of(state)?;
    let locale = context.locale_format.locale(&kwargs)?;
    context.charge(LOCALE_TABLES_WORK)?;
    let number = value.as_i64().ok_or_else(|| invalid("`plural` takes a whole number"))?;
    let zero = kwargs.get::<Option<&str>>("zero")?;
    let two = kwargs.get::<Option<&str>>("two")?;
    let few = kwargs.get::<Option<&str>>("few")?;
    let many = kwargs.get::<Option<&str>>("many")?;
    let one = one.or(kwargs.get("one")?);
    let other = other.or(kwargs.get("other")?);
    kwargs.assert_all_used()?;
    let other = other.ok_or_else(|| invalid("`plural` needs the form `other`, its second argument"))?;
    let rules = PluralRules::try_new(locale.into(), PluralRulesOptions::default())
        .map_err(|_| invalid("plurals are not known in this language"))?;
    let form = match rules.category_for(number.unsigned_abs()) {
        PluralCategory::Zero => zero,
        PluralCategory::One => one,
        PluralCategory::Two => two,
        PluralCategory::Few => few,
        PluralCategory::Many => many,
        PluralCategory::Other => Some(other),
    };
    let form = form.unwrap_or(other);
    context.charge_text(form.len())?;
    Ok(form.to_owned())
}
