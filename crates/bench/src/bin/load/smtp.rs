//! Messages over SMTP, one after the other on each connection like `smtp-source`: for ports with TLS and a
//! password, and for a fixed rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, ValueEnum};
use postroad_testkit::{SmtpClient, mail_like_text};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::pace::Pace;

#[derive(Debug, Clone, Args)]
pub(crate) struct Smtp {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long, default_value = "off")]
    tls: Tls,
    /// User name for AUTH PLAIN
    #[arg(long, requires = "password")]
    username: Option<String>,
    #[arg(long)]
    password: Option<String>,
    #[arg(long)]
    from: String,
    #[arg(long, default_value_t = 1_000)]
    messages: usize,
    #[arg(long, default_value_t = 100)]
    sessions: usize,
    #[arg(long, default_value_t = 10_000)]
    bytes: usize,
    /// Messages a second
    #[arg(long)]
    rate: Option<f64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Tls {
    Off,
    Starttls,
    Implicit,
}

impl Smtp {
    pub(crate) async fn run(&self) -> anyhow::Result<Value> {
        let head = format!(
            "From: Shop <{}>\r\nTo: someone@dest.example\r\nSubject: Your order\r\n\
             Date: Mon, 02 Nov 2026 10:00:00 +0000\r\n\r\n",
            self.from
        );
        let text: Arc<[u8]> = (head + &mail_like_text(self.bytes, "\r\n") + "\r\n.\r\n").into_bytes().into();
        let mut clients = Vec::with_capacity(self.sessions);
        for _ in 0..self.sessions {
            clients.push(self.connect().await?);
        }
        let pace = Pace::start(self.messages, self.rate);
        let mut callers = JoinSet::new();
        for mut client in clients {
            let (pace, text, from) = (Arc::clone(&pace), Arc::clone(&text), self.from.clone());
            callers.spawn(async move {
                let mut latencies = Vec::new();
                while let Some((_, due)) = pace.next().await {
                    deliver(&mut client, &from, &text).await?;
                    latencies.push(due.elapsed());
                }
                client.say("QUIT").await;
                Ok::<Vec<Duration>, anyhow::Error>(latencies)
            });
        }
        pace.figures(callers, 1).await
    }

    async fn connect(&self) -> anyhow::Result<SmtpClient> {
        let mut client = match self.tls {
            Tls::Off => SmtpClient::connect(self.address).await,
            Tls::Starttls => SmtpClient::connect_starttls(self.address).await,
            Tls::Implicit => SmtpClient::connect_tls(self.address).await,
        };
        if let (Some(username), Some(password)) = (&self.username, &self.password) {
            let secret = BASE64_STANDARD.encode(format!("\0{username}\0{password}"));
            expect(&client.say(&format!("AUTH PLAIN {secret}")).await, "235")?;
        }
        Ok(client)
    }
}

async fn deliver(client: &mut SmtpClient, from: &str, text: &[u8]) -> anyhow::Result<()> {
    expect(&client.say(&format!("MAIL FROM:<{from}>")).await, "250")?;
    expect(&client.say("RCPT TO:<someone@dest.example>").await, "250")?;
    expect(&client.say("DATA").await, "354")?;
    client.send(text).await;
    expect(&client.reply().await, "250")
}

fn expect(reply: &str, code: &str) -> anyhow::Result<()> {
    ensure!(reply.starts_with(code), "refused: {reply}");
    Ok(())
}
