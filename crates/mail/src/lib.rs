//! Messages as bytes: composing, accepting raw ones, parsing stored ones, links for tracking, DKIM, return paths,
//! classifying refusals, and parsing bounces, complaints and reports about domains.
//!
//! Everything here is a pure function: no I/O, no clock, no state. Except for new keys, the same input gives the same
//! bytes on every machine.

mod address_list;
mod attachment;
mod base32;
pub mod classify;
pub mod compose;
mod content_type;
pub mod correspondents;
pub mod dkim;
pub mod dkim_key;
mod eight_bit;
mod encoded_word;
pub mod extract;
pub mod feedback_headers;
mod header_block;
pub mod header_check;
mod header_line;
mod loaders;
pub mod message_id;
mod mime_tree;
mod newline;
mod part;
pub mod raw;
pub mod reports;
pub mod return_path;
pub mod returned;
pub mod rewrite;
pub mod stored_head;
pub mod trace;
pub mod track;
pub mod unsubscribe;
mod varint;
pub mod view;

pub use address_list::{AddressListProblem, find_addresses, find_spelled_addresses};
pub use attachment::Attachment;
pub use classify::{
    EnhancedCode, Phase as ReplyPhase, Reply, ReplyProblem, Signal, Verdict, classify, classify_in,
};
pub use compose::{Composition, NewContent, compose};
pub use correspondents::{Correspondents, NamedAddress, correspondents};
pub use dkim::{Canonical, Signer, SignerError};
pub use dkim_key::{DkimAlgorithm, DkimKey, DkimKeyError, dkim_txt};
pub use extract::{Extracted, extract, visible_text};
pub use feedback_headers::{InstallationId, SenderFeedbackHeaders, cfbl_address};
pub use header_check::{
    HeaderProblem, check_content_type, check_header_name, check_header_value, is_valid_date, parse_message_id,
};
pub use loaders::without_loading_elements;
pub use message_id::{MessageIdKey, OwnMessageId};
pub use newline::{CrlfWriter, missing_line_break_bytes};
pub use raw::{RawFallback, RawMessage, RawProblem, prepare_raw, prepare_submission};
pub use return_path::ReturnPathKey;
pub use returned::{Returned, ReturnedKind, ReturnedRecipient};
pub use rewrite::{RewritePlan, RewriteSettings, TrackedRecipient};
pub use stored_head::{find_from_domain, has_attachment, has_utf8_header, is_delivered_to};
pub use trace::{postroad_id_field, received_field};
pub use track::{TrackKey, TrackKind, TrackToken};
pub use unsubscribe::one_click_headers;
pub use view::{AttachmentView, MessageView, view};
