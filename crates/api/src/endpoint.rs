//! The way of every call: maintenance, key, body, JSON, the endpoint's own work, envelope.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use postroad_app::{App, Caller};
use postroad_delivery::QueueDesk;
use postroad_events::WebhookDesk;
use postroad_model::Scope;
use serde::Serialize;

use crate::answers::Answers;
use crate::aside::Aside;
use crate::body::{Bodies, Memory};
use crate::boundary::RequestInfo;
use crate::envelope::{self, Success};
use crate::failure::{Failure, Reason};
use crate::health::LastReadiness;
use crate::memory::{LARGE_BYTES, Pools};
use crate::{Settings, auth, openapi_json, params};

/// What endpoints work with.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) app: App,
    bodies: Bodies,
    answers: Arc<Answers>,
    aside: Arc<Aside>,
    /// What posts webhooks, where that runs in this process.
    webhooks: OnceLock<WebhookDesk>,
    /// What delivers, where that runs in this process.
    queue: OnceLock<QueueDesk>,
    /// What `/ready` said last.
    pub(crate) readiness: LastReadiness,
    /// The OpenAPI document, written once.
    pub(crate) openapi: Bytes,
}

impl Door {
    pub(crate) fn new(app: App, settings: &Settings) -> Self {
        let wait_max = settings.times.memory_wait;
        let pools = Arc::new(Pools::new(settings.in_flight_bytes_max, wait_max));
        Self {
            app,
            bodies: Bodies::new(settings, Arc::clone(&pools)),
            answers: Arc::new(Answers::new(settings, pools)),
            aside: Arc::new(Aside::new(wait_max)),
            webhooks: OnceLock::new(),
            queue: OnceLock::new(),
            readiness: LastReadiness::default(),
            openapi: openapi_json().into(),
        }
    }

    /// The first one counts.
    pub(crate) fn set_webhooks(&self, desk: WebhookDesk) {
        self.webhooks.get_or_init(|| desk);
    }

    /// The first one counts.
    pub(crate) fn set_queue(&self, desk: QueueDesk) {
        self.queue.get_or_init(|| desk);
    }

    pub(crate) fn queue(&self) -> Option<&QueueDesk> {
        self.queue.get()
    }

    pub(crate) fn webhooks(&self) -> Option<&WebhookDesk> {
        self.webhooks.get()
    }
}

/// A call whose key was good and whose body is here.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    /// The request's JSON text, not yet looked at.
    pub(crate) text: Bytes,
    pub(crate) answers: Arc<Answers>,
    /// What posts webhooks.
    pub(crate) webhooks: Option<WebhookDesk>,
    /// Where to do long work; `None` if the call is there already.
    aside: Option<Arc<Aside>>,
    /// What the body holds of the memory for bodies, until the call is done.
    _memory: Memory,
}

impl Call {
    /// Does what takes long off the async threads.
    pub(crate) async fn drive<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        match &self.aside {
            Some(aside) => aside.drive(work).await,
            None => work.await,
        }
    }
}

/// Answers a request with what `handle` makes of it.
pub(crate) async fn answer<T, F, Fut>(door: &Door, request: Request, needed: Scope, handle: F) -> Response
where
    T: Serialize + Send + 'static,
    F: FnOnce(Call) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send,
{
    let info = info(&request);
    let (parts, body) = request.into_parts();
    let mut known = None;
    let outcome = async {
        let caller = admit(door, &info, &parts, needed).await?;
        let caller = known.insert(caller).clone();
        let body = door.bodies.read(body).await?;
        let is_large = body.bytes.len() > LARGE_BYTES;
        let (app, answers) = (door.app.clone(), Arc::clone(&door.answers));
        let webhooks = door.webhooks().cloned();
        let aside = (!is_large).then(|| Arc::clone(&door.aside));
        let work = async move {
            let text = params::find(&parts, body.bytes).await?;
            let headers = parts.headers;
            handle(Call { app, caller, headers, text, answers, webhooks, aside, _memory: body.memory }).await
        };
        if is_large { door.aside.drive(Box::pin(work)).await } else { work.await }
    };
    let outcome = outcome.await;
    envelope::respond(&info, known.as_ref(), &door.answers, outcome).await
}

/// An address under `/api/` that is no endpoint.
pub(crate) async fn unknown(request: Request) -> Response {
    envelope::failed(&info(&request), Reason::UnknownEndpoint.into())
}

fn info(request: &Request) -> RequestInfo {
    request.extensions().get::<RequestInfo>().expect("the boundary puts it into every request").clone()
}

async fn admit(door: &Door, info: &RequestInfo, request: &Parts, needed: Scope) -> Result<Caller, Failure> {
    if ![Method::POST, Method::GET, Method::PUT, Method::PATCH].contains(&request.method) {
        return Err(Reason::WrongMethod(request.method.clone()).into());
    }
    if door.app.is_in_maintenance().await? {
        return Err(Reason::Maintenance.into());
    }
    auth::authenticate(&door.app, &request.headers, info.peer, needed).await
}

#[cfg(test)]
mod tests {
    use std::thread;

    use axum::body::Body;
    use http_body_util::BodyExt;
    use postroad_app::Peer;
    use postroad_model::{DomainName, Limits, SystemClock};
    use postroad_store::{Database, Role, Store};
    use tempfile::TempDir;

    use super::*;

    async fn open_app(folder: &TempDir) -> App {
        let settings = postroad_store::Settings {
            database: Database::Sqlite(folder.path().join("postroad.db")),
            disk_reserve_bytes: 0,
            reader_threads: 1,
            postgres_connections: 1,
            postgres_ca_file: None,
        };
        let clock = Arc::new(SystemClock);
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, clock.clone()).await.unwrap();
        App::new(store, clock, Limits::default(), DomainName::parse("mail.example.test").unwrap())
    }

    #[tokio::test]
    async fn large_requests_are_read_and_done_on_another_thread() {
        let folder = TempDir::new().unwrap();
        let app = open_app(&folder).await;
        let key = app.dev_setup().await.unwrap().api_key;
        let door = Door::new(app, &Settings::default());
        let peer = Peer { address: [127, 0, 0, 1].into(), tls: false };
        let here = thread::current().id();
        for (bytes, is_here) in [(LARGE_BYTES, true), (LARGE_BYTES + 1, false)] {
            let mut request = Request::post("/").header("x-server-api-key", &key);
            request.extensions_mut().unwrap().insert(RequestInfo::new(&HeaderMap::new(), peer));
            let request = request.body(Body::from(vec![b' '; bytes])).unwrap();
            let handle = move |call: Call| async move {
                let data = (call.text.len(), thread::current().id() == here);
                Success::with_warnings(Ok(data), Vec::new())
            };
            let response = answer(&door, request, Scope::Send, handle).await;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let envelope: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(envelope["data"], serde_json::json!([bytes, is_here]));
        }
    }
}
