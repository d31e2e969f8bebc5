//! The fuzz command: runs targets of `crates/fuzz` under libFuzzer, guided by coverage, on the stable toolchain.
//!
//! The corpus of a run stays in the target folder and speeds up the next run; findings are written beside the corpus.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};
use postroad_test_programs::install;

use crate::cargo::target_folder;

/// The names in `TARGETS` of `crates/fuzz`; a test there finds names that are missing here.
const TARGETS: &[&str] = &[
    "addresses",
    "csv",
    "dns-texts",
    "http",
    "mime",
    "reports",
    "returned",
    "smtp-client",
    "smtp-server",
    "templates",
    "tokens",
];

/// Flags that `cargo fuzz` sets, without the sanitizers, which need the nightly toolchain.
const RUST_FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// An input that takes longer than this is a finding.
const TIMEOUT_SECS: u32 = 10;
const MEMORY_MIB_MAX: u32 = 600;
const INPUT_BYTES_MAX: u32 = 64 << 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Targets to run; all of them if none is named
    #[arg(value_name = "TARGET", value_parser = clap::builder::PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 20.0)]
    minutes: f64,
    /// Targets that run at the same time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

pub(crate) fn run(repository: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    install::ensure_packages(&[("c++", "g++")])?;
    let folder = target_folder(repository).join("fuzz");
    let program = build(repository, &folder)?;
    let targets: Vec<&str> = match options.targets.as_slice() {
        [] => TARGETS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let mut findings = Vec::new();
    for group in targets.chunks(options.jobs.max(1)) {
        let mut running = Vec::new();
        for target in group {
            eprintln!("{target}: {} min", options.minutes);
            running.push((*target, start(&program, &folder, target, options)?));
        }
        for (target, mut child) in running {
            let status = child.wait()?;
            eprintln!(
                "{target}: {}; log: {}",
                last_line(&folder, target)?,
                log_file(&folder, target).display()
            );
            if !status.success() {
                findings.push(target);
            }
        }
    }
    if findings.is_empty() {
        eprintln!("no findings");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("findings in {}: see {}", findings.join(", "), folder.join("findings").display());
    Ok(ExitCode::FAILURE)
}

/// Builds the libFuzzer program. Names the host as target: otherwise cargo would compile the build scripts with
/// `RUST_FLAGS` too.
fn build(repository: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let project = repository.join("crates/fuzz/libfuzzer");
    // With a copy of the workspace's lock file, the dependencies have the same versions; cargo adds libFuzzer's crates.
    std::fs::copy(repository.join("Cargo.lock"), project.join("Cargo.lock"))?;
    let host = host_triple()?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--target", &host]).arg("--target-dir").arg(folder);
    cargo.arg("--manifest-path").arg(project.join("Cargo.toml")).env("RUSTFLAGS", RUST_FLAGS);
    ensure!(cargo.status()?.success(), "the fuzz targets do not build");
    Ok(folder.join(host).join("release/postroad-libfuzzer"))
}

fn host_triple() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("`rustc -vV` names no host"),
    }
}

fn start(
    program: &Path,
    folder: &Path,
    target: &str,
    options: &Options,
) -> anyhow::Result<std::process::Child> {
    let corpus = folder.join("corpus").join(target);
    let findings = folder.join("findings");
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&findings)?;
    let log = std::fs::File::create(log_file(folder, target))?;
    let mut fuzzer = Command::new(program);
    fuzzer.env("POSTROAD_FUZZ_TARGET", target).env("POSTROAD_FUZZ_SEEDS", &corpus);
    fuzzer.arg(&corpus).arg(format!("-max_total_time={}", (options.minutes * 60.0) as u64));
    fuzzer.arg(format!("-timeout={TIMEOUT_SECS}")).arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
    fuzzer.arg(format!("-max_len={INPUT_BYTES_MAX}")).arg("-print_final_stats=1");
    fuzzer.arg(format!("-artifact_prefix={}/{target}-", findings.display()));
    fuzzer.stdout(log.try_clone()?).stderr(log);
    fuzzer.spawn().context("the fuzzer does not start")
}

fn log_file(folder: &Path, target: &str) -> PathBuf {
    folder.join(format!("{target}.log"))
}

/// Last line of libFuzzer's log: statistics, or the finding.
fn last_line(folder: &Path, target: &str) -> anyhow::Result<String> {
    let log = std::fs::read(log_file(folder, target))?;
    let log = String::from_utf8_lossy(&log);
    let is_summary = |line: &&str| line.starts_with("Done ") || line.starts_with("SUMMARY: ");
    Ok(log.lines().rev().find(is_summary).unwrap_or("ended without a summary").to_owned())
}
