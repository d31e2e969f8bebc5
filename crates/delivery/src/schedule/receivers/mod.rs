//! The schedule against receivers with hidden limits, in simulated time: what share of their capacity is used, how much
//! they refuse, and how long messages wait. `cargo xtask bench pacing` prints the table over many seeds.

mod rows;
mod table;
mod world;
