//! A recipient's own copy of a tracked send: links and pixel that identify its message, and the unsubscribe link.
//! Generated from the stored bytes for each attempt, always with the same result.

use std::sync::Arc;

use bytes::Bytes;
use postroad_mail::{RewritePlan, RewriteSettings, TrackKey, TrackKind, TrackedRecipient, one_click_headers};
use postroad_store::SendTracking;

use super::{LoadedMessage, PrepareError};

/// Larger messages are rewritten on a blocking thread.
const REWRITE_INLINE_BYTES_MAX: usize = 64 << 10;

/// Positions at which a send is rewritten, which are the same in every copy.
pub(super) async fn plan(tracking: &SendTracking, body: &Bytes) -> Result<Arc<RewritePlan>, PrepareError> {
    let (tracking, body) = (tracking.clone(), body.clone());
    run_blocking_if_large(body.len(), move || {
        let settings = RewriteSettings {
            base_url: &tracking.base_url,
            opens: tracking.opens,
            clicks: tracking.clicks,
            excluded_hosts: &tracking.excluded_hosts,
        };
        Arc::new(RewritePlan::of(&body, &settings))
    })
    .await
}

/// The recipient's copy; `None` if it equals the stored message.
pub(super) async fn copy(
    plan: Arc<RewritePlan>,
    tracking: &SendTracking,
    key: &TrackKey,
    loaded_message: &LoadedMessage,
    body: &Bytes,
) -> Result<Option<Bytes>, PrepareError> {
    let headers = tracking.unsubscribe.as_ref().map(|unsubscribe| {
        let kind = TrackKind::Unsubscribe { address: loaded_message.rcpt_to.clone() };
        let token = key.token(loaded_message.server_id, loaded_message.message_id, &kind);
        one_click_headers(&format!("{}/u/{token}", tracking.base_url), unsubscribe.mailto.as_deref())
    });
    if plan.is_empty() && headers.is_none() {
        return Ok(None);
    }
    let (key, body) = (key.clone(), body.clone());
    let (server_id, message_id) = (loaded_message.server_id, loaded_message.message_id);
    let writing = run_blocking_if_large(body.len(), move || {
        let written = plan.write(&body, &TrackedRecipient { key: &key, server_id, message_id });
        match headers {
            Some(headers) => [headers.into_bytes(), written].concat().into(),
            None => written.into(),
        }
    });
    writing.await.map(Some)
}

async fn run_blocking_if_large<T: Send + 'static>(
    bytes: usize,
    rewrite: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PrepareError> {
    if bytes <= REWRITE_INLINE_BYTES_MAX {
        return Ok(rewrite());
    }
    let rewriting = tokio::task::spawn_blocking(rewrite);
    rewriting.await.map_err(|_| PrepareError::Broken("rewriting its links failed".into()))
}
