//! Templates of servers, their versions, and which of them is published.
//!
//! A version is never changed once it is written. What changes is which one is published, so a mail that is being made
//! while somebody publishes or rolls back is wholly of one version.

mod records;
mod statements;
mod store;
mod versions;

pub use records::{
    NewTemplate, Template, TemplateChange, TemplateContent, TemplateFormat, TemplateKind, TemplateRef,
    TemplateTexts, TemplateVersion, TemplateVersionInfo,
};
