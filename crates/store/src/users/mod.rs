//! People who sign in to the portal: their data, sessions, single-use links, invitations, and counts of sign-in
//! attempts.

mod attempts;
mod invitations;
mod saved_searches;
mod second_factor;
mod sessions;
mod tokens;
mod user;
mod user_changes;

pub use invitations::{Invitation, InvitationFilter, NewInvitation};
pub use saved_searches::{NewSavedSearch, SavedSearch};
pub use sessions::{NewUserSession, UserSession};
pub use tokens::{FirstUser, UserToken, UserTokenKind};
pub use user::{NewUser, User, UserFilter};
pub use user_changes::{UserChange, UserUpdateResult};
