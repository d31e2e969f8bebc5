//! The way of every call: maintenance, key, body, JSON, the endpoint's own work, envelope.

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use postroad_app::{App, Caller};
use postroad_model::Scope;
use serde::Serialize;

use crate::body::{Bodies, Memory};
use crate::boundary::RequestInfo;
use crate::envelope::{self, Success};
use crate::failure::{Failure, Reason};
use crate::{auth, params};

/// What endpoints work with.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) app: App,
    pub(crate) bodies: Bodies,
    /// The OpenAPI document, written once.
    pub(crate) openapi: Bytes,
}

/// A call whose key was good and whose body is here.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    /// The request's JSON text, not yet looked at.
    pub(crate) text: Bytes,
    /// What the body holds of the memory for bodies, until the call is done.
    _memory: Memory,
}

/// Answers a request with what `handle` makes of it.
pub(crate) async fn answer<T, F, Fut>(door: &Door, request: Request, needed: Scope, handle: F) -> Response
where
    T: Serialize,
    F: FnOnce(Call) -> Fut,
    Fut: Future<Output = Result<Success<T>, Failure>>,
{
    let info = info(&request);
    let (parts, body) = request.into_parts();
    let mut known = None;
    let outcome = async {
        let caller = admit(door, &info, &parts, needed).await?;
        let caller = known.insert(caller).clone();
        let body = door.bodies.read(body).await?;
        let text = params::find(&parts, body.bytes).await?;
        let (app, headers) = (door.app.clone(), parts.headers);
        handle(Call { app, caller, headers, text, _memory: body.memory }).await
    };
    let outcome = outcome.await;
    envelope::respond(&info, known.as_ref(), outcome)
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
