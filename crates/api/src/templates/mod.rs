//! templates/*: calls that manage templates and try them out.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod get;
pub(crate) mod list;
mod model;
pub(crate) mod publish;
pub(crate) mod render;
pub(crate) mod rollback;
mod shared_params;
mod template_out;
pub(crate) mod update;
pub(crate) mod validate;
pub(crate) mod versions;

pub(crate) use model::read_model;
