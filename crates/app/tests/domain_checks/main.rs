//! Checks of domains against a real DNS server: published records, with the exact verdict and hint.

mod aliases;
mod dkim;
mod dmarc;
mod dns_failures;
mod installation;
mod names;
mod oracle;
mod service;
mod spf;
mod suggestions;
mod world;
