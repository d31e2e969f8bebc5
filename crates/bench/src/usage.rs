//! CPU time of a system's processes, including ended ones, and the peak of their total memory.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// The processes count as idle after this time in which they used at most a tenth of a core.
const IDLE_FOR: Duration = Duration::from_millis(3_500);
const IDLE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Clock ticks of /proc; Linux has used this value for decades.
const TICKS_PER_SECOND: u64 = 100;

pub(super) struct Usage {
    roots: Vec<u32>,
    cpu_before: Duration,
    peak: Arc<AtomicU64>,
    is_ended: Arc<AtomicBool>,
    sampler: JoinHandle<()>,
}

pub(super) struct UsageTotals {
    pub(super) cpu: Duration,
    peak_memory_bytes: u64,
}

impl UsageTotals {
    pub(super) fn peak_memory_mib(&self) -> f64 {
        self.peak_memory_bytes as f64 / f64::from(1 << 20)
    }
}

impl Usage {
    pub(super) fn begin(roots: Vec<u32>) -> anyhow::Result<Self> {
        let (peak, is_ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let cpu_before = cpu(&roots)?;
        let sampler = thread::spawn({
            let (roots, peak, is_ended) = (roots.clone(), Arc::clone(&peak), Arc::clone(&is_ended));
            move || {
                while !is_ended.load(Ordering::Relaxed) {
                    peak.fetch_max(memory_bytes(&roots), Ordering::Relaxed);
                    thread::sleep(SAMPLE_EVERY);
                }
            }
        });
        Ok(Self { roots, cpu_before, peak, is_ended, sampler })
    }

    /// Ends the measurement when the processes are idle, so that it includes deferred work such as counting events.
    pub(super) async fn end_when_idle(self) -> anyhow::Result<UsageTotals> {
        let deadline = Instant::now() + IDLE_WAIT_MAX;
        let (mut last_cpu, mut idle_since) = (cpu(&self.roots)?, Instant::now());
        while idle_since.elapsed() < IDLE_FOR && Instant::now() < deadline {
            tokio::time::sleep(SAMPLE_EVERY).await;
            let cpu_now = cpu(&self.roots)?;
            if cpu_now.saturating_sub(last_cpu) > SAMPLE_EVERY / 10 {
                idle_since = Instant::now();
            }
            last_cpu = cpu_now;
        }
        self.end()
    }

    pub(super) fn end(self) -> anyhow::Result<UsageTotals> {
        self.is_ended.store(true, Ordering::Relaxed);
        let cpu = cpu(&self.roots)?.saturating_sub(self.cpu_before);
        // The sampler only sleeps and reads, so it does not panic.
        let _ = self.sampler.join();
        Ok(UsageTotals { cpu, peak_memory_bytes: self.peak.load(Ordering::Relaxed) })
    }
}

/// Ids of `roots` and all their descendants.
fn processes_of(roots: &[u32]) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(fields) = stat(pid)
            && let Some(parent) = fields.get(1).and_then(|parent| parent.parse().ok())
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut unvisited) = (HashSet::new(), roots.to_vec());
    while let Some(pid) = unvisited.pop() {
        if found.insert(pid) {
            unvisited.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Fields of /proc/PID/stat after the command: state, parent, …
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// CPU time of running processes, and of ended ones that were waited for.
fn cpu(roots: &[u32]) -> anyhow::Result<Duration> {
    let mut ticks = 0;
    for pid in processes_of(roots) {
        // A process that just ended is counted with its parent.
        let Some(fields) = stat(pid) else { continue };
        for field in &fields[11..15] {
            ticks += field.parse::<u64>().context("a number of ticks")?;
        }
    }
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

/// Memory of the processes; shared memory is counted once (PSS).
fn memory_bytes(roots: &[u32]) -> u64 {
    let of = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    processes_of(roots).into_iter().filter_map(of).sum::<u64>() * 1_024
}
