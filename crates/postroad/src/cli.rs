//! What can be typed. Arguments are only described here; `commands` carries them out.

mod account_keys;
mod api_call;
mod domains;
mod suppressions;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use postroad_app::admin::{Switch, WarmUpState};
use postroad_model::{CredentialId, Scope, SendRate, ServerMode, Timestamp};

pub(crate) use account_keys::{AccountKeyCommand, NewKeyArgs, OperatorKeyCommand};
pub(crate) use api_call::ApiArgs;
pub(crate) use domains::{DomainArgs, DomainCommand, KeyArgs, OwnerArgs};
pub(crate) use suppressions::SuppressionCommand;

/// Transactional email you run yourself: applications hand in mail over HTTP or SMTP, Postroad stores, signs and
/// delivers it.
#[derive(Debug, Parser)]
#[command(name = "postroad", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How log lines on standard error look [default: the configuration's, or text]
    #[arg(long, global = true, value_enum)]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it out: everything on this machine only, no configuration, ready in a second
    Dev(DevArgs),
    /// Run the service with a configuration file
    Serve(ServeArgs),
    /// Check a configuration and say everything that is wrong with it
    CheckConfig(CheckConfigArgs),
    /// Configuration files
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Accounts, servers, domains, API keys, maintenance; works beside a running server
    Admin(AdminArgs),
    /// Call an endpoint of the HTTP API, with the key from the environment or a profile
    Api(ApiArgs),
    /// The log of changes: who changed what, and when
    Audit(AuditArgs),
    /// The queue of messages to be delivered: look at it, retry, cancel, suspend and resume
    Queue(QueueArgs),
    /// Everything that happened to a message, with its SMTP conversations
    Trace(TraceArgs),
    /// Webhooks while you build their receiver
    Webhook {
        #[command(subcommand)]
        command: WebhookCommand,
    },
    /// Say what a mail server's answer or a returned message means, and why
    Explain {
        #[command(subcommand)]
        command: ExplainCommand,
    },
}

impl Command {
    /// Whether errors are to be JSON too.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Dev(args) => args.json,
            Self::Serve(args) => args.json,
            Self::CheckConfig(args) => args.json,
            Self::Config { .. } => false,
            Self::Admin(args) => args.json,
            Self::Api(_) => true,
            Self::Audit(args) => args.json,
            Self::Queue(args) => args.json,
            Self::Trace(args) => args.json,
            Self::Webhook { command: WebhookCommand::Listen(args) } => args.json,
            Self::Explain {
                command: ExplainCommand::Reply { json, .. } | ExplainCommand::Bounce { json, .. },
            } => *json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Where the data is kept [default: ./postroad-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Port of the HTTP API on 127.0.0.1; 0 for any free one [default: 8025]
    #[arg(long, value_name = "N")]
    pub(crate) http_port: Option<u16>,
    /// Port of SMTP with STARTTLS on 127.0.0.1; 0 for any free one [default: 2587, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtp_port: Option<u16>,
    /// Port of SMTP inside TLS on 127.0.0.1; 0 for any free one [default: 2465, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) smtps_port: Option<u16>,
    /// Port for bounces and complaints on 127.0.0.1; 0 for any free one [default: 2526, or any free one]
    #[arg(long, value_name = "N")]
    pub(crate) bounce_port: Option<u16>,
    /// Print one line of JSON when ready, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    /// Print one line of JSON with the addresses when ready, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfigArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFile,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// Configuration file; `postroad config default` prints one to start from
    #[arg(long, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the default configuration with an explanation of every key
    Default,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Print the events of a server as they come, one line each, until Ctrl-C
    Listen(ListenArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Where the API is, such as http://127.0.0.1:8025
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// API key of the server, with the scope read or full [default: the variable POSTROAD_API_KEY]
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,
    /// Instead of URL and key: data folder of a server that runs on this machine [default: ./postroad-data]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "key"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// With a data folder of several servers: NAME, ACCOUNT/NAME or id
    #[arg(long, conflicts_with_all = ["url", "key"])]
    pub(crate) server: Option<String>,
    /// Only these events, such as message.delivered; with commas or several times
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
    /// Print the whole event as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also post each event to this URL, unsigned
    #[arg(long, value_name = "URL")]
    pub(crate) forward_to: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// An SMTP reply: its bounce class, whether the message is given up, and the rule that decided
    Reply {
        /// As the server sent it, such as "550 5.1.1 User unknown"; several lines are one argument
        #[arg(value_name = "REPLY")]
        text: String,
        /// What it answered, if that is known: the same words mean something else there
        #[arg(long, value_enum)]
        phase: Option<ReplyPhase>,
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// A message that came back: whom it speaks of, its bounce class, and whether the address is dead
    Bounce {
        /// The message as it came; - reads standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Answer with one line of JSON for each recipient
        #[arg(long)]
        json: bool,
    },
}

/// The part of an SMTP session that a reply belongs to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ReplyPhase {
    /// Banner, EHLO, STARTTLS or AUTH
    Connect,
    /// MAIL FROM
    Mail,
    /// RCPT TO
    Rcpt,
    /// DATA, the content or its end
    Data,
}

impl From<ReplyPhase> for postroad_mail::ReplyPhase {
    fn from(phase: ReplyPhase) -> Self {
        match phase {
            ReplyPhase::Connect => Self::Greeting,
            ReplyPhase::Mail => Self::MailFrom,
            ReplyPhase::Rcpt => Self::Recipient,
            ReplyPhase::Data => Self::Data,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub(crate) command: QueueSubcommand,
    /// Data folder of the installation
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "config")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the installation
    #[arg(long, global = true, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Id, token or Message-ID of the message
    #[arg(value_name = "ID|TOKEN|MESSAGE-ID")]
    pub(crate) message: String,
    /// Data folder of the installation
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the installation
    #[arg(long, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueSubcommand {
    /// List queued messages, those due first on top
    List {
        /// Only of this server: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: Option<String>,
        /// Only to this recipient domain
        #[arg(long)]
        domain: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show one message and say why it is waiting
    Show {
        /// Id of the message, as `queue list` and the API show it
        id: i64,
    },
    /// Count what is queued, and show what is suspended or slowed
    Stats,
    /// Try messages again now; releases held ones
    Retry {
        /// Ids of messages
        #[arg(required = true)]
        ids: Vec<i64>,
    },
    /// Take messages out of the queue for good
    Cancel {
        /// Ids of messages
        #[arg(required = true)]
        ids: Vec<i64>,
    },
    /// Stop sending, or slow it down, for a part of the queue; messages wait and are not changed
    Suspend {
        /// everything, pool:NAME, server:NAME, domain:NAME, lane:POOL/DOMAIN, provider:NAME, path:SOURCE/SITE
        scope: String,
        /// Shown to whoever asks why a message waits
        #[arg(long)]
        reason: String,
        /// Ends by itself after this long, such as 30m or 2h
        #[arg(long = "for", value_name = "DURATION", value_parser = crate::config::parse_duration)]
        for_: Option<Duration>,
        /// Only slow down, to this many messages a minute
        #[arg(long, value_name = "PER_MINUTE", value_parser = clap::value_parser!(u32).range(1..))]
        slow: Option<u32>,
    },
    /// Lift a suspension or slow-down; what waited goes on at once
    Resume {
        /// What `queue stats` shows as suspended or slowed, such as domain:example.com
        scope: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
    /// Data folder of the installation
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "config")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the installation
    #[arg(long, global = true, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no entry was removed or changed
    Verify,
}

#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
    /// Data folder of the installation
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "config")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Configuration file of the installation
    #[arg(long, global = true, value_name = "FILE", env = "POSTROAD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Customers: they own servers
    #[command(subcommand)]
    Account(AccountCommand),
    /// Sending environments of an account
    #[command(subcommand)]
    Server(ServerCommand),
    /// Domains a server may send from
    #[command(subcommand)]
    Domain(DomainCommand),
    /// API keys of a server
    #[command(subcommand)]
    Key(KeyCommand),
    /// API keys of an account
    #[command(subcommand)]
    AccountKey(AccountKeyCommand),
    /// API keys of the operator, for all accounts
    #[command(subcommand)]
    OperatorKey(OperatorKeyCommand),
    /// Pools of addresses that mail leaves from
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Addresses that get no more mail from a server
    #[command(subcommand)]
    Suppression(SuppressionCommand),
    /// What receivers report of the mail of our domains (DMARC and TLS reports), summed up
    Reports {
        /// Only this domain, with its newest reports
        #[arg(long)]
        domain: Option<String>,
    },
    /// Close the API for a while (it answers 503), or open it again
    Maintenance {
        /// on closes the API, off opens it
        #[arg(value_enum)]
        state: OnOff,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

impl OnOff {
    pub(crate) fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// A limit, or the word `none`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrNone<T>(pub(crate) Option<T>);

impl<T> OrNone<T> {
    fn parse(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Self> {
        if text == "none" { Some(Self(None)) } else { parse(text).map(|value| Self(Some(value))) }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnOffDefault {
    On,
    Off,
    /// As the server's
    Default,
}

impl From<OnOffDefault> for Switch {
    fn from(given: OnOffDefault) -> Self {
        match given {
            OnOffDefault::On => Self::On,
            OnOffDefault::Off => Self::Off,
            OnOffDefault::Default => Self::Default,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// Its name: unique, and not a number
        name: String,
    },
    /// List accounts
    List,
    /// Stop all servers of an account
    Suspend {
        /// Name or id of the account
        name: String,
        /// Kept with the suspension and shown by `account list`
        #[arg(long)]
        reason: String,
    },
    /// Lift a suspension
    Resume {
        /// Name or id of the account
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Create a server
    Create {
        /// Its name: unique in the account, and not a number
        name: String,
        /// Name or id of the account it belongs to
        #[arg(long)]
        account: String,
        /// live, or development: takes mail and holds all of it, and its own keys cannot make it live
        #[arg(long, default_value = "live", value_parser = parse_mode)]
        mode: ServerMode,
    },
    /// List servers
    List,
    /// Refuse all calls of a server's keys
    Suspend {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Kept with the suspension and shown by `server list`
        #[arg(long)]
        reason: String,
    },
    /// Lift a suspension
    Resume {
        /// NAME, ACCOUNT/NAME or id
        name: String,
    },
    /// Change between live and development; the server's own keys cannot make it live again
    SetMode {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// live or development
        #[arg(value_parser = parse_mode)]
        mode: ServerMode,
    },
    /// Send from the addresses of a pool
    SetPool {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Name of the pool; leave out for the installation's default
        pool: Option<String>,
    },
    /// Pace a server's mail: faster ones wait, none is refused. Its own keys can set a lower rate, not a higher one
    SetRate {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Such as 10/s, 100/m or 1000/h; none (or nothing) for no limit
        #[arg(value_parser = parse_rate)]
        rate: Option<OrNone<SendRate>>,
    },
    /// Hold what a server sends beyond this many messages an hour. Its own keys can set a lower limit, not a higher
    /// one
    SetHourlyLimit {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Messages an hour; none (or nothing) for no limit
        #[arg(value_parser = parse_number)]
        limit: Option<OrNone<u32>>,
    },
    /// Keep a server's mail for no more than these days. Its own keys can set fewer days, not more
    SetRetention {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Days for the text of messages; none for as long as the installation keeps it
        #[arg(long, value_name = "DAYS", value_parser = parse_number, required_unless_present = "messages")]
        bodies: Option<OrNone<u32>>,
        /// Days for messages with everything about them; none for as long as the installation keeps them
        #[arg(long, value_name = "DAYS", value_parser = parse_number)]
        messages: Option<OrNone<u32>>,
    },
    /// Track opens and clicks of a server's mail, where neither domain nor message says otherwise
    SetTracking {
        /// NAME, ACCOUNT/NAME or id
        name: String,
        /// Whether opens are tracked; leave out to keep it as it is
        #[arg(long, value_enum)]
        opens: Option<OnOff>,
        /// Whether clicks are tracked; leave out to keep it as it is
        #[arg(long, value_enum)]
        clicks: Option<OnOff>,
        /// Leave links to this host alone; `*.example.com` for all below. Replaces those set before; "" for none
        #[arg(long = "exclude-host", value_name = "HOST")]
        exclude_hosts: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Create a pool
    Create {
        /// Its name
        name: String,
        /// Servers without a pool of their own send from it, and what a warming address may not take
        #[arg(long)]
        shared: bool,
    },
    /// List pools with their addresses and their warm-up
    List,
    /// Delete a pool that nobody uses
    Delete {
        /// Name of the pool
        name: String,
    },
    /// Add an address of this machine to a pool
    AddAddress {
        /// Name of the pool
        pool: String,
        /// IPv4 or IPv6 address that this machine can send from
        address: std::net::IpAddr,
        /// The name it greets with; its PTR record should say the same
        #[arg(long)]
        helo: String,
        /// Its share of the pool's mail
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        weight: u32,
        /// Begin with few messages a day and grow
        #[arg(long)]
        warm_up: bool,
    },
    /// Remove an address
    RemoveAddress {
        /// Address as `pool list` shows it
        address: std::net::IpAddr,
    },
    /// Start an address's warm-up anew, resume a paused one, or end it
    WarmUp {
        /// Address as `pool list` shows it
        address: std::net::IpAddr,
        /// start, resume or end
        #[arg(value_parser = parse_warm_up)]
        state: WarmUpState,
    },
    /// Show what an address sent on each day to each provider, and what bounced or was complained about
    History {
        /// Address as `pool list` shows it
        address: std::net::IpAddr,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key; key and secret are shown this once
    Create {
        /// Server it is for: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: String,
        /// What it is for
        #[arg(long, default_value = "key")]
        name: String,
        /// full, send or read
        #[arg(long, default_value = "full", value_parser = parse_scope)]
        scope: Scope,
        /// Everything sent with it is validated, stored and not delivered; it cannot change the server
        #[arg(long)]
        test: bool,
        /// Everything sent with it is held
        #[arg(long)]
        hold: bool,
        /// Network it may be used from, such as 192.0.2.0/24; can be given several times
        #[arg(long, value_name = "CIDR", value_parser = parse_network)]
        allow: Vec<IpNet>,
        /// Network that may submit on `smtp.plain_listen` without key and secret, and nothing else; can be given
        /// several times
        #[arg(long, value_name = "CIDR", value_parser = parse_network, conflicts_with_all = ["allow", "scope"])]
        address: Vec<IpNet>,
        /// User name for SMTP programs that insist on an e-mail address, such as shop@example.com; the password is the
        /// API secret
        #[arg(long, value_name = "NAME", conflicts_with = "address")]
        login: Option<String>,
        /// When it ends, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
        expires_at: Option<Timestamp>,
    },
    /// List keys (without the keys themselves, which nobody knows any more)
    List {
        /// Only of this server: NAME, ACCOUNT/NAME or id
        #[arg(long)]
        server: Option<String>,
    },
    /// End a key at once
    Revoke {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
    },
    /// Make a new key with the same rights; the old one stays good for a while
    Rotate {
        /// Id that `key list` shows
        #[arg(value_parser = parse_key_id)]
        id: CredentialId,
        /// How long the old key stays good, such as 30m, 24h or 7d
        #[arg(long, default_value = "24h", value_parser = crate::config::parse_duration)]
        grace: Duration,
    },
}

fn parse_mode(text: &str) -> Result<ServerMode, String> {
    ServerMode::parse(text).ok_or_else(|| "use live or development".to_owned())
}

fn parse_rate(text: &str) -> Result<OrNone<SendRate>, String> {
    let wrong = || "use a rate such as 10/s, 100/m or 1000/h, or none".to_owned();
    OrNone::parse(text, SendRate::parse).ok_or_else(wrong)
}

fn parse_number(text: &str) -> Result<OrNone<u32>, String> {
    let wrong = || "use a whole number from 0 to 4294967295, or none".to_owned();
    OrNone::parse(text, |text| text.parse().ok()).ok_or_else(wrong)
}

fn parse_warm_up(text: &str) -> Result<WarmUpState, String> {
    match text {
        "start" => Ok(WarmUpState::Start),
        "resume" => Ok(WarmUpState::Resume),
        "end" => Ok(WarmUpState::End),
        _ => Err("use start, resume or end".to_owned()),
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    // A scope that comes with networks is asked for by them (`--address`).
    let scope = Scope::parse(text).filter(|scope| *scope != Scope::Address);
    scope.ok_or_else(|| "use full, send or read".to_owned())
}

/// A single address is a network of one.
fn parse_network(text: &str) -> Result<IpNet, String> {
    let single = text.parse::<std::net::IpAddr>().map(IpNet::from);
    text.parse::<IpNet>()
        .or(single)
        .map_err(|_| "use an address or a network such as 192.0.2.0/24".to_owned())
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text).ok_or_else(|| "use a time such as 2027-01-01T00:00:00Z".to_owned())
}

fn parse_key_id(text: &str) -> Result<CredentialId, String> {
    text.parse().map(CredentialId).map_err(|_| "use the number that `key list` shows".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Every argument of `command` and of those below it without a help text.
    fn unexplained(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            if argument.get_help().is_none_or(|help| help.to_string().trim().is_empty()) {
                found.push(format!("{path} {}", argument.get_id()));
            }
        }
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            if below.get_about().is_none() && below.get_name() != "help" {
                found.push(path.clone());
            }
            unexplained(below, &path, found);
        }
    }

    #[test]
    fn every_command_and_argument_has_a_help_text() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        unexplained(&command, "postroad", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
