//! Templates of servers, their versions, and which version is published.
//!
//! A version's content never changes. Publishing only changes which version is published, so a mail that is rendered
//! while somebody publishes or rolls back uses exactly one version.

mod records;
mod statements;
mod store;
mod versions;

pub use records::{
    NewTemplate, Template, TemplateChange, TemplateContent, TemplateFormat, TemplateKind, TemplateRef,
    TemplateTexts, TemplateVersion, TemplateVersionInfo,
};
