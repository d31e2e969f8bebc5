//! Arguments of `postroad webhook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Print the events of a server as they come, one line each, until Ctrl-C
    Listen(ListenArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// URL of the API, such as http://127.0.0.1:8025
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// API key of the server, with the scope read or full [default: the variable POSTROAD_API_KEY]
    #[arg(long, value_name = "KEY", requires = "url")]
    pub(crate) key: Option<String>,
    /// Instead of URL and key: data folder of a service that runs on this machine [default: ./postroad-data]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "key"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server, if the data folder has several: NAME, ACCOUNT/NAME or id
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
