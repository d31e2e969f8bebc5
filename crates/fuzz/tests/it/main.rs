//! Every target: a short run with mutated seeds, and time that grows no faster than the input.

mod linear;
mod short_run;
