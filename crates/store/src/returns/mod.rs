//! Returned mail about a message: bounces, complaints, automatic replies.

mod record;
mod stored_mail;
mod take;

pub use record::{NewReturn, ReturnEffect, ReturnResult};
