//! Limits of one rendering: instructions, work inside instructions, output.
//!
//! Work is counted in units: one for each value, and one more for every 64 bytes of a text. Costly instructions are
//! charged for their operands before they begin; a new text, whose length is limited, is charged when it is complete.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use minijinja::value::{Enumerator, Object, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::filters::LocaleFormat;
use super::invalid::invalid;

/// Maximum number of minijinja's instructions for one text.
pub(super) const FUEL: u64 = 400_000;
/// Maximum work of one rendering.
const WORK_MAX: u64 = 1_500_000;
/// Maximum work and instructions of all renderings of one batch: as much as about twenty renderings at their limits.
const BATCH_WORK_MAX: u64 = 50_000_000;
/// Assumed instructions of a failed rendering, per microsecond that it took.
const INSTRUCTIONS_PER_US: u64 = 10;
/// Largest size of all texts of one mail together.
pub(crate) const OUTPUT_BYTES_MAX: usize = 5 << 20;
/// Longest intermediate text, such as a joined list.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Depth limit of nested values, in a model or created by a template.
const NESTING_MAX: usize = 200;
/// The variable of a layout that holds its content.
pub(super) const CONTENT_VARIABLE: &str = "content";
/// Internal name of the rendering context; no variable can have this name.
const CONTEXT_VARIABLE: &str = "\0context";

/// Context of a rendering: the model, the language, and the remaining work.
#[derive(Debug)]
pub(super) struct Context {
    model: Value,
    /// In a layout: the rendered body of the template that uses the layout.
    content: Option<Value>,
    pub(super) locale_format: LocaleFormat,
    work_left: Arc<AtomicU64>,
    /// Instructions that were run.
    instructions: Arc<AtomicU64>,
}

impl Context {
    pub(super) fn new(model: Value, locale_format: LocaleFormat) -> Arc<Self> {
        let work_left = Arc::new(AtomicU64::new(WORK_MAX));
        Arc::new(Self { model, content: None, locale_format, work_left, instructions: Arc::default() })
    }

    /// The context for the layout around a text, with the remaining work.
    pub(super) fn for_layout(&self, content: Value) -> Arc<Self> {
        Arc::new(Self {
            model: self.model.clone(),
            content: Some(content),
            locale_format: self.locale_format.clone(),
            work_left: Arc::clone(&self.work_left),
            instructions: Arc::clone(&self.instructions),
        })
    }

    pub(super) fn record_instructions(&self, count: u64) {
        self.instructions.fetch_add(count, Ordering::Relaxed);
    }

    /// Work and instructions so far.
    pub(super) fn units_spent(&self) -> u64 {
        WORK_MAX - self.work_left.load(Ordering::Relaxed) + self.instructions.load(Ordering::Relaxed)
    }

    /// The context that a filter is called in.
    pub(super) fn of(state: &State<'_, '_>) -> Result<Arc<Self>, Error> {
        let context = state.lookup(CONTEXT_VARIABLE).and_then(|value| value.downcast_object::<Self>());
        context.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "a filter outside of a rendering"))
    }

    /// Takes this many units from the remaining work.
    pub(super) fn charge(&self, units: u64) -> Result<(), Error> {
        let left = self.work_left.load(Ordering::Relaxed);
        if units > left {
            return Err(Error::new(ErrorKind::OutOfFuel, TOO_MUCH_WORK));
        }
        self.work_left.store(left - units, Ordering::Relaxed);
        Ok(())
    }

    /// Charges the cost of reading a whole value. A part that occurs several times counts each time.
    pub(super) fn charge_value(&self, value: &Value) -> Result<(), Error> {
        self.charge_nested(value, NESTING_MAX)
    }

    fn charge_nested(&self, value: &Value, levels: usize) -> Result<(), Error> {
        if levels == 0 {
            return Err(invalid("values are nested too deep"));
        }
        match value.kind() {
            ValueKind::Undefined => Err(ErrorKind::UndefinedError.into()),
            ValueKind::String => self.charge_text(value.as_str().map_or(0, str::len)),
            ValueKind::Seq | ValueKind::Iterable => {
                self.charge(1)?;
                value.try_iter()?.try_for_each(|entry| self.charge_nested(&entry, levels - 1))
            }
            ValueKind::Map => {
                self.charge(1)?;
                for key in value.try_iter()? {
                    self.charge_nested(&key, levels - 1)?;
                    self.charge_nested(&value.get_item(&key)?, levels - 1)?;
                }
                Ok(())
            }
            _ => self.charge(1),
        }
    }

    pub(super) fn charge_text(&self, bytes: usize) -> Result<(), Error> {
        self.charge(1 + bytes as u64 / 64)
    }
}

/// Assumed instructions of a rendering that failed after this time: minijinja reports instructions only for a rendering
/// that succeeded.
pub(super) fn assumed_instructions(time: Duration) -> u64 {
    (time.as_micros() as u64).saturating_mul(INSTRUCTIONS_PER_US).min(FUEL)
}

/// Work that the renderings of one batch may do together.
#[derive(Debug)]
pub(crate) struct BatchWork {
    units_left: AtomicU64,
}

impl Default for BatchWork {
    fn default() -> Self {
        Self { units_left: AtomicU64::new(BATCH_WORK_MAX) }
    }
}

impl BatchWork {
    pub(super) fn is_used_up(&self) -> bool {
        self.units_left.load(Ordering::Relaxed) == 0
    }

    pub(super) fn spend(&self, units: u64) {
        let left = self.units_left.load(Ordering::Relaxed);
        self.units_left.store(left.saturating_sub(units), Ordering::Relaxed);
    }
}

pub(super) const TOO_MUCH_WORK: &str = "rendering the template would take too much work";

impl Object for Context {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == CONTEXT_VARIABLE {
            return Some(Value::from_dyn_object(Arc::clone(self)));
        }
        if let Some(content) = self.content.as_ref().filter(|_| key == CONTENT_VARIABLE) {
            return Some(content.clone());
        }
        self.model.get_attr(key).ok().filter(|value| !value.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// Whether a value counts as missing: it is undefined or `null`. `language::Allowed` says where `null` is accepted
/// nevertheless.
pub(super) fn is_absent(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Undefined | ValueKind::None)
}

/// Fails as for a missing variable if the value is absent.
pub(super) fn require(value: &Value) -> Result<(), Error> {
    if is_absent(value) { Err(ErrorKind::UndefinedError.into()) } else { Ok(()) }
}

/// A value as written into a mail, without escaping: booleans as in JSON.
pub(super) fn value_text(value: &Value) -> Result<Cow<'_, str>, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Err(ErrorKind::UndefinedError.into()),
        ValueKind::Bool => Ok(if value.is_true() { "true" } else { "false" }.into()),
        ValueKind::String => Ok(value.as_str().unwrap_or_default().into()),
        ValueKind::Number => Ok(value.to_string().into()),
        other => Err(invalid(format!("a text or a number is needed, not a {other}"))),
    }
}

/// An intermediate text; writing fails beyond `TEXT_BYTES_MAX`.
#[derive(Debug, Default)]
pub(super) struct BoundedText(String);

impl BoundedText {
    /// The text, after charging its cost.
    pub(super) fn finish(self, context: &Context) -> Result<String, Error> {
        context.charge_text(self.0.len())?;
        Ok(self.0)
    }
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > TEXT_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The output of a text; writing fails beyond `bytes_max`.
#[derive(Debug)]
pub(super) struct BoundedOutput {
    pub(super) bytes: Vec<u8>,
    pub(super) bytes_max: usize,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(io::Error::other("the text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
