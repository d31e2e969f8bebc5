//! Nodes of the installation, and problems of their certificates.

use std::time::Duration;

use postroad_boxed_futures::boxed_futures;
use postroad_model::Timestamp;
use postroad_store::{CertificateNote, NodeDescription, NodeRecord, StoreError};

use crate::App;
use crate::access::Operation;
use crate::accounts::{AccountRefusal, Requester};

/// Nodes that were not seen for this long are not shown: they are gone for good.
const ABSENT_NODES_SHOWN_FOR: Duration = Duration::from_hours(7 * 24);
/// A certificate should have been renewed this long before it expires.
pub const CERTIFICATE_WARNING_TIME: Duration = Duration::from_hours(14 * 24);

#[boxed_futures]
impl App {
    /// Publishes this node's description for other nodes: version, listeners, certificate.
    pub async fn describe_node(&self, description: &NodeDescription) -> Result<(), StoreError> {
        self.inner.store.describe_node(description).await
    }

    /// Nodes of the installation; running nodes come first.
    pub async fn list_nodes(&self, by: &Requester) -> Result<Vec<NodeRecord>, AccountRefusal> {
        self.permit_operator(by, Operation::InstallationStatus)?;
        let since = self.inner.clock.now().minus(ABSENT_NODES_SHOWN_FOR);
        let mut nodes = self.inner.store.list_nodes().await?;
        nodes.retain(|node| node.is_live || node.last_seen_at.is_none_or(|at| at >= since));
        nodes.sort_by_key(|node| (!node.is_live, node.number));
        Ok(nodes)
    }
}

/// Problem of the certificate of a node's listeners, as the end of a sentence that begins with the
/// certificate; `None` if there is no problem.
pub fn certificate_problem(note: &CertificateNote, now: Timestamp) -> Option<String> {
    if let Some(problem) = &note.file_problem {
        return Some(format!("cannot be loaded again, and the next restart will fail: {problem}"));
    }
    if note.is_replaced {
        return Some(
            "was replaced in its file, and the old one is in use: send HUP to the process (`systemctl reload postroad`)"
                .to_owned(),
        );
    }
    let ends_at = note.expires_at.filter(|ends_at| *ends_at <= now.plus(CERTIFICATE_WARNING_TIME))?;
    let verb = if ends_at <= now { "has expired at" } else { "expires at" };
    Some(format!(
        "{verb} {}: renew the files `tls.certificate` and `tls.key`, then send HUP to the process",
        ends_at.to_rfc3339()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_problem_is_reported_two_weeks_before_expiry_and_for_replaced_or_unreadable_files() {
        let now = Timestamp::from_micros(1_794_711_600_000_000);
        let problem_text = |note: &CertificateNote| certificate_problem(note, now).unwrap_or_default();
        let ends = |days: u64| CertificateNote {
            expires_at: Some(now.plus(Duration::from_hours(24 * days))),
            ..CertificateNote::default()
        };
        assert_eq!(
            (problem_text(&ends(15)), problem_text(&CertificateNote::default())),
            (String::new(), String::new())
        );
        assert!(
            problem_text(&ends(13)).starts_with("expires at 2026-11-28T03:00:00Z: renew"),
            "{}",
            problem_text(&ends(13))
        );
        assert!(problem_text(&ends(0)).starts_with("has expired at"));
        assert!(
            problem_text(&CertificateNote { is_replaced: true, ..ends(1) })
                .starts_with("was replaced in its file")
        );
        let unreadable = CertificateNote { file_problem: Some("no such file".to_owned()), ..ends(90) };
        assert!(problem_text(&unreadable).ends_with("restart will fail: no such file"));
    }
}
