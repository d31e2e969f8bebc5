//! users/*: people who sign in to the portal.

pub(crate) mod invitations;
pub(crate) mod invite;
pub(crate) mod list;
pub(crate) mod remove;
pub(crate) mod revoke_session;
pub(crate) mod sessions;
pub(crate) mod uninvite;
pub(crate) mod update;
mod user_out;
