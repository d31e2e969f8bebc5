//! A request of a signed-in person. Handlers take it as an argument, so that none can forget the sign-in check; those
//! that change something take a `Form`, whose token is checked first.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use postroad_app::access::Operation;
use postroad_app::accounts::{AccountRefusal, Requester};
use postroad_app::analytics::Zone;
use postroad_app::templates::CONTENT_BYTES_MAX;
use postroad_app::users::SignedInPerson;
use postroad_app::{App, Caller, Peer};
use postroad_model::{AccountId, LimitedObject, ServerId};
use postroad_net::limits::{ByteShare, FairPermit};
use postroad_store::{Server, ServerFilter};

use crate::csrf;
use crate::fields::{FORM_BYTES_MAX, Fields};
use crate::layout::{Layout, Section, ServerLink};
use crate::problem::{Problem, check_token};
use crate::session;
use crate::state::PortalState;

/// Maximum number of servers in the menu.
const MENU_SERVERS_MAX: usize = 50;
/// Name of the cookie with the reader's time zone.
const ZONE_COOKIE: &str = "zone";
const ZONE_BYTES_MAX: usize = 64;
/// Maximum size of a large form. URL-encoding makes up to three bytes of one; the rest is for the other fields and for
/// line ends, which browsers send as CRLF.
const LARGE_FORM_BYTES_MAX: usize = 3 * CONTENT_BYTES_MAX + (1 << 20);
/// Time for a large form to arrive; shorter than for other forms, because few large forms may arrive at the same time.
const LARGE_FORM_TIME_MAX: Duration = Duration::from_mins(1);

pub(crate) struct Visit {
    pub(crate) state: Arc<PortalState>,
    pub(crate) person: SignedInPerson,
    /// The person, as the requester of operations of `app`.
    pub(crate) requester: Requester,
    pub(crate) peer: Peer,
    /// Scheme and host that the browser uses, such as `https://mail.example.com`.
    pub(crate) base_url: String,
    /// The session's secret, from its cookie.
    pub(crate) session_secret: String,
    /// Fields of the query.
    pub(crate) query: Fields,
    /// Time zone of the reader, from a cookie that the script sets; UTC without it.
    pub(crate) zone: Zone,
    /// Warning that a form came near a ceiling of the account, for the page that answers the form.
    pub(crate) warning: Option<String>,
}

/// A form that a signed-in person sent from one of our pages.
pub(crate) struct Form {
    pub(crate) visit: Visit,
    pub(crate) fields: Fields,
}

/// Marks the routes of the template editor: their forms have all texts of a template, and may be larger than other
/// forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeForms;

/// The form that a handler has read; `refused_forms` puts its values back into the page if the form is refused.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentForm(pub(crate) Arc<OnceLock<FormBytes>>);

/// The bytes of a form, with the permit and the memory that they take.
#[derive(Debug)]
pub(crate) struct FormBytes {
    pub(crate) bytes: Bytes,
    /// Permit of a large form. This and the memory are held until the request is answered: `refused_forms::show` keeps
    /// the `SentForm` of every request.
    _permit: Option<FairPermit>,
    /// Memory of a form that is not large.
    _memory: ByteShare,
}

impl FromRequestParts<Arc<PortalState>> for Visit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<PortalState>) -> Result<Self, Problem> {
        let peer = peer(parts)?;
        let next = parts.uri.path_and_query().filter(|_| parts.method.is_safe());
        let next = next.map_or_else(|| "/".to_owned(), ToString::to_string);
        let Some(session_secret) = session::token(&parts.headers, peer) else {
            return Err(Problem::SignIn { next });
        };
        let Some(person) = state.app.find_session(&session_secret, peer.address).await? else {
            return Err(Problem::SignIn { next });
        };
        let requester = person.requester();
        let query = Fields::of_query(parts.uri.query());
        Ok(Self {
            state: Arc::clone(state),
            requester,
            peer,
            base_url: base_url(parts, peer),
            session_secret,
            person,
            query,
            zone: zone(&parts.headers),
            warning: None,
        })
    }
}

impl FromRequest<Arc<PortalState>> for Form {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<PortalState>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, state).await?;
        let may_be_large = parts.extensions.get::<LargeForms>().is_some();
        let form = read_form(&visit, body, may_be_large).await?;
        let fields = Fields::parse(&form.bytes);
        if let Some(SentForm(sent)) = parts.extensions.get() {
            sent.get_or_init(|| form);
        }
        check_token(&visit.session_secret, fields.text(csrf::FIELD))?;
        Ok(Self { visit, fields })
    }
}

/// Reads the form. A large form waits for a permit first, because it takes much memory; other forms take memory as
/// their bytes arrive.
async fn read_form(visit: &Visit, body: Body, may_be_large: bool) -> Result<FormBytes, Problem> {
    let (work, account) = (&visit.state.work, visit.person.user.account_id);
    // Browsers announce the length of a form.
    let is_large = body.size_hint().exact().is_some_and(|bytes| bytes > FORM_BYTES_MAX as u64);
    if may_be_large && is_large {
        let permit = work.large_form(account).await?;
        let bytes = Fields::read_bytes(body, LARGE_FORM_BYTES_MAX, LARGE_FORM_TIME_MAX).await?;
        return Ok(FormBytes { bytes, _permit: Some(permit), _memory: ByteShare::default() });
    }
    let mut memory = work.form(account);
    let bytes = Fields::read_bytes_reserving(body, &mut memory).await?;
    Ok(FormBytes { bytes, _permit: None, _memory: memory.into_share() })
}

fn zone(headers: &HeaderMap) -> Zone {
    let name = session::cookie(headers, ZONE_COOKIE).filter(|name| name.len() <= ZONE_BYTES_MAX);
    name.and_then(Zone::parse).unwrap_or_else(Zone::utc)
}

/// Address of the client and whether it uses TLS, from the listener.
pub(crate) fn peer(parts: &Parts) -> Result<Peer, Problem> {
    let peer = parts.extensions.get::<Peer>().copied();
    peer.ok_or_else(|| Problem::Internal("a request has no peer".to_owned()))
}

/// Base URL that the browser uses. It has only characters of host names, because it is shown in snippets.
pub(crate) fn base_url(parts: &Parts, peer: Peer) -> String {
    let host = parts.uri.authority().map(Authority::as_str);
    let host = host.or_else(|| parts.headers.get(HOST)?.to_str().ok()).unwrap_or("localhost");
    let host: String = host
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']'))
        .collect();
    format!("{}://{host}", if peer.tls { "https" } else { "http" })
}

impl Visit {
    pub(crate) fn app(&self) -> &App {
        &self.state.app
    }

    /// The right to perform `operation` on a server.
    pub(crate) async fn caller(&self, server: i64, operation: Operation) -> Result<Caller, AccountRefusal> {
        self.app().act_on_server(&self.requester, self.peer, ServerId(server), operation).await
    }

    /// Filter for the servers of the person's account; the operator could see other accounts' servers too.
    pub(crate) fn own_servers(&self) -> ServerFilter {
        ServerFilter { account_id: Some(self.person.user.account_id), ..ServerFilter::default() }
    }

    /// Menu and head of a page that is about no server.
    pub(crate) async fn layout(&self, title: &str, section: Section) -> Result<Layout, Problem> {
        self.layout_of(title, section, None).await
    }

    /// Menu and head of a page about a server.
    pub(crate) async fn server_layout(
        &self,
        server: i64,
        title: &str,
        section: Section,
    ) -> Result<(Server, Layout), Problem> {
        let server = self.app().find_server_as(&self.requester, ServerId(server)).await?;
        let layout = self.layout_of(title, section, Some(&server)).await?;
        Ok((server, layout))
    }

    async fn layout_of(
        &self,
        title: &str,
        section: Section,
        server: Option<&Server>,
    ) -> Result<Layout, Problem> {
        let (servers, _) =
            self.app().list_servers_as(&self.requester, self.own_servers(), None, MENU_SERVERS_MAX).await?;
        let mut layout = Layout::new(title, section, &self.person.user, csrf::token(&self.session_secret));
        layout.base_url.clone_from(&self.base_url);
        layout.servers = servers.iter().map(ServerLink::of).collect();
        layout.server = server.map(ServerLink::of);
        layout.has_inbox = layout.is_operator && self.state.inbox.is_some();
        layout.notice = crate::layout::notice(self.query.text("done"));
        layout.warning = self.ceiling_warning(server).await;
        Ok(layout)
    }

    /// Warning about the ceiling that `?ceiling=` names: of the server's account, the person's account, or an account
    /// that the operator names.
    async fn ceiling_warning(&self, server: Option<&Server>) -> Option<String> {
        if self.warning.is_some() {
            return self.warning.clone();
        }
        let object = LimitedObject::parse(self.query.text("ceiling"))?;
        let named =
            self.query.number("account").filter(|_| self.requester.actor.is_operator()).map(AccountId);
        let account = server.map(|server| server.account_id).or(named);
        self.app().ceiling_warning(account.unwrap_or(self.person.user.account_id), object).await
    }
}
