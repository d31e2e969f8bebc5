//! People: signing in, sessions, second factor, passwords, invitations, and the first person of an installation. The
//! portal, the HTTP API and the command line call these functions.

mod attempts;
mod invitations;
mod links;
mod password;
mod people;
mod profile;
mod refusal;
mod reset;
mod searches;
mod second_factor;
mod session;
mod set_up;
mod sign_in;
mod totp;
mod visitor;

use postroad_model::EmailAddress;

pub use invitations::{CreatedInvitation, InvitationRequest};
pub use people::{NewPersonRequest, UserChangeRequest, grantable_roles, may_change_user};
pub use refusal::UserRefusal;
pub use second_factor::ProposedTotp;
pub use session::{NewSession, SignedInPerson};
pub use sign_in::{SignInOutcome, SignInRequest};
pub use visitor::Visitor;

pub(crate) use password::PasswordHasher;

use crate::accounts::AccountRefusal;

const NAME_CHARS_MAX: usize = 100;

/// Normal form of a person's address: in lower case.
fn parse_email(email: &str) -> Result<EmailAddress, AccountRefusal> {
    let wrong = || AccountRefusal::problem("email", "should be an e-mail address such as anna@example.com");
    let address = EmailAddress::parse(email.trim()).map_err(|_| wrong())?;
    EmailAddress::parse(&address.mailbox_key()).map_err(|_| wrong())
}

/// A name without surrounding blanks; may be empty.
fn parse_person_name(name: &str) -> Result<String, AccountRefusal> {
    let name = name.trim();
    if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(AccountRefusal::problem(
            "name",
            "should have at most 100 characters, and no control characters",
        ));
    }
    Ok(name.to_owned())
}
