//! The language of templates: Jinja's expressions, `if`, `for`, `set` and `with`.
//!
//! minijinja runs templates, and fuel limits the number of instructions. But one instruction can do any amount of work:
//! repeat a text a million times, or compare two lists. So a template is first parsed here and rewritten: operators
//! whose work depends on their operands become calls of our filters, which count and limit the work (`work.rs`).
//! Constructs that collect output inside a template (macros, `set` blocks, includes) are not available.

mod allowed;
mod check;
mod expressions;
mod lookups;
mod lower;
mod problem;
mod scope;

pub(crate) use check::{check, syntax};
pub(crate) use expressions::{OPERATOR, REQUIRED, SLICE};
pub(crate) use lookups::{InputKind, Lookup, Segment};
pub(crate) use lower::ENTRIES;
pub(crate) use problem::SourcePosition;
pub use problem::TemplateProblem;
