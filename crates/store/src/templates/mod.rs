//! Templates of servers, their versions, and which version is published.
//!
//! A version's content never changes. Publishing only changes which version is published, so a mail that is rendered
//! while somebody publishes or rolls back uses exactly one version.

mod change;
mod create;
mod delete;
mod find;
mod layouts;
mod publish;
mod template;
mod versions;

pub use change::TemplateChange;
pub use create::NewTemplate;
pub use template::{Template, TemplateContent, TemplateFormat, TemplateKind, TemplateRef, TemplateTexts};
pub use versions::{TemplateVersion, TemplateVersionInfo};
