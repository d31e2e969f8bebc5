//! Signed headers of a send: headers for feedback loops, and the DKIM signatures over them and the message.

use std::sync::Arc;

use bytes::Bytes;
use postroad_mail::{
    Canonical, InstallationId, SenderFeedbackHeaders, Signer, cfbl_address, find_from_domain,
};
use postroad_model::DomainName;
use postroad_store::{SendInfo, Store};

use super::PrepareError;
use super::accounts::Accounts;
use super::own_domains::{OwnDomains, Signers};
use crate::signing::SigningPool;

/// Larger bodies are hashed on a blocking thread.
const HASH_INLINE_BYTES_MAX: usize = 256 << 10;

/// Which keys sign a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SigningKeys {
    /// The keys of the From domain, or the installation's if the domain has none.
    Usual,
    /// These keys and also the installation's: the receiver sends complaints to the signers, and one enrolment should
    /// cover all customers. Not the default, because a signature is the largest cost of a message.
    ForFeedback,
}

/// Headers to put before a body.
#[derive(Debug, Clone, Default)]
pub(super) struct SignedHead {
    pub(super) bytes: Bytes,
    /// DNS names of the keys that signed, separated by spaces; `None` if none did.
    pub(super) keys: Option<Arc<str>>,
}

fn key_names(signers: &[Arc<Signer>]) -> Arc<str> {
    let name = |signer: &Arc<Signer>| format!("{}._domainkey.{}", signer.selector(), signer.domain());
    signers.iter().map(name).collect::<Vec<_>>().join(" ").into()
}

#[derive(Debug)]
pub(super) struct HeadSigner {
    store: Store,
    pool: SigningPool,
    installation_id: InstallationId,
    accounts: Accounts,
}

impl HeadSigner {
    pub(super) fn new(store: Store, pool: SigningPool, secret: &[u8; 32]) -> Self {
        let installation_id = InstallationId::of(secret);
        Self { store, pool, installation_id, accounts: Accounts::default() }
    }

    /// Headers to put before `body`. All recipients get the same `body` unless their copies are tracked.
    pub(super) async fn sign(
        &self,
        domains: &OwnDomains,
        info: &SendInfo,
        body: &Bytes,
        signing_keys: SigningKeys,
    ) -> Result<SignedHead, PrepareError> {
        let own = match find_from_domain(body) {
            Some(domain) => domains.find(info.server_id, domain).await?,
            None => None,
        };
        let own_signers = own.as_ref().map(|own| Arc::clone(&own.signers)).filter(|own| !own.is_empty());
        let (installation, host) = domains.of_installation();
        let installation_signs = own_signers.is_none() || signing_keys == SigningKeys::ForFeedback;
        let signers: Signers = match own_signers {
            None => installation,
            Some(own) if installation_signs => own.iter().chain(installation.iter()).cloned().collect(),
            Some(own) => own,
        };
        // RFC 9477 3.1: the address for complaints is at a subdomain of the signing From domain, or at the domain of
        // the installation's signature. Without either, receivers would ignore the header.
        let aligned = own.as_ref().filter(|own| !own.signers.is_empty());
        let aligned = aligned.and_then(|own| own.return_domain.as_ref());
        let complaints_at = aligned.or(installation_signs.then_some(host));
        let added = self.feedback_headers(info, body, complaints_at).await?;
        let mut head = self.signatures(info, &signers, added.clone(), body).await?;
        head.push_str(&added);
        Ok(SignedHead { bytes: head.into(), keys: Some(key_names(&signers)) })
    }

    /// Headers for feedback loops that the sender has not set. Google allows only one `Feedback-ID`, so the sender's
    /// own is kept; the same applies to `CFBL-Address`.
    async fn feedback_headers(
        &self,
        info: &SendInfo,
        body: &[u8],
        complaints_at: Option<&DomainName>,
    ) -> Result<String, PrepareError> {
        let existing = SenderFeedbackHeaders::of(body);
        let complaints_at = complaints_at.filter(|_| !existing.cfbl_address);
        let mut headers = String::new();
        if existing.feedback_id && complaints_at.is_none() {
            return Ok(headers);
        }
        let (tag, server_id) = (info.tag.as_deref(), info.server_id);
        let account_id = self.accounts.find(&self.store, server_id).await?;
        if !existing.feedback_id {
            headers.push_str(&self.installation_id.feedback_id(tag, server_id, account_id));
        }
        if let Some(domain) = complaints_at {
            headers.push_str(&cfbl_address(&format!("fbl@{domain}")));
            if !existing.cfbl_feedback_id {
                headers.push_str(&self.installation_id.cfbl_feedback_id(tag, server_id, account_id));
            }
        }
        Ok(headers)
    }

    async fn signatures(
        &self,
        info: &SendInfo,
        signers: &[Arc<Signer>],
        added: String,
        body: &Bytes,
    ) -> Result<String, PrepareError> {
        let canonical = if body.len() <= HASH_INLINE_BYTES_MAX {
            Canonical::of_parts(added.as_bytes(), body)
        } else {
            let body = body.clone();
            let hashing = tokio::task::spawn_blocking(move || Canonical::of_parts(added.as_bytes(), &body));
            hashing.await.map_err(|_| PrepareError::Broken("hashing it failed".into()))?
        };
        let canonical = Arc::new(canonical);
        let mut headers = String::new();
        for signer in signers {
            let (signer, canonical) = (Arc::clone(signer), Arc::clone(&canonical));
            let signing = self.pool.sign(info.server_id, signer, canonical, info.created_at);
            headers.push_str(&signing.await);
        }
        Ok(headers)
    }
}
