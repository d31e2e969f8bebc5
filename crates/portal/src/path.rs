//! Parameters in the path of a page. A path whose parameters cannot be parsed gets 404, like
//! any other unknown path.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

pub(crate) struct Path<T>(pub(crate) T);

impl<T, S> FromRequestParts<S> for Path<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found.map(|axum::extract::Path(value)| Self(value)).map_err(|_| Problem::NotFound)
    }
}
