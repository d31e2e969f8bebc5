//! Fuzz targets: one function per parser of untrusted bytes. A target must return for any input, in time linear in
//! the input's size, without a panic; some also check the result.
//!
//! The tests of this crate run each target briefly with mutated seeds and measure how its time grows. `cargo
//! xtask fuzz` runs the same targets under libFuzzer, guided by coverage, for as long as you like.

mod mutate;
mod patterns;
mod targets;

pub use mutate::Mutator;
pub use patterns::{Pattern, patterns};
pub use targets::{TARGETS, Target, find_target};
