//! Routes of pages and forms. All handlers are boxed into one type: axum compiles dozens of functions for each type
//! of handler, and the portal has two hundred handlers.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;
use futures_util::future::BoxFuture;

use crate::state::PortalState;

type State = Arc<PortalState>;

/// Route of a page or a download.
pub(crate) fn get<H, T>(handler: H) -> MethodRouter<State>
where
    H: Handler<T, State> + Sync,
    T: 'static,
{
    axum::routing::get(BoxedHandler::new(handler))
}

/// Route to which a form is posted.
pub(crate) fn post<H, T>(handler: H) -> MethodRouter<State>
where
    H: Handler<T, State> + Sync,
    T: 'static,
{
    axum::routing::post(BoxedHandler::new(handler))
}

/// Adds the form of a page to its route.
pub(crate) trait AndPost {
    fn and_post<H, T>(self, handler: H) -> Self
    where
        H: Handler<T, State> + Sync,
        T: 'static;
}

impl AndPost for MethodRouter<State> {
    fn and_post<H, T>(self, handler: H) -> Self
    where
        H: Handler<T, State> + Sync,
        T: 'static,
    {
        self.post(BoxedHandler::new(handler))
    }
}

#[derive(Clone)]
struct BoxedHandler {
    call: Arc<dyn Fn(Request, State) -> BoxFuture<'static, Response> + Send + Sync>,
}

impl BoxedHandler {
    fn new<H, T>(handler: H) -> Self
    where
        H: Handler<T, State> + Sync,
        T: 'static,
    {
        Self { call: Arc::new(move |request, state| Box::pin(handler.clone().call(request, state))) }
    }
}

impl Handler<(), State> for BoxedHandler {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: State) -> Self::Future {
        (self.call)(request, state)
    }
}
