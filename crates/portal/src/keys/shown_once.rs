//! Page with a new key, which is shown only this time.

use askama::Template;
use postroad_app::access::Operation;
use postroad_app::accounts::CreatedCredential;
use postroad_model::Scope;

use crate::answer::{Answer, page};
use crate::domains::find_verified_domain;
use crate::layout::{Layout, Section};
use crate::servers::{ArrivalPanel, AwaitedMessage};
use crate::snippets::{PLACEHOLDER_DOMAIN, PLACEHOLDER_KEY, Snippet, SnippetFacts, snippets};
use crate::state::SmtpAccess;
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "keys/shown_once.html")]
struct KeyPage {
    layout: Layout,
    server: i64,
    name: String,
    /// `None` if the form was sent a second time.
    api_key: Option<String>,
    api_secret: String,
    snippets: Vec<Snippet>,
    smtp: Option<SmtpAccess>,
    can_send: bool,
    has_domain: bool,
    /// Arrival of the first message; the page's script updates this part from `/first_message`.
    arrival: ArrivalPanel,
}

pub(super) async fn show(visit: &Visit, server: i64, created: CreatedCredential) -> Answer {
    let (_, layout) = visit.server_layout(server, "New key", Section::Keys).await?;
    let caller = visit.caller(server, Operation::DomainsList).await?;
    let verified = find_verified_domain(visit, &caller).await?;
    let domain = verified.as_ref().map_or_else(|| PLACEHOLDER_DOMAIN.to_owned(), ToString::to_string);
    let smtp = visit.state.smtp().cloned();
    let api_key = created.api_key;
    let api_secret = created.api_secret.unwrap_or_default();
    let awaited = AwaitedMessage::from_now(visit, &caller, Some(created.credential.id)).await?;
    let facts = SnippetFacts {
        base_url: &visit.base_url,
        api_key: api_key.as_deref().unwrap_or(PLACEHOLDER_KEY),
        api_secret: &api_secret,
        domain: &domain,
        to: &visit.person.user.email,
        smtp: smtp.as_ref(),
    };
    page(&KeyPage {
        layout,
        server,
        name: created.credential.name,
        snippets: snippets(&facts),
        api_key,
        api_secret,
        smtp,
        can_send: matches!(created.credential.scope, Scope::Full | Scope::Send),
        has_domain: verified.is_some(),
        arrival: ArrivalPanel::waiting(server, awaited),
    })
}
