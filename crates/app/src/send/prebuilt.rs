//! Checks of messages that the sender built: by send/raw, by SMTP, or forwarded to the operator.

use postroad_mail::{AddressListProblem, RawFallback, RawMessage, RawProblem};
use postroad_model::{EmailAddress, ServerId};

use crate::{App, Caller, FieldProblem, Refusal};

/// Date and Message-ID for a message without these headers.
pub(super) struct PrebuiltFallback {
    date: String,
    message_id: String,
}

impl PrebuiltFallback {
    pub(super) fn as_raw(&self) -> RawFallback<'_> {
        RawFallback { date: &self.date, message_id: &self.message_id }
    }
}

impl App {
    /// New Date and Message-ID; `server_id` is `None` for mail that is forwarded.
    pub(super) fn prebuilt_fallback(&self, server_id: Option<ServerId>) -> PrebuiltFallback {
        let message_id = match server_id {
            Some(server_id) => self.new_message_id(server_id),
            None => self.random_message_id(),
        };
        PrebuiltFallback { date: self.inner.clock.now().to_rfc2822(), message_id }
    }

    /// Checks that every address in From and Sender, and every text that a reader may take for an address, is on a
    /// verified domain. Also refuses a repeated header that receivers may read differently.
    pub(super) async fn authorise_prebuilt(&self, caller: &Caller, raw: &RawMessage) -> Result<(), Refusal> {
        for address in raw.from.iter().chain(&raw.sender).chain(&raw.apparent_senders) {
            self.authorise_mailbox(caller, address).await?;
        }
        match raw.repeated {
            None => Ok(()),
            Some(name) => Err(invalid(format!("The message has more than one {name} header"))),
        }
    }
}

/// Most problems of From, Sender and Resent headers become `UnauthenticatedFromAddress`. A caller who may use any
/// address (`any_from`) gets the problem of the header itself.
pub(super) fn prebuilt_refusal(problem: RawProblem, any_from: bool) -> Refusal {
    match problem {
        problem if any_from => invalid(problem.to_string()),
        RawProblem::From(AddressListProblem::TooMany)
        | RawProblem::Sender(AddressListProblem::TooMany)
        | RawProblem::Resent(_, AddressListProblem::TooMany) => invalid(problem.to_string()),
        RawProblem::FromMissing | RawProblem::From(_) | RawProblem::Sender(_) | RawProblem::Resent(..) => {
            Refusal::UnauthenticatedFromAddress
        }
        other => invalid(other.to_string()),
    }
}

/// The subject without NUL, the one character that PostgreSQL cannot store.
pub(super) fn prebuilt_subject(raw: &RawMessage) -> String {
    raw.subject.replace('\0', "")
}

/// The domain of the first From address; empty if that address is not valid.
pub(super) fn prebuilt_domain(raw: &RawMessage) -> String {
    let address = raw.from.first().and_then(|address| EmailAddress::parse(address).ok());
    address.map(|address| address.domain().as_str().to_owned()).unwrap_or_default()
}

fn invalid(message: String) -> Refusal {
    Refusal::Validation(vec![FieldProblem::new("/data", message)])
}
