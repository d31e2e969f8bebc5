//! Steps of every call: method, maintenance, key, permit, body, JSON, the endpoint's handler, envelope.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, TryFutureExt as _};
use postroad_app::access::{Effect, Operation};
use postroad_app::accounts::Requester;
use postroad_app::{App, Caller};
use postroad_delivery::QueueAdmin;
use postroad_events::WebhookTester;
use postroad_net::limits::{FairPermit, FairPool};

use crate::answer_writer::AnswerWriter;
use crate::auth::{AuthRejection, Authenticate};
use crate::blocking_pool::BlockingPool;
use crate::body::{BodyMemory, BodyReader};
use crate::envelope::{self, Payload, Success};
use crate::failure::{Failure, Reason};
use crate::memory::{SMALL_BYTES_MAX, Share};
use crate::request_info::RequestInfo;
use crate::state::ApiState;
use crate::tenant::Tenant;
use crate::{params, permit_body};

/// Methods that an endpoint accepts, comma-separated as in the header Allow.
fn allowed_methods(operation: Operation) -> &'static str {
    match operation {
        // Clients of Postal's API call these four endpoints with any of these methods.
        Operation::SendMessage
        | Operation::SendRaw
        | Operation::MessagesMessage
        | Operation::MessagesDeliveries => "POST, GET, PUT, PATCH",
        _ => "POST",
    }
}

/// Authenticated call with its body: by a server's key, or by any key (`AccountCall`).
#[derive(Debug)]
pub(crate) struct Call<C = Caller> {
    pub(crate) app: App,
    pub(crate) caller: C,
    /// The tenant whose shares the call uses.
    tenant: Tenant,
    pub(crate) headers: HeaderMap,
    /// JSON of the request, not parsed yet.
    pub(crate) body: Bytes,
    pub(crate) answer_writer: Arc<AnswerWriter>,
    /// Posts sample events, if the webhook worker runs in this process.
    pub(crate) webhook_tester: Option<WebhookTester>,
    /// Delivery engine, if it runs in this process.
    pub(crate) queue: Option<QueueAdmin>,
    /// Permits for long work, by tenant: see `ApiState`.
    sample_permits: Arc<FairPool<Tenant>>,
    batch_permits: Arc<FairPool<Tenant>>,
    schedule_change_permits: Arc<FairPool<Tenant>>,
    /// Runs long work; `None` if the call already runs on a blocking thread.
    blocking_pool: Option<Arc<BlockingPool>>,
    /// Memory of the body, held until the call is done.
    memory: BodyMemory,
    body_reader: Arc<BodyReader>,
}

/// Call by a key of the operator, of an account or of a server.
pub(crate) type AccountCall = Call<Requester>;

impl<C> Call<C> {
    /// Whether the body is so large that the handler should free it once it is parsed.
    pub(crate) fn is_large(&self) -> bool {
        self.body.len() > SMALL_BYTES_MAX
    }

    /// Frees the request's body but keeps its memory reserved, for the values read from it.
    pub(crate) fn free_body(&mut self) {
        self.body = Bytes::new();
    }

    /// Frees the request and its memory, for calls that wait long before they answer.
    pub(crate) fn free_request(&mut self) {
        self.body = Bytes::new();
        self.headers = HeaderMap::new();
        self.memory = BodyMemory::default();
    }

    /// Takes the request's body. Its memory stays reserved.
    pub(crate) fn take_body(&mut self) -> Bytes {
        std::mem::take(&mut self.body)
    }

    /// Reserves memory for a request and the values made from it; 503 if none becomes free in time.
    pub(crate) async fn grow_memory(&mut self, bytes: usize) -> Result<(), Failure> {
        self.body_reader.grow(self.tenant, &mut self.memory, bytes).await
    }

    /// Waits for a permit to post a sample event. Each tenant has few of them; 503 if none becomes free in time.
    pub(crate) async fn sample_permit(&self) -> Result<FairPermit, Failure> {
        let permit = self.sample_permits.acquire(self.tenant, 1).await;
        permit.ok_or_else(|| Reason::Unavailable("too many samples are being posted".into()).into())
    }

    /// Waits for a permit to change many scheduled messages. Each tenant has few of them; 503 if none becomes free in
    /// time.
    pub(crate) async fn schedule_change_permit(&self) -> Result<FairPermit, Failure> {
        let permit = self.schedule_change_permits.acquire(self.tenant, 1).await;
        let full =
            || Reason::Unavailable("too many changes of scheduled messages are in progress".into()).into();
        permit.ok_or_else(full)
    }

    /// Waits for a permit to work on a batch. Each tenant has few of them; 503 if none becomes free in time.
    pub(crate) async fn batch_permit(&self) -> Result<FairPermit, Failure> {
        let permit = self.batch_permits.acquire(self.tenant, 1).await;
        permit.ok_or_else(|| Reason::Unavailable("too many batches are in progress".into()).into())
    }

    /// Reserves memory for an answer that needs `bytes` to build; `None` for a small one.
    pub(crate) async fn reserve_answer(&self, bytes: usize) -> Result<Option<Share>, Failure> {
        self.answer_writer.reserve(self.tenant, bytes).await
    }

    /// Runs long work off the async threads.
    pub(crate) async fn run_blocking<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        match &self.blocking_pool {
            Some(blocking_pool) => blocking_pool.run(self.tenant, work).await,
            None => work.await,
        }
    }
}

/// Handler of an endpoint as one type, so that the code around it is compiled once for each kind of caller.
pub(crate) type Handler<C> =
    Arc<dyn Fn(Call<C>) -> BoxFuture<'static, Result<Success<Box<dyn Payload>>, Failure>> + Send + Sync>;

/// Boxes the handler of an endpoint.
pub(crate) fn box_handler<C, T, F, Fut>(handle: F) -> Handler<C>
where
    T: Payload + 'static,
    F: Fn(Call<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Success<T>, Failure>> + Send + 'static,
{
    Arc::new(move |call| handle(call).map_ok(Success::box_payload).boxed())
}

/// Answers a request with the result of `handle`.
pub(crate) async fn answer<C: Authenticate>(
    state: &ApiState,
    request: Request,
    operation: Operation,
    handle: Handler<C>,
) -> Response {
    let info = request_info(&request);
    let (parts, body) = request.into_parts();
    let caller = match authenticate::<C>(state, &info, &parts, operation).await {
        Ok(caller) => caller,
        Err(AuthRejection { failure, delay }) => {
            // A delayed caller holds no request in memory.
            drop((parts, body));
            tokio::time::sleep(delay).await;
            return envelope::failure_response(&info, &failure);
        }
    };
    let tenant = caller.tenant();
    let logged_caller = caller.logged_caller();
    let Some(permit) = state.call_permits.acquire(tenant, 1).await else {
        let cause = "too many calls of one tenant are in progress".to_owned();
        let full = Err(Reason::Unavailable(cause).into());
        return envelope::respond(&info, (tenant, logged_caller), &state.answer_writer, full).await;
    };
    let outcome = async {
        let is_batch = operation == Operation::SendBatch;
        let body = if is_batch {
            state.body_reader.read_batch(tenant, body).await?
        } else {
            state.body_reader.read(tenant, body).await?
        };
        let is_long = is_batch || body.bytes.len() > SMALL_BYTES_MAX;
        let (body_reader, batch_permits) = (Arc::clone(&state.body_reader), Arc::clone(&state.batch_permits));
        let schedule_change_permits = Arc::clone(&state.schedule_change_permits);
        let (app, answer_writer) = (state.app.clone(), Arc::clone(&state.answer_writer));
        let (webhook_tester, sample_permits) =
            (state.webhook_tester().cloned(), Arc::clone(&state.sample_permits));
        let blocking_pool = (!is_long).then(|| Arc::clone(&state.blocking_pool));
        let queue = state.queue().cloned();
        let work = async move {
            let memory = body.memory;
            let body = params::read_json_text(&parts, body.bytes).await?;
            let headers = parts.headers;
            let call = Call {
                app,
                caller,
                tenant,
                headers,
                body,
                answer_writer,
                webhook_tester,
                queue,
                sample_permits,
                batch_permits,
                schedule_change_permits,
                blocking_pool,
                memory,
                body_reader,
            };
            handle(call).await
        };
        if is_long { state.blocking_pool.run(tenant, Box::pin(work)).await } else { work.await }
    };
    let mut outcome = outcome.await;
    if let Ok(success) = &mut outcome {
        // Sends and changes have an effect that the caller must learn; only changes concern delivery's setup.
        if operation.effect() != Effect::Read {
            success.memory.exempt();
        }
        if operation.effect() == Effect::Change {
            refresh_delivery(state).await;
        }
    }
    let response = envelope::respond(&info, (tenant, logged_caller), &state.answer_writer, outcome).await;
    // The permit is held until the answer is sent.
    response.map(|body| permit_body::attach(body, permit))
}

/// Makes delivery read the change: messages accepted after the answer follow the new rates, suspensions and pools.
async fn refresh_delivery(state: &ApiState) {
    let Some(queue) = state.queue() else { return };
    if let Err(error) = queue.refresh().await {
        tracing::warn!(%error, "delivery could not read a change at once; it reads it within seconds");
    }
}

/// Answers a path under `/api/` that is not an endpoint.
pub(crate) async fn answer_unknown_path(request: Request) -> Response {
    envelope::failure_response(&request_info(&request), &Reason::UnknownEndpoint.into())
}

/// Answers a wrong method on a path that accepts only GET and HEAD.
pub(crate) async fn answer_wrong_method(request: Request) -> Response {
    let reason = Reason::MethodNotAllowed(request.method().clone(), "GET, HEAD");
    envelope::failure_response(&request_info(&request), &reason.into())
}

fn request_info(request: &Request) -> RequestInfo {
    request.extensions().get::<RequestInfo>().expect("the boundary puts it into every request").clone()
}

async fn authenticate<C: Authenticate>(
    state: &ApiState,
    info: &RequestInfo,
    request: &Parts,
    operation: Operation,
) -> Result<C, AuthRejection> {
    let methods = allowed_methods(operation);
    if !methods.split(", ").any(|method| method == request.method.as_str()) {
        return Err(Reason::MethodNotAllowed(request.method.clone(), methods).into());
    }
    if state.app.is_in_maintenance().await.map_err(Failure::from)? {
        return Err(Reason::Maintenance.into());
    }
    C::authenticate(&state.app, &request.headers, info.peer, operation).await
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use axum::body::Body;
    use http_body_util::BodyExt;
    use postroad_app::Peer;
    use postroad_model::{DomainName, Limits, ServerId, SystemClock};
    use postroad_store::{Database, Role, Store};
    use tempfile::TempDir;

    use super::*;
    use crate::Settings;

    async fn open_app(folder: &TempDir) -> App {
        let settings = postroad_store::Settings::small(Database::Sqlite(folder.path().join("postroad.db")));
        let clock = Arc::new(SystemClock);
        let role = Role::Node { identity: "test".into() };
        let store = Store::open(settings, role, clock.clone()).await.unwrap();
        App::new(store, clock, Limits::default(), DomainName::parse("mail.example.test").unwrap())
    }

    #[tokio::test]
    async fn large_requests_are_processed_on_a_blocking_thread() {
        let folder = TempDir::new().unwrap();
        let app = open_app(&folder).await;
        let key = app.dev_setup().await.unwrap().api_key;
        let state = ApiState::new(app, &Settings::default());
        let here = thread::current().id();
        for (bytes, is_here) in [(SMALL_BYTES_MAX, true), (SMALL_BYTES_MAX + 1, false)] {
            let request = request_with_key(&key, vec![b' '; bytes]);
            let handle = move |call: Call| async move {
                let data = (call.body.len(), thread::current().id() == here);
                Success::with_warnings(Ok(data), Vec::new())
            };
            let response = answer(&state, request, Operation::SendMessage, box_handler(handle)).await;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let envelope: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(envelope["data"], serde_json::json!([bytes, is_here]));
        }
    }

    #[tokio::test]
    async fn a_change_is_answered_even_if_no_memory_for_answers_is_free() {
        let folder = TempDir::new().unwrap();
        let app = open_app(&folder).await;
        let key = app.dev_setup().await.unwrap().api_key;
        let mut settings = Settings { in_flight_bytes_max: 1, ..Settings::default() };
        settings.times.memory_wait = Duration::from_millis(1);
        let state = ApiState::new(app, &settings);
        // Two other servers hold all memory for answers, half of it each.
        let others =
            [ServerId(1_001), ServerId(1_002)].map(|server| state.answer_writer.reserve(server, 1 << 20));
        let reserved = futures_util::future::try_join_all(others).await.unwrap();
        for (operation, status) in [
            (Operation::SuppressionsList, 503),
            (Operation::SuppressionsAdd, 200),
            (Operation::SendCancel, 200),
        ] {
            let handle =
                |_: Call| async { Success::with_warnings(Ok("x".repeat(SMALL_BYTES_MAX / 4)), Vec::new()) };
            let response =
                answer(&state, request_with_key(&key, Vec::new()), operation, box_handler(handle)).await;
            assert_eq!(response.status(), status, "{operation:?}");
        }
        drop(reserved);
    }

    fn request_with_key(key: &str, body: Vec<u8>) -> Request {
        let peer = Peer { address: [127, 0, 0, 1].into(), tls: false };
        let mut request = Request::post("/").header("x-server-api-key", key);
        request.extensions_mut().unwrap().insert(RequestInfo::new(&HeaderMap::new(), peer));
        request.body(Body::from(body)).unwrap()
    }
}
