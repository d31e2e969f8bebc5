//! Sending domains: the DNS records they need, and whether these are published.

pub mod check;
