//! Runs the same simulation with many seeds, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// Number of seeds; `cargo xtask bench pacing` sets it. Tests use fewer.
const SEEDS_VARIABLE: &str = "POSTROAD_PACING_SEEDS";

/// Number of seeds that the benchmark wants; `None` in tests.
pub(super) fn bench_seed_count() -> Option<u64> {
    std::env::var(SEEDS_VARIABLE).ok().and_then(|text| text.parse().ok())
}

/// Runs `play` with every seed. Returns the results in the order of the seeds.
pub(super) fn play_all<T: Send>(seeds: &[u64], play: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(seeds.len())));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = seeds.get(at) else { break };
            let result = play(*seed);
            results.lock().push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(seeds.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
