//! Response body that holds a permit, or another value that is released by dropping it, until the body is sent.
//!
//! Each piece holds the permit too, because hyper drops an HTTP/2 body when it takes the last piece, even if the
//! client's window has room for one byte only.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Returns the same body; `permit` is dropped with the body and the last of its pieces.
pub(crate) fn attach<T: Send + Sync + 'static>(body: Body, permit: T) -> Body {
    Body::new(PermitBody { body, permit: Arc::new(permit) })
}

/// Returns the same bytes; `permit` lives as long as these bytes do.
pub(crate) fn attach_to_bytes<T: Send + Sync + 'static>(bytes: Bytes, permit: Arc<T>) -> Bytes {
    Bytes::from_owner(PermitBytes { bytes, _permit: permit })
}

struct PermitBytes<T> {
    bytes: Bytes,
    _permit: Arc<T>,
}

impl<T> AsRef<[u8]> for PermitBytes<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct PermitBody<T> {
    body: Body,
    permit: Arc<T>,
}

impl<T: Send + Sync + 'static> HttpBody for PermitBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let attach_permit =
            |frame: Frame<Bytes>| frame.map_data(|data| attach_to_bytes(data, Arc::clone(&self.permit)));
        Poll::Ready(frame.map(|frame| frame.map(attach_permit)))
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
    async fn the_permit_is_dropped_with_the_last_piece() {
        let permit = Arc::new(());
        let mut body = attach(Body::from("x"), Arc::clone(&permit));
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert_eq!((&piece[..], Arc::strong_count(&permit)), (&b"x"[..], 2));
        drop(piece);
        assert_eq!(Arc::strong_count(&permit), 1);
    }
}
