//! send/*: calls that send mail, or change scheduled mail.

mod answer;
pub(crate) mod batch;
#[cfg(test)]
mod batch_message_in;
mod batch_out;
pub(crate) mod cancel;
pub(crate) mod message;
mod message_in;
mod prepare;
pub(crate) mod raw;
pub(crate) mod reschedule;
mod schedule;

pub(crate) use answer::SendOut;
#[cfg(test)]
pub(crate) use batch_message_in::BatchMessageIn;
#[cfg(test)]
pub(crate) use message_in::SendMessageIn;
