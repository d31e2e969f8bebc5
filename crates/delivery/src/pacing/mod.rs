//! Estimates of a receiver's limits, from its replies: connections and messages per minute that it accepts from one
//! source address, whether it accepts anything now, and its greylisting time.
//!
//! Each part is a pure state machine: time is an argument. A connection that fails without a reply counts as one too
//! many if others are open; otherwise the path's back-off handles it.
//!
//! | observed replies | scope | consequence |
//! |---|---|---|
//! | too many connections | source address at the site | no more connections than are open; one more is tried later |
//! | too fast | source address at the site | a short pause; then sending continues below the rate that was reached, and slowly returns to it |
//! | too fast, as the reply to RCPT TO, or in words that name the recipient's domain | the recipient's domain; after replies about two domains, the site | domain: after three such replies in a row a standstill; site: as in the row above |
//! | reputation, while the domain accepts mail from another address of the pool | source address at the site | after two such replies in a row a standstill of this address at the site |
//! | reputation, policy or content | the recipient's domain | after three such replies in a row a standstill: only probes are sent, one message at a time |
//! | reputation, policy or content, at several domains, to mail of several servers | source address at the site | a standstill of this address at the site |
//! | replies that lead to a standstill at several sites of a provider, or reputation at several of its domains; to mail of several servers | source address at the provider | a standstill of this address at the provider |
//! | reputation at still more domains, to mail of one server, while no other server has mail waiting | source address at the site or provider | a standstill as in the two rows above; it ends when another server has mail there |
//! | too fast at several sites of a provider, to mail of several servers | source address at the provider | as for too fast at one site |
//! | greylisted | source address at the site | a retry waits until the estimated greylisting time has passed |

mod connections;
mod curve;
mod evidence;
mod greylist;
mod last_minute;
mod probe;
mod rate;
mod reason;
mod standstill;
#[cfg(test)]
mod tests;

pub use self::connections::ConnectionEstimate;
pub use self::evidence::Evidence;
pub use self::greylist::GreylistTime;
pub use self::rate::RateEstimate;
pub use self::reason::{Reader, Reason};
pub use self::standstill::Standstill;
