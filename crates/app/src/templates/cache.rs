//! Cache of compiled templates, bounded by size. A version never changes, so a cached version is never stale. The
//! number of the published version is read again every two seconds, like other settings.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::{ServerId, TemplateId};

use super::compiled::CompiledTemplate;

/// Maximum total size of the cached templates.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// Server, template and version.
type Key = (ServerId, TemplateId, i64);

#[derive(Debug, Default)]
pub(super) struct CompiledCache {
    cache: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    /// Each template with the number of its last use.
    entries: HashMap<Key, (Arc<CompiledTemplate>, u64)>,
    bytes: usize,
    /// Counts uses, to find the least recently used entry.
    uses: u64,
}

impl CompiledCache {
    pub(super) fn find(&self, key: Key) -> Option<Arc<CompiledTemplate>> {
        let mut cache = self.cache.lock();
        cache.uses += 1;
        let use_number = cache.uses;
        let (compiled, used) = cache.entries.get_mut(&key)?;
        *used = use_number;
        Some(Arc::clone(compiled))
    }

    pub(super) fn put(&self, key: Key, compiled: Arc<CompiledTemplate>) {
        let mut cache = self.cache.lock();
        cache.uses += 1;
        let use_number = cache.uses;
        cache.bytes += compiled.bytes;
        if let Some((before, _)) = cache.entries.insert(key, (compiled, use_number)) {
            cache.bytes -= before.bytes;
        }
        while cache.bytes > CACHE_BYTES_MAX && cache.entries.len() > 1 {
            let oldest = cache.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some((removed, _)) = oldest.and_then(|oldest| cache.entries.remove(&oldest)) else { break };
            cache.bytes -= removed.bytes;
        }
    }
}
