//! Arguments of `postroad explain`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// An SMTP reply: its bounce class, whether the message is given up, and the rule that matched
    Reply {
        /// As the server sent it, such as "550 5.1.1 User unknown"; several lines are one argument
        #[arg(value_name = "REPLY")]
        text: String,
        /// The command that was refused, if known: the same text means different things in different phases
        #[arg(long, value_enum)]
        phase: Option<ReplyPhase>,
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// A returned message: its recipients, bounce class, and whether the address is dead
    Bounce {
        /// File with the message; - reads standard input
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
