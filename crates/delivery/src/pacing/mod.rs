//! Estimates of a receiver's limits, from its replies: connections and messages per minute that it accepts from one
//! source address, whether it accepts anything now, and its greylisting time.
//!
//! Each part is a pure state machine: time is an argument. A connection that fails without a reply counts as one too
//! many if others are open; otherwise the path's back-off handles it.
//!
//! | the receiver says | its scope | what follows |
//! |---|---|---|
//! | too many connections | source address at the site | no more than are open; one more is tried later |
//! | too fast | source address at the site | a short pause; then sending continues below the rate that was reached, and slowly returns to it |
//! | too fast, in reply to a recipient or naming its domain | the recipient's domain; after two domains the site | domain: after three in a row a standstill; site: as in the row above |
//! | reputation, where another address of the pool is accepted | source address at the site | after two in a row a standstill of this address at the site |
//! | reputation, policy, content | the recipient's domain | after three in a row a standstill: only probes are sent, one message at a time |
//! | reputation, policy, content at several domains, for several servers | source address at the site | a standstill of this address at the site |
//! | standstill at several sites of a provider, or reputation at several domains, for several servers | source address at the provider | a standstill of this address at the provider |
//! | reputation at still more domains, for one server, and no other server has mail waiting | source address at the site or provider | a standstill as in the two rows above; it ends when another server has mail there |
//! | too fast at several sites of a provider, for several servers | source address at the provider | as for too fast at one site |
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
