//! Link for whoever edits the DNS of a domain: shows its records without signing in, until it expires. The link holds the
//! domain and its end, sealed, so nothing is stored for it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{DomainId, Timestamp};

use super::DomainRefusal;
use super::view::DomainView;
use crate::access::Operation;
use crate::{App, Caller};

const PLACE: &str = "domain link";
const VALID_FOR: Duration = Duration::from_hours(14 * 24);
/// Links are shorter; longer texts are not ours.
const TOKEN_BYTES_MAX: usize = 200;

/// A domain as a link shows it.
#[derive(Debug, Clone)]
pub struct SharedDomain {
    pub view: DomainView,
    pub expires_at: Timestamp,
}

#[boxed_futures]
impl App {
    /// The secret part of a link to the records of a domain, and when it expires.
    pub async fn share_domain(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(String, Timestamp), DomainRefusal> {
        let operation = Operation::DomainsShare;
        let view = self.find_domain_by(&caller.requester(), caller.into(), name, operation).await?;
        let expires_at = self.inner.clock.now().plus(VALID_FOR);
        let mut content = view.domain.id.0.to_be_bytes().to_vec();
        content.extend(expires_at.as_micros().to_be_bytes());
        Ok((URL_SAFE_NO_PAD.encode(self.inner.sealing_key.seal(PLACE, &content)), expires_at))
    }

    /// `NotFound` for a link that was changed or has expired, and for a domain that was deleted.
    pub async fn find_shared_domain(&self, token: &str) -> Result<SharedDomain, DomainRefusal> {
        let (id, expires_at) = self.open_domain_link(token).ok_or(DomainRefusal::NotFound)?;
        if expires_at <= self.inner.clock.now() {
            return Err(DomainRefusal::NotFound);
        }
        let domain = self.inner.store.find_domain_by_id(id).await?.ok_or(DomainRefusal::NotFound)?;
        Ok(SharedDomain { view: self.domain_view(domain).await, expires_at })
    }

    fn open_domain_link(&self, token: &str) -> Option<(DomainId, Timestamp)> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
        let content = self.inner.sealing_key.open(PLACE, &sealed).ok()?;
        let (id, end) = content.split_at_checked(8)?;
        let number = |bytes: &[u8]| Some(i64::from_be_bytes(bytes.try_into().ok()?));
        Some((DomainId(number(id)?), Timestamp::from_micros(number(end)?)))
    }
}
