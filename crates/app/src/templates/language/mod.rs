//! The language of templates: Jinja's expressions, `if`, `for`, `set` and `with`.
//!
//! minijinja runs them, and fuel bounds how many instructions it runs. But one instruction can do any amount of work:
//! repeat a text a million times, or compare two lists. So a template is read here first and written again with
//! every operator as a call of a filter of ours, which counts the work it is going to do (`work.rs`). What could
//! collect output inside of a template (macros, `set` blocks, includes) does not exist.

mod check;
mod expressions;
mod lookups;
mod lower;
mod problem;
mod scope;

pub(crate) use check::{check, syntax};
pub(crate) use expressions::{OPERATOR, SLICE};
pub(crate) use lookups::{Hint, Lookup, Segment};
pub(crate) use problem::Place;
pub use problem::TemplateProblem;
