//! SMTP replies to the results of `app`, and to what the relay itself refuses.

use postroad_app::{LoginFailure, Refusal, ReportProblem, ReturnRefusal};
use postroad_model::MessageToken;
use postroad_smtp::Reply;
use postroad_smtp::server::StandardReply;

pub(crate) fn queued(token: &MessageToken) -> Reply {
    one_line(250, &format!("2.0.0 OK queued as {token}"))
}

pub(crate) fn refused(refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::UnauthenticatedFromAddress | Refusal::FromAddressMissing => {
            StandardReply::FromNotAuthorised.into()
        }
        Refusal::NoRecipients => StandardReply::NoRecipients.into(),
        Refusal::Unavailable(cause) => {
            tracing::warn!(cause, "SMTP: storing a message failed; replied 451");
            StandardReply::StorageTrouble.into()
        }
        // A bug in Postroad must not lose a message: on a temporary error the client keeps it.
        Refusal::Internal(cause) => {
            tracing::error!(cause, "SMTP: accepting a message failed; replied 451");
            StandardReply::StorageTrouble.into()
        }
        Refusal::IdempotencyInProgress => one_line(451, &format!("4.3.0 {}", refusal.message())),
        Refusal::IdempotencyConflict => one_line(550, &format!("5.5.0 {}", refusal.message())),
        Refusal::MailLoop => one_line(550, &format!("5.4.6 {}", refusal.message())), // RFC 3463 3.5
        Refusal::Validation(_)
        | Refusal::NoContent
        | Refusal::TooManyAddresses(_)
        | Refusal::AttachmentMissingName
        | Refusal::AttachmentMissingData
        | Refusal::TemplateRendering(_)
        | Refusal::TemplateNotPublished
        | Refusal::CeilingExceeded(_) => one_line(550, &format!("5.6.0 {}", refusal.message())),
    }
}

pub(crate) fn login_failed(failure: &LoginFailure) -> Reply {
    match failure {
        LoginFailure::Invalid { shut_out: true, .. } => StandardReply::TooManyBadCredentials.into(),
        LoginFailure::Invalid { .. } => StandardReply::BadCredentials.into(),
        LoginFailure::NetworkUnknown => one_line(530, "5.7.0 No credential is bound to your IP address"),
        LoginFailure::Suspended => StandardReply::Suspended.into(),
        LoginFailure::MayNotSend { scope } => {
            one_line(535, &format!("5.7.8 The key has the scope {scope} and may not send"))
        }
        LoginFailure::Store(error) => {
            tracing::warn!(%error, "SMTP: checking a client failed; replied 451");
            StandardReply::StorageTrouble.into()
        }
    }
}

pub(crate) fn in_maintenance() -> Reply {
    one_line(451, "4.3.2 The service is under maintenance, try again later")
}

pub(crate) fn no_memory() -> Reply {
    one_line(452, "4.3.1 Too many messages are coming in, try again later")
}

pub(crate) fn routed_recipient() -> Reply {
    one_line(553, "5.1.3 Routes in addresses are not accepted")
}

/// Reply for every unknown address. It is always the same, so that it reveals nothing about valid addresses.
pub(crate) fn no_return_path() -> Reply {
    one_line(550, "5.7.1 Relay access denied: no mail is accepted for this address")
}

pub(crate) fn return_refused(refusal: &ReturnRefusal) -> Reply {
    match refusal {
        ReturnRefusal::Unknown | ReturnRefusal::ReportAboutOtherDomain => no_return_path(),
        ReturnRefusal::NoReport => one_line(554, "5.6.0 The mail contains no report"),
        ReturnRefusal::ComplaintAboutOtherMail => {
            one_line(554, "5.7.1 The report encloses no message that was sent from here")
        }
        ReturnRefusal::NoOperator => one_line(
            550,
            "5.1.1 Nobody reads mail to this address here; only complaints of feedback loops are accepted",
        ),
        ReturnRefusal::Loop => one_line(554, "5.4.6 The message is in a mail loop"), // RFC 3463 3.5
        ReturnRefusal::NotForwardable(problem) => one_line(554, &format!("5.6.0 {problem}")),
        ReturnRefusal::BadReport(ReportProblem::TooLarge) => one_line(552, "5.3.4 The report is too large"),
        ReturnRefusal::Busy => one_line(451, "4.3.2 Too busy for this mail at the moment, try again later"),
        ReturnRefusal::BadReport(problem) => {
            tracing::warn!(%problem, "domain report refused");
            one_line(554, "5.6.0 The report cannot be read")
        }
        ReturnRefusal::Store(error) => {
            tracing::warn!(%error, "storing returned mail failed; replied 451");
            StandardReply::StorageTrouble.into()
        }
    }
}

pub(crate) fn too_slow() -> Reply {
    one_line(421, "4.4.2 The message comes too slowly, closing the connection")
}

pub(crate) fn too_many_sessions() -> Reply {
    one_line(421, "4.7.0 Too many connections from your address, closing the connection")
}

/// Reply of one line. `text` may quote the client: `smtp` replaces control characters and cuts long text.
fn one_line(code: u16, text: &str) -> Reply {
    Reply::new(code, vec![text.to_owned()])
}
