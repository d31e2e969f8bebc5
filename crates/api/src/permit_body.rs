//! Response body that holds a value, such as a permit, until the body is sent.
//!
//! Each piece holds the value too, because hyper drops an HTTP/2 body when it takes the last piece, even if the
//! client's window has room for one byte only.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Returns the same body; `held` is dropped with the body and the last of its pieces.
pub(crate) fn hold<T: Send + Sync + 'static>(body: Body, held: T) -> Body {
    Body::new(PermitBody { body, held: Arc::new(held) })
}

/// Returns the same bytes; `held` lives as long as these bytes do.
pub(crate) fn bind<T: Send + Sync + 'static>(bytes: Bytes, held: Arc<T>) -> Bytes {
    Bytes::from_owner(PermitBytes { bytes, _held: held })
}

struct PermitBytes<T> {
    bytes: Bytes,
    _held: Arc<T>,
}

impl<T> AsRef<[u8]> for PermitBytes<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct PermitBody<T> {
    body: Body,
    held: Arc<T>,
}

impl<T: Send + Sync + 'static> HttpBody for PermitBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(
            frame.map(|frame| frame.map(|frame| frame.map_data(|data| bind(data, Arc::clone(&self.held))))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn the_held_value_is_released_with_the_last_piece() {
        let permit = Arc::new(());
        let mut body = hold(Body::from("x"), Arc::clone(&permit));
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert_eq!((&piece[..], Arc::strong_count(&permit)), (&b"x"[..], 2));
        drop(piece);
        assert_eq!(Arc::strong_count(&permit), 1);
    }
}
