//! Mail from outside that goes on to the operator. It is stored and delivered like every other message, under a server that
//! belongs to the installation itself.
//!
//! Loops end here: the copy leaves with the empty sender, so nobody bounces it, and says in `Delivered-To` which address it
//! came through, as Postfix's aliases do, so that it is known when it comes back.

use std::collections::BTreeMap;

use postroad_mail::{RawProblem, is_delivered_to, prepare_raw};
use postroad_model::{Direction, EmailAddress, Protocol, SendId, ServerId, ServerMode};
use postroad_store::{InitialState, NewSend, NewServer, SendInfo, SendOptions, StoreError, StoredBody};

use super::accept::recipients;
use super::built::{built_refusal, built_subject};
use crate::{App, FieldProblem, Refusal};

/// Setting that names the server.
const SERVER: &str = "operator_server";
const ACCOUNT_NAME: &str = "postroad";
const SERVER_NAME: &str = "operator";

/// One message from outside, and where it goes.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) to: EmailAddress,
    /// The address that it came to.
    pub(crate) delivered_to: String,
    pub(crate) mail_from: String,
    pub(crate) received_with_ssl: bool,
}

/// A message that can be stored.
#[derive(Debug)]
pub(crate) struct PreparedForward {
    forward: Forward,
    message_id: String,
    subject: String,
    size: u64,
    body: StoredBody,
}

impl App {
    /// Checks and compresses the message; for a blocking thread. `MailLoop` if it has been here before.
    pub(crate) fn prepare_forward(
        &self,
        forward: Forward,
        bytes: Vec<u8>,
    ) -> Result<PreparedForward, Refusal> {
        if is_delivered_to(&bytes, &forward.delivered_to) {
            return Err(Refusal::MailLoop);
        }
        let fallback = self.built_fallback(None);
        let raw = prepare_raw(bytes, &fallback.as_raw()).map_err(|problem| match problem {
            RawProblem::Loop => Refusal::MailLoop,
            // Nobody is asked to prove who they are here.
            RawProblem::FromMissing
            | RawProblem::From(_)
            | RawProblem::Sender(_)
            | RawProblem::Resent(..) => {
                Refusal::Validation(vec![FieldProblem::new("/data", problem.to_string())])
            }
            other => built_refusal(other),
        })?;
        let subject = built_subject(&raw);
        let mut bytes = format!("Delivered-To: {}\r\n", forward.delivered_to).into_bytes();
        bytes.extend_from_slice(&raw.bytes);
        let size = bytes.len() as u64;
        let body = StoredBody::compress(bytes)?;
        Ok(PreparedForward { forward, message_id: raw.message_id, subject, size, body })
    }

    /// When this returns `Ok`, the message and its queue entry are on stable storage.
    pub(crate) async fn send_forward(&self, prepared: PreparedForward) -> Result<(), Refusal> {
        let PreparedForward { forward, message_id, subject, size, body } = prepared;
        let inner = &self.inner;
        let server_id = self.operator_server().await?;
        let (ids, now) = (inner.store.ids()?, inner.clock.now());
        let info = SendInfo {
            server_id,
            id: SendId(ids.next()),
            credential_id: None,
            message_id,
            mail_from: forward.mail_from,
            // Not the stranger's: analytics would count under a name that strangers choose.
            from_domain: inner.hostname.as_str().to_owned(),
            subject,
            tag: None,
            metadata: BTreeMap::new(),
            options: SendOptions {
                host: Some(inner.hostname.clone()),
                protocol: Protocol::Esmtp,
                ..SendOptions::default()
            },
            size,
            direction: Direction::Outgoing,
            bounce: true,
            received_with_ssl: forward.received_with_ssl,
            test: false,
            created_at: now,
        };
        let recipients = recipients(&[forward.to], &ids, &inner.simulator_domain);
        let send = NewSend {
            info,
            body,
            recipients,
            state: InitialState::Pending,
            idempotency: None,
            hourly_limit: None,
            account_limits: None,
            batch_id: None,
        };
        inner.store.accept(send).await?;
        tracing::info!(server.id = %server_id, "mail forwarded to the operator");
        Ok(())
    }

    /// The installation's own server; created with the first message.
    pub(super) async fn operator_server(&self) -> Result<ServerId, Refusal> {
        let store = &self.inner.store;
        if let Some(id) = store.find_setting(SERVER).await?.and_then(|id| id.parse().ok())
            && store.find_server(ServerId(id)).await?.is_some()
        {
            return Ok(ServerId(id));
        }
        // Another node may be doing the same.
        let id = match self.create_operator_server().await {
            Err(StoreError::Conflict) => self.find_operator_server().await?.ok_or(StoreError::Conflict)?,
            created => created?,
        };
        store.set_setting(SERVER, Some(id.0.to_string())).await?;
        Ok(id)
    }

    async fn find_operator_server(&self) -> Result<Option<ServerId>, StoreError> {
        let servers = self.inner.store.list_servers().await?;
        let is_it = |server: &&postroad_store::Server| {
            server.account_name == ACCOUNT_NAME && server.name == SERVER_NAME
        };
        Ok(servers.iter().find(is_it).map(|server| server.id))
    }

    async fn create_operator_server(&self) -> Result<ServerId, StoreError> {
        if let Some(id) = self.find_operator_server().await? {
            return Ok(id);
        }
        let store = &self.inner.store;
        let accounts = store.list_accounts().await?;
        let account = match accounts.into_iter().find(|account| account.name == ACCOUNT_NAME) {
            Some(account) => account,
            None => store.create_account(ACCOUNT_NAME.to_owned()).await?,
        };
        let name = SERVER_NAME.to_owned();
        let new = NewServer { account_id: account.id, name, mode: ServerMode::Live };
        Ok(store.create_server(new).await?.id)
    }
}
