//! Cache of compiled templates, bounded by size. A version never changes, so a cached version is never stale. The
//! number of the published version is read again every two seconds, like other settings.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use postroad_model::{ServerId, TemplateId};

use super::compiled::CompiledTemplate;

/// Maximum total size of the cached templates.
const BYTES_MAX: usize = 64 << 20;

/// Server, template and version.
type Key = (ServerId, TemplateId, i64);

#[derive(Debug, Default)]
pub(super) struct CompiledCache {
    kept: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    entries: HashMap<Key, (Arc<CompiledTemplate>, u64)>,
    bytes: usize,
    /// Counts uses, to find the least recently used entry.
    uses: u64,
}

impl CompiledCache {
    pub(super) fn find(&self, key: Key) -> Option<Arc<CompiledTemplate>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let now = kept.uses;
        let (compiled, used) = kept.entries.get_mut(&key)?;
        *used = now;
        Some(Arc::clone(compiled))
    }

    pub(super) fn put(&self, key: Key, compiled: Arc<CompiledTemplate>) {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let now = kept.uses;
        kept.bytes += compiled.bytes;
        if let Some((before, _)) = kept.entries.insert(key, (compiled, now)) {
            kept.bytes -= before.bytes;
        }
        while kept.bytes > BYTES_MAX && kept.entries.len() > 1 {
            let oldest = kept.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some((removed, _)) = oldest.and_then(|oldest| kept.entries.remove(&oldest)) else { break };
            kept.bytes -= removed.bytes;
        }
    }
}
