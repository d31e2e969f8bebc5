//! A client that submits mail, as its session sees it: `app` decides the replies to its commands.

use postroad_app::send::Submission;
use postroad_app::{App, Caller, LoginFailure, Peer, Submitter};
use postroad_model::{Protocol, client_network};
use postroad_smtp::Reply;
use postroad_smtp::server::{Envelope, Login, RcptTo, StandardReply};

use crate::incoming::Incoming;
use crate::memory::Tenant;
use crate::replies;
use crate::routed::is_routed;

#[derive(Debug)]
pub(crate) struct Client {
    app: App,
    peer: Peer,
    identification: Identification,
    submitter: Option<Submitter>,
    /// Caller of the current message.
    caller: Option<Caller>,
}

/// How a client shows which of Postroad's servers it submits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identification {
    /// By AUTH.
    Login,
    /// By a credential that is bound to the client's address.
    Address,
    /// None is needed: the client submits with the key of `postroad dev`.
    None,
}

impl Client {
    pub(crate) fn new(app: App, peer: Peer, identification: Identification) -> Self {
        Self { app, peer, identification, submitter: None, caller: None }
    }

    /// Records that TLS is established, and discards everything that the client said before.
    pub(crate) fn tls_established(&mut self) {
        self.peer.tls = true;
        self.submitter = None;
        self.caller = None;
    }

    pub(crate) async fn log_in(&mut self, login: &Login) -> Reply {
        match self.app.log_in(&login.username, &login.password, self.peer).await {
            Ok(submitter) => {
                self.submitter = Some(submitter);
                StandardReply::Authenticated.into()
            }
            Err(failure) => reply_after_delay(&failure).await,
        }
    }

    /// Checks whether the client may begin a message. Called for each message, because the key can be revoked or the
    /// server suspended between two messages.
    pub(crate) async fn begin_message(&mut self) -> Reply {
        self.caller = None;
        match self.app.is_in_maintenance().await {
            Ok(false) => {}
            Ok(true) => return replies::in_maintenance(),
            Err(error) => return replies::login_failed(&LoginFailure::Store(error)),
        }
        match self.identify().await {
            Ok(caller) => {
                self.caller = Some(caller);
                StandardReply::SenderOk.into()
            }
            Err(failure) => reply_after_delay(&failure).await,
        }
    }

    async fn identify(&mut self) -> Result<Caller, LoginFailure> {
        match self.identification {
            Identification::Login => {}
            Identification::Address => self.submitter = Some(self.app.log_in_by_address(self.peer).await?),
            Identification::None => {
                self.submitter = Some(self.app.log_in_without_credentials(self.peer).await?);
            }
        }
        // Not reached without a submitter: the session refuses MAIL before AUTH.
        let submitter = self.submitter.as_ref().ok_or(LoginFailure::NetworkUnknown)?;
        self.app.admit_submitter(submitter).await
    }

    pub(crate) fn reply_to_rcpt(rcpt: &RcptTo) -> Reply {
        if is_routed(&rcpt.address) { replies::routed_recipient() } else { StandardReply::RecipientOk.into() }
    }

    /// Tenant that the memory of the current message counts for. A message without a caller cannot be submitted; it
    /// counts for the client's network.
    pub(crate) fn tenant(&self) -> Tenant {
        match &self.caller {
            Some(caller) => Tenant::Server(caller.server_id),
            None => Tenant::Network(client_network(self.peer.address)),
        }
    }

    /// Submits the complete message.
    pub(crate) async fn submit(&mut self, message: Option<Incoming>) -> Reply {
        let (Some(message), Some(caller)) = (message, self.caller.take()) else {
            return StandardReply::MailFirst.into();
        };
        // The memory share is held until the message is stored.
        let Some((envelope, bytes, _share)) = message.finish() else { return replies::no_memory() };
        let submission = Submission {
            mail_from: envelope.mail_from.path.as_str().to_owned(),
            protocol: self.protocol(&envelope),
            rcpt_to: envelope.rcpt_to.into_iter().map(|rcpt| rcpt.address).collect(),
            bytes,
        };
        match self.app.submit(caller, submission).await {
            // There is at least one message: the session passes on no message without recipients.
            Ok(answer) => match answer.messages.first() {
                Some(message) => replies::queued(&message.token),
                None => StandardReply::Ok.into(),
            },
            Err(refusal) => replies::refused(&refusal),
        }
    }

    fn protocol(&self, envelope: &Envelope) -> Protocol {
        match (self.peer.tls, envelope.mail_from.is_smtputf8) {
            (true, false) => Protocol::Esmtpsa,
            (true, true) => Protocol::Utf8Smtpsa,
            (false, false) => Protocol::Esmtp,
            (false, true) => Protocol::Utf8Smtp,
        }
    }
}

/// Reply to a failed login, after the delay that slows down guessing.
async fn reply_after_delay(failure: &LoginFailure) -> Reply {
    if let LoginFailure::Invalid { delay, .. } = failure {
        tokio::time::sleep(*delay).await;
    }
    replies::login_failed(failure)
}
