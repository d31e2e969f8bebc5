//! What goes into the store and what comes out of it.

mod delivery;
mod message;
mod send;
mod setup;

pub use delivery::{Claimed, Delivery, Event, NewDelivery, NewEvent, Outcome};
pub use message::{Message, MessageSummary};
pub use send::{
    Accepted, Idempotency, InitialState, NewRecipient, NewSend, SendInfo, SendOptions, StoredAnswer, Tracking,
};
pub use setup::{
    Account, Credential, CredentialAccess, Domain, KeyHash, NewCredential, NewDomain, NewServer, Server,
};
