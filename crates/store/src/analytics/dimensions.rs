//! Dimensions that messages are counted by.

/// Tags of a server that are told apart, and likewise its templates.
pub const LABELS_MAX: usize = 1_000;

/// What those beyond read.
pub const OTHER_LABELS: &str = "(other)";

/// What a message is counted by. Texts are empty and ids 0 for "none".
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dimensions {
    /// Of the From header.
    pub domain: String,
    pub tag: String,
    /// Whose mail servers the recipient's domain has.
    pub provider: String,
    pub template: String,
    pub pool_id: i64,
    pub credential_id: i64,
}
