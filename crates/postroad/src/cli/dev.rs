//! Arguments of `postroad dev`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Data folder [default: ./postroad-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Port of the HTTP API; 0 for any free one [default: 8025, or the next free one]
    #[arg(long, value_name = "N")]
    pub(crate) http_port: Option<u16>,
    /// Port of SMTP without encryption and login, from any sender; 0 for any free one [default: 1025, or the next free
    /// one]
    #[arg(long, value_name = "N")]
    pub(crate) plain_port: Option<u16>,
    /// Port of SMTP with STARTTLS; 0 for any free one [default: 2587, or the next free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtp_port: Option<u16>,
    /// Port of SMTP inside TLS; 0 for any free one [default: 2465, or the next free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtps_port: Option<u16>,
    /// Port for bounces and complaints; 0 for any free one [default: 2526, or the next free one]
    #[arg(long, value_name = "N")]
    pub(crate) bounce_port: Option<u16>,
    /// Address to listen on, such as 0.0.0.0 in a container: other machines can then read and send everything without a
    /// key [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<IpAddr>,
    /// Host name under which clients reach the service, such as a container's name; can be given several times.
    /// Requests for other hosts are refused
    #[arg(long = "host", value_name = "NAME", value_parser = parse_host)]
    pub(crate) hosts: Vec<String>,
    /// API key of the server, with all its rights, the same at every start [default: a new one at each start]
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Accept any From address in the API and over SMTP with a login too, not only those of verified domains
    #[arg(long)]
    pub(crate) any_from: bool,
    /// Print one line of JSON when ready, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_host(text: &str) -> Result<String, String> {
    let is_name = (1..=253).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if is_name { Ok(text.to_ascii_lowercase()) } else { Err("use a host name without port".to_owned()) }
}
