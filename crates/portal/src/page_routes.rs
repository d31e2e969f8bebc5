//! Routes of pages and forms. axum's own handlers make the compiler generate the reading of the arguments, and dozens
//! of functions around it, for each handler. The portal has two hundred: here all are of one type, and the arguments
//! are read by one function for each list of types.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use futures_util::future::BoxFuture;

use crate::answer::Answer;
use crate::state::PortalState;

type State = Arc<PortalState>;

/// A page or a download.
pub(crate) fn get<M: 'static, A: Arguments<M>>(page: impl Page<A> + 'static) -> MethodRouter<State> {
    axum::routing::get(handler(Arc::new(page)))
}

/// A form.
pub(crate) fn post<M: 'static, A: Arguments<M>>(page: impl Page<A> + 'static) -> MethodRouter<State> {
    axum::routing::post(handler(Arc::new(page)))
}

/// Adds the form of a page to its route.
pub(crate) trait AndPost {
    fn and_post<M: 'static, A: Arguments<M>>(self, page: impl Page<A> + 'static) -> Self;
}

impl AndPost for MethodRouter<State> {
    fn and_post<M: 'static, A: Arguments<M>>(self, page: impl Page<A> + 'static) -> Self {
        self.post(handler(Arc::new(page)))
    }
}

/// A function that answers a request, by the tuple of its arguments: an `async fn` with `#[boxed_future]`.
pub(crate) trait Page<A>: Send + Sync {
    fn answer(&self, arguments: A) -> BoxFuture<'static, Answer>;
}

/// What a page takes: parts of the request first, and last what may need its body. `M` tells apart the two ways in
/// which axum reads the last.
pub(crate) trait Arguments<M>: Sized + Send + 'static {
    /// The answer to the request if it has no such arguments is the error.
    fn read(request: Request, state: &State) -> impl Future<Output = Result<Self, Response>> + Send;
}

macro_rules! pages_with {
    ($($part:ident)* => $last:ident) => {
        impl<Function, $($part,)* $last> Page<($($part,)* $last,)> for Function
        where
            Function: Fn($($part,)* $last) -> BoxFuture<'static, Answer> + Send + Sync,
        {
            #[expect(non_snake_case, reason = "the macro names each argument as its type")]
            fn answer(&self, ($($part,)* $last,): ($($part,)* $last,)) -> BoxFuture<'static, Answer> {
                self($($part,)* $last)
            }
        }

        impl<M, $($part,)* $last> Arguments<M> for ($($part,)* $last,)
        where
            $($part: FromRequestParts<State> + Send + 'static,)*
            $last: FromRequest<State, M> + Send + 'static,
        {
            #[allow(unused_mut, non_snake_case, reason = "the macro names each argument as its type; some have one only")]
            async fn read(request: Request, state: &State) -> Result<Self, Response> {
                let (mut parts, body) = request.into_parts();
                $(let $part = $part::from_request_parts(&mut parts, state).await.map_err(IntoResponse::into_response)?;)*
                let request = Request::from_parts(parts, body);
                let $last = $last::from_request(request, state).await.map_err(IntoResponse::into_response)?;
                Ok(($($part,)* $last,))
            }
        }
    };
}

pages_with!(=> Last);
pages_with!(First => Last);
pages_with!(First Second => Last);

#[derive(Clone)]
struct BoxedHandler {
    call: Arc<dyn Fn(Request, State) -> BoxFuture<'static, Response> + Send + Sync>,
}

/// Not a method of the page's type: it is compiled once for each list of arguments.
fn handler<M: 'static, A: Arguments<M>>(page: Arc<dyn Page<A>>) -> BoxedHandler {
    BoxedHandler { call: Arc::new(move |request, state| Box::pin(answer(Arc::clone(&page), request, state))) }
}

async fn answer<M: 'static, A: Arguments<M>>(
    page: Arc<dyn Page<A>>,
    request: Request,
    state: State,
) -> Response {
    match A::read(request, &state).await {
        Ok(arguments) => page.answer(arguments).await.into_response(),
        Err(response) => response,
    }
}

impl Handler<(), State> for BoxedHandler {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: State) -> Self::Future {
        (self.call)(request, state)
    }
}
