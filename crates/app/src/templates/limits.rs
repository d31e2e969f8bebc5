//! Limits of one template.

/// Maximum size of a subject's source.
pub(super) const SUBJECT_BYTES_MAX: usize = 2_000;
/// Maximum size of the source of an HTML or plain body, and of the HTML generated from it.
pub(super) const BODY_BYTES_MAX: usize = 512 << 10;
/// Maximum size of all texts of a version together.
pub const CONTENT_BYTES_MAX: usize = 2 << 20;
/// Maximum number of languages, without the default texts.
pub const LOCALES_MAX: usize = 30;
pub(super) const ALIAS_BYTES_MAX: usize = 100;
pub(super) const NAME_CHARS_MAX: usize = 200;
/// Maximum size of a model as JSON.
pub const MODEL_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a sample model as JSON; lower, because sample models are stored.
pub(super) const SAMPLE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of templates and layouts of one server.
pub(super) const TEMPLATES_PER_SERVER: usize = 500;
/// Number of newest versions kept of a template. The published version and the version published before it stay too.
pub(super) const VERSIONS_KEPT: usize = 30;
