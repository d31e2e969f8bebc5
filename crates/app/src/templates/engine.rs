//! Compiles and renders single texts with minijinja.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};

use super::filters;
use super::filters::texts::write_escaped;
use super::invalid::invalid;
use super::language::{self, Lookup, SourcePosition, check};
use super::missing_variables;
use super::text_failure::TextFailure;
use super::work::{
    BoundedOutput, Context, FUEL, OUTPUT_BYTES_MAX, TOO_MUCH_WORK, assumed_instructions, value_text,
};

const TEXT_NAME: &str = "text";

/// How variables are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    Html,
    None,
}

/// Filters and limits that all texts share. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    html: Environment<'static>,
    plain: Environment<'static>,
}

impl Default for Engine {
    fn default() -> Self {
        let mut plain = Environment::empty();
        plain.set_syntax(language::syntax());
        plain.set_fuel(Some(FUEL));
        plain.set_undefined_behavior(UndefinedBehavior::Strict);
        plain.set_auto_escape_callback(|_| AutoEscape::None);
        plain.set_formatter(write_value);
        filters::register(&mut plain);
        let mut html = plain.clone();
        html.set_auto_escape_callback(|_| AutoEscape::Html);
        Self { html, plain }
    }
}

/// Writes a value into the output. Refuses lists and maps: in a mail they are a mistake, and writing one out can take
/// arbitrarily long.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Err(invalid(
            "a list cannot be written; go through it with `{% for %}`, or use `join` or `tojson`",
        )),
        ValueKind::Map | ValueKind::Plain | ValueKind::Bytes => {
            Err(invalid("an object cannot be written; write its parts, or use `tojson`"))
        }
        // Undefined values reach this function only from an `if` expression without `else`.
        ValueKind::Undefined => Ok(()),
        ValueKind::String if matches!(state.auto_escape(), AutoEscape::Html) && !value.is_safe() => {
            write_escaped(out, value.as_str().unwrap_or_default()).map_err(Error::from)
        }
        _ => out.write_str(&value_text(value)?).map_err(Error::from),
    }
}

/// A compiled text.
#[derive(Debug)]
pub(super) struct CompiledText {
    environment: Environment<'static>,
    lookups: Vec<Lookup>,
    /// The field that the text comes from: `html_body` also for the plain text generated from it.
    pub(super) field: &'static str,
    /// Whether the text was generated from that field: then the lines of errors are not lines that the author wrote.
    is_generated: bool,
    /// Approximate memory in bytes.
    pub(super) bytes: usize,
}

impl Engine {
    pub(super) fn compile(
        &self,
        field: &'static str,
        source: &str,
        escaping: Escaping,
    ) -> Result<CompiledText, Vec<(SourcePosition, String)>> {
        let lowered = check(source)?;
        let mut environment = match escaping {
            Escaping::Html => self.html.clone(),
            Escaping::None => self.plain.clone(),
        };
        let bytes = 4 * lowered.text.len() + 200 * lowered.lookups.len() + 4_096;
        environment.add_template_owned(TEXT_NAME, lowered.text).map_err(|error| {
            let message = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
            vec![(SourcePosition { line: error.line().unwrap_or(1), column: 1 }, message)]
        })?;
        Ok(CompiledText { environment, lookups: lowered.lookups, field, is_generated: false, bytes })
    }
}

impl CompiledText {
    pub(super) fn lookups(&self) -> &[Lookup] {
        &self.lookups
    }

    /// Marks the text as generated from `source`: errors show the position of a variable in `source`. The nth use of a
    /// variable in this text is taken for its nth use in `source`.
    pub(super) fn generated_from(mut self, source: &str) -> Self {
        self.is_generated = true;
        let source_lookups = check(source).map(|lowered| lowered.lookups).unwrap_or_default();
        let mut positions: HashMap<String, VecDeque<SourcePosition>> = HashMap::new();
        for lookup in source_lookups {
            positions.entry(lookup.text).or_default().push_back(lookup.position);
        }
        for lookup in &mut self.lookups {
            lookup.position = match positions.get_mut(&lookup.text) {
                // The last position stays, for parts that were generated several times.
                Some(remaining) if remaining.len() == 1 => remaining[0],
                Some(remaining) => remaining.pop_front().unwrap_or(SourcePosition::UNKNOWN),
                None => SourcePosition::UNKNOWN,
            };
        }
        self
    }

    /// The line of an error in the text that the author wrote; 0 if it is not known.
    fn line_of(&self, error: &Error) -> usize {
        if !self.is_generated {
            return error.line().unwrap_or_default();
        }
        let candidates = missing_variables::lookups_of(error, &self.lookups);
        candidates.iter().flatten().next().map_or(0, |lookup| lookup.position.line)
    }

    /// Renders at most `bytes_max` bytes within the remaining work budget of `context`.
    pub(super) fn render(
        &self,
        context: &Arc<Context>,
        model: &serde_json::Map<String, serde_json::Value>,
        bytes_max: usize,
    ) -> Result<String, TextFailure> {
        let mut output = BoundedOutput { bytes: Vec::new(), bytes_max };
        let template =
            self.environment.get_template(TEXT_NAME).map_err(|error| to_text_failure(&error, 0))?;
        let root = Value::from_dyn_object(Arc::clone(context));
        let started = Instant::now();
        let rendered = template.render_captured_to(root, &mut output);
        let instructions = match &rendered {
            Ok(captured) => captured.state().fuel_levels().map_or(0, |(consumed, _)| consumed),
            Err(_) => assumed_instructions(started.elapsed()),
        };
        context.record_instructions(instructions);
        match rendered.map(drop) {
            Ok(()) => Ok(String::from_utf8(output.bytes).expect("minijinja writes UTF-8")),
            Err(error) if error.kind() == ErrorKind::UndefinedError => Err(
                missing_variables::name_missing_variable(&error, self.line_of(&error), &self.lookups, model),
            ),
            Err(error) => Err(to_text_failure(&error, self.line_of(&error))),
        }
    }
}

fn to_text_failure(error: &Error, line: usize) -> TextFailure {
    let message = match error.kind() {
        ErrorKind::OutOfFuel => TOO_MUCH_WORK.to_owned(),
        ErrorKind::WriteFailure => format!("the rendered texts are larger than {OUTPUT_BYTES_MAX} bytes"),
        kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
    };
    TextFailure::Failed { line, message }
}
