//! Checks of domains against a real DNS server: what is published there, and the exact verdict and hint.

mod aliases;
mod dkim;
mod dmarc;
mod names;
mod spf;
mod trouble;
mod world;
