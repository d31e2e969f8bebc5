//! Templates of servers, their versions, and which version is published.
//!
//! A version never changes. Only the published version number changes, so a mail that is rendered while somebody
//! publishes or rolls back uses exactly one version.

mod records;
mod statements;
mod store;
mod versions;

pub use records::{
    NewTemplate, Template, TemplateChange, TemplateContent, TemplateFormat, TemplateKind, TemplateRef,
    TemplateTexts, TemplateVersion, TemplateVersionInfo,
};
