//! Stored message bodies, compressed with zstd. The task that submits a message compresses its body, once.

use std::cell::RefCell;
use std::io;

use bytes::Bytes;
use postroad_boxed_futures::boxed_futures;
use postroad_model::{SendId, ServerId};
use zstd::bulk::Compressor;

use crate::error::StoreError;
use crate::{Engine, Result, Store};

/// The fastest ordinary level: compression is the largest single cost of an accept. The compressors of most higher
/// levels are not compiled in (`CFLAGS` in .cargo/config.toml); zstd would use the compressor of level 1 instead.
const LEVEL: i32 = 1;
/// SQLite: compressed bodies up to this size are stored in the database, larger ones in files.
pub(crate) const INLINE_BYTES_MAX: usize = 64 << 10;
/// For uncompressed bodies from this size on, the length of the output buffer is estimated. Otherwise zstd allocates as
/// much as the message itself, and both together exceed the memory limit of a request.
const ESTIMATED_BYTES_MIN: usize = 512 << 10;
/// Length of each sample from which the compressed length is estimated.
const SAMPLE_BYTES: usize = 16 << 10;
/// For uncompressed bodies below `ESTIMATED_BYTES_MIN`, unused buffer space beyond this is freed: a batch holds
/// hundreds of bodies.
const UNUSED_BYTES_MAX: usize = 4 << 10;

thread_local! {
    /// The compressor is reused, because creating and clearing its tables of a few hundred kB costs as much as
    /// compressing 10 kB.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// A message body ready to be stored, with the original for immediate delivery.
#[derive(Debug, Clone)]
pub struct StoredBody {
    original: Bytes,
    compressed: Bytes,
}

impl StoredBody {
    pub fn compress(message: impl Into<Bytes>) -> Result<Self, StoreError> {
        let original = message.into();
        let compressed = COMPRESSOR.with_borrow_mut(|compressor| match compressor {
            Some(compressor) => compress_with(compressor, &original),
            None => compress_with(compressor.insert(Compressor::new(LEVEL)?), &original),
        });
        let compressed = compressed.map_err(|e| StoreError::Internal(format!("compressing a body: {e}")))?;
        Ok(Self { original, compressed: compressed.into() })
    }

    pub(crate) fn into_original(self) -> Bytes {
        self.original
    }

    pub fn compressed_bytes(&self) -> usize {
        self.compressed.len()
    }

    pub(crate) fn compressed(&self) -> &Bytes {
        &self.compressed
    }

    /// Whether SQLite stores the body in a file.
    pub(crate) fn is_large(&self) -> bool {
        self.compressed.len() > INLINE_BYTES_MAX
    }
}

fn compress_with(compressor: &mut Compressor<'static>, original: &[u8]) -> io::Result<Vec<u8>> {
    if original.len() < ESTIMATED_BYTES_MIN {
        let mut compressed = compressor.compress(original)?;
        if compressed.capacity() - compressed.len() > UNUSED_BYTES_MAX {
            compressed.shrink_to_fit();
        }
        return Ok(compressed);
    }
    // Samples from the beginning, middle and end: an attachment compresses differently from the text before it.
    let starts = [0, original.len() / 2, original.len() - SAMPLE_BYTES];
    let mut sampled = 0;
    for start in starts {
        sampled = compressor.compress(&original[start..start + SAMPLE_BYTES])?.len().max(sampled);
    }
    let estimate = (original.len() / SAMPLE_BYTES + 1) * (sampled + sampled / 16);
    let mut compressed = Vec::with_capacity(estimate);
    match compressor.compress_to_buffer(original, &mut compressed) {
        Ok(_) => Ok(compressed),
        // The body compresses worse than the samples.
        Err(_) => compressor.compress(original),
    }
}

/// Decompresses a body. `size` comes from the send's row, so that a damaged body cannot cause a larger allocation.
pub(crate) fn decompress(compressed: &[u8], size: u64) -> Result<Vec<u8>, StoreError> {
    let message = zstd::bulk::decompress(compressed, size as usize)
        .map_err(|e| StoreError::Internal(format!("a stored body is damaged: {e}")))?;
    if message.len() as u64 != size {
        return Err(StoreError::Internal("a stored body has another size than its row says".into()));
    }
    Ok(message)
}

#[boxed_futures]
impl Store {
    /// The body of a send with unfinished messages. Such a body is never removed. `size` is from the send's row.
    pub async fn read_body(&self, server_id: ServerId, send_id: SendId, size: u64) -> Result<Vec<u8>> {
        let found = self.find_body(server_id, send_id, size).await?;
        found.ok_or_else(|| StoreError::Internal(format!("send {send_id} has no body")))
    }

    /// The body of any send; `None` if it was removed or erased: a body may be gone while its messages are kept. The
    /// caller must have checked that the send belongs to the server: on SQLite this function does not.
    pub async fn find_body(
        &self,
        server_id: ServerId,
        send_id: SendId,
        size: u64,
    ) -> Result<Option<Vec<u8>>> {
        let compressed = match &*self.engine {
            Engine::Sqlite { engine, .. } => engine.body(send_id).await?,
            Engine::Postgres(engine) => engine.body(server_id, send_id, size).await?,
        };
        compressed.map(|compressed| decompress(&compressed, size)).transpose()
    }
}
