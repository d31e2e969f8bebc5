//! Mail to the addresses for complaints and to the operator's addresses. A complaint about our message takes effect.
//! Everything else is forwarded to the operator, ignored (feedback reports that are no complaints) or refused.

use std::ops::ControlFlow;

use postroad_mail::{Returned, ReturnedKind};
use postroad_store::{StoreError, StoredBody};
use tokio::time::Instant;

use super::{ReturnAddress, ReturnReceiver, ReturnRefusal, ReturnedMail};
use crate::Refusal;
use crate::send::Forward;

impl ReturnReceiver {
    /// Takes one message for a complaint address, an operator address, or both.
    pub(super) async fn take_feedback(
        &self,
        complaints_to: Option<&str>,
        operator_address: Option<&str>,
        mail: &ReturnedMail,
    ) -> Result<(), ReturnRefusal> {
        let (returned, body) = self.read_return(mail).await?;
        // A bare copy of a message is a complaint only at a complaint address: people send copies to the operator too.
        let returned = if complaints_to.is_some() { returned.at_feedback_address() } else { returned };
        let address = complaints_to.or(operator_address).unwrap_or_default();
        match self.take_complaint(address, mail, &returned, body).await {
            ControlFlow::Break(done) => done,
            ControlFlow::Continue(refusal) => match operator_address {
                Some(address) => self.forward(address, mail).await,
                None if returned.kind == ReturnedKind::Other && returned.is_feedback_report => {
                    tracing::info!("feedback report is not a complaint; nothing to do");
                    Ok(())
                }
                None => Err(refusal),
            },
        }
    }

    /// Stores a complaint with its effect. Returns `Continue` with the reason if the mail is not a complaint about our
    /// message.
    async fn take_complaint(
        &self,
        address: &str,
        mail: &ReturnedMail,
        returned: &Returned,
        body: StoredBody,
    ) -> ControlFlow<Result<(), ReturnRefusal>, ReturnRefusal> {
        if returned.kind != ReturnedKind::Complaint {
            return ControlFlow::Continue(ReturnRefusal::NoReport);
        }
        let stored = async {
            let message = self.find_original(returned).await?;
            let (server_id, message_id) = (message.send.server_id, message.id);
            let to = ReturnAddress { server_id, message_id, address: address.to_owned() };
            self.store_return(&to, &message, mail, returned, body).await
        };
        match stored.await {
            // `Unknown`: the message was removed or erased meanwhile.
            Err(ReturnRefusal::Unknown | ReturnRefusal::ComplaintAboutOtherMail) => {
                ControlFlow::Continue(ReturnRefusal::ComplaintAboutOtherMail)
            }
            done => ControlFlow::Break(done),
        }
    }

    /// Forwards mail to the operator, within a budget: anybody can write to these addresses.
    async fn forward(&self, address: &str, mail: &ReturnedMail) -> Result<(), ReturnRefusal> {
        let Some(to) = self.app.inner.feedback.forward_to.clone() else {
            return Err(ReturnRefusal::NoOperator);
        };
        if self.forward_budget.reserve(mail.peer, 1, Instant::now()).is_none() {
            tracing::warn!("mail to the operator exceeds its hourly budget; replied 451");
            return Err(ReturnRefusal::Busy);
        }
        let forward = Forward {
            to,
            delivered_to: address.to_owned(),
            mail_from: mail.mail_from.clone(),
            received_with_ssl: mail.received_with_ssl,
        };
        let (app, bytes) = (self.app.clone(), mail.bytes.clone());
        let prepared = self.parse_blocking(move || app.prepare_forward(forward, bytes.to_vec())).await?;
        let sent = async { self.app.send_forward(prepared?).await };
        sent.await.map_err(|refusal| match refusal {
            Refusal::MailLoop => ReturnRefusal::Loop,
            Refusal::Unavailable(cause) => StoreError::Unavailable(cause).into(),
            Refusal::Internal(cause) => StoreError::Internal(cause).into(),
            other => ReturnRefusal::NotForwardable(other.message().to_owned()),
        })
    }
}
