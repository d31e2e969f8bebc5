//! Tests the schedule against receivers with hidden limits, in simulated time: the used share of their capacity, the
//! refusals, and the waits. `cargo xtask bench pacing` prints the table over many seeds.

mod cases;
mod many_seeds;
mod rows;
mod seeds;
mod table;
mod world;
