//! Whether links can use a customer's tracking host: the host has to answer over HTTPS with a valid certificate.

use postroad_model::{Timestamp, WebhookUrl};
use postroad_net::guarded_http::{GuardedHttp, HttpFailure};
use serde::{Deserialize, Serialize};

use super::check::{Purpose, RecordCheck};

/// Longest description of a problem.
const REASON_BYTES_MAX: usize = 300;

/// Result of the last request to a tracking host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHostCheck {
    /// Why links cannot use the host; `None` if they can.
    pub problem: Option<String>,
    pub certificate_expires_at: Option<Timestamp>,
}

impl LinkHostCheck {
    /// Sends a request to the host at `base_url`. `None` if the URL is not valid or no address of the host was
    /// found: the host itself was not tried, so there is no verdict.
    pub(super) async fn request(http: &GuardedHttp, host: &str, base_url: &str) -> Option<Self> {
        let url = WebhookUrl::parse(&format!("{base_url}/")).ok()?;
        match http.reach(&url).await {
            Ok(answer) => Some(Self {
                problem: (answer.status >= 500).then(|| format!("{host} answers with {}", answer.status)),
                certificate_expires_at: answer.certificate_expires_at,
            }),
            Err(HttpFailure::Dns(_)) => None,
            Err(error) => {
                tracing::debug!(host, %error, "request to a tracking host failed; links do not use the host");
                let mut reason = error.to_string();
                reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
                let problem = Some(format!("{host} does not answer over HTTPS ({reason})"));
                Some(Self { problem, certificate_expires_at: None })
            }
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.problem.is_none()
    }

    /// Explains the problem in the hint of the tracking record, unless this record has a hint already.
    pub(super) fn explain(&self, checks: &mut [RecordCheck], fallback_host: &str) {
        let Some(problem) = &self.problem else { return };
        let record = checks.iter_mut().find(|check| check.purpose == Purpose::Tracking);
        if let Some(record) = record.filter(|record| record.hint.is_none()) {
            record.hint = Some(format!(
                "The record is right, but {problem}. Until this is fixed, links lead to {fallback_host}. Whoever runs this \
                 service has to serve {} over HTTPS, with a certificate that names it.",
                record.name
            ));
        }
    }
}
