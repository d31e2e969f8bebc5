//! Nodes of the installation: which run, since when, what they serve, and their certificates.

use askama::Template;
use postroad_app::certificate_problem;
use postroad_model::Timestamp;
use postroad_store::NodeRecord;

use super::TABS;
use crate::answer::{Answer, page};
use crate::display::When;
use crate::layout::{Layout, Section};
use crate::problem::Problem;
use crate::sentence::Sentence;
use crate::visit::Visit;

struct Row {
    number: u8,
    host: String,
    is_live: bool,
    is_this: bool,
    last_seen_at: Option<When>,
    version: String,
    started_at: Option<When>,
    /// Name and address of each listener.
    listeners: Vec<(String, String)>,
    certificate_until: Option<When>,
    trouble: Option<Sentence>,
}

#[derive(Template)]
#[template(path = "operator/nodes.html")]
struct NodesPage {
    layout: Layout,
    rows: Vec<Row>,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let nodes = visit.app().list_nodes(&visit.requester).await?;
    let layout = visit.layout("Nodes", Section::Operator).await?;
    let now = visit.app().now();
    page(&NodesPage { layout, rows: nodes.into_iter().map(|node| row(node, now)).collect() })
}

/// For the operator: problems of the certificates of running nodes, and how to fix them.
pub(crate) async fn certificate_troubles(visit: &Visit) -> Result<Vec<String>, Problem> {
    let (nodes, now) = (visit.app().list_nodes(&visit.requester).await?, visit.app().now());
    Ok(troubles_of(&nodes, now))
}

/// Problems of the certificates of running nodes, as whole sentences.
pub(super) fn troubles_of(nodes: &[NodeRecord], now: Timestamp) -> Vec<String> {
    let running = nodes.iter().filter(|node| node.is_live).filter_map(|node| node.description.as_ref());
    running
        .filter_map(|node| {
            let trouble = certificate_problem(node.certificate.as_ref()?, now)?;
            Some(format!("The TLS certificate of {} {trouble}.", node.host))
        })
        .collect()
}

fn row(node: NodeRecord, now: Timestamp) -> Row {
    let NodeRecord { number, is_live, is_this, last_seen_at, description } = node;
    let certificate = description.as_ref().and_then(|node| node.certificate.clone());
    let (host, version, started_at, listeners) = match description {
        Some(node) => (node.host, node.version, Some(When(node.started_at)), node.listeners),
        None => ("unknown".to_owned(), "older".to_owned(), None, Vec::new()),
    };
    Row {
        number,
        host,
        is_live,
        is_this,
        last_seen_at: last_seen_at.map(When),
        version,
        started_at,
        listeners: listeners.into_iter().map(|one| (one.name, one.address)).collect(),
        certificate_until: certificate.as_ref().and_then(|certificate| certificate.expires_at).map(When),
        trouble: certificate
            .as_ref()
            .and_then(|certificate| certificate_problem(certificate, now))
            .map(Sentence),
    }
}
