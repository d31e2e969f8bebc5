//! Tests the schedule against simulated receivers with hidden limits. Measures how much of their capacity is used, the
//! refusals, and the waits; `cargo xtask bench pacing` prints them as a table, over many seeds.

mod cases;
mod many_seeds;
mod rows;
mod seeds;
mod table;
mod world;
