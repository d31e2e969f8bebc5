//! Every target: a short run with mutated seeds, and a check of linear time.

mod linear;
mod short_run;
