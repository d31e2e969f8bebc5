//! Load generators of the benchmark: `load http|smtp|latency|webhooks …`; each prints one line of JSON.
//!
//! Without a rate, each caller sends the next message when the last one is answered. With a rate, messages
//! start by the clock even if answers are slow, and a latency counts from when its message was due (except in
//! `latency`, which counts from the answer).

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

mod http;
mod latency;
mod pace;
mod smtp;
mod webhooks;

use clap::Parser;

#[derive(Debug, Parser)]
enum Load {
    /// Through the HTTP port
    Http(http::Http),
    /// Through an SMTP port: plain, STARTTLS or TLS, with or without a password
    Smtp(smtp::Smtp),
    /// From the accepted request to the other mail server's DATA
    Latency(latency::Latency),
    /// From the accepted request to the post at a receiver of webhooks
    Webhooks(webhooks::Webhooks),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let figures = match Load::parse() {
        Load::Http(load) => load.run().await?,
        Load::Smtp(load) => load.run().await?,
        Load::Latency(load) => load.run().await?,
        Load::Webhooks(load) => load.run().await?,
    };
    println!("{figures}");
    Ok(())
}
