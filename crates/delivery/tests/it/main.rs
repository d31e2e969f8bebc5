//! The inbox and the simulator over real SMTP.

#![cfg(test)]

mod inbox;
mod our_client;
mod simulator;
