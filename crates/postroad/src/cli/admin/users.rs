//! `postroad admin user`: people who sign in to the portal.

use clap::Subcommand;
use postroad_app::App;
use postroad_app::admin::AdminError;
use postroad_app::users::UserChangeRequest;
use postroad_model::{UserRole, UserSessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Serialize, Deserialize, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a person; the answer has a link to choose a password
    Create {
        /// E-mail address, by which the person signs in
        email: String,
        /// Name or id of the account
        #[arg(long)]
        account: String,
        /// owner, admin, member or read-only
        #[arg(long, default_value = "member", value_parser = parse_role)]
        role: UserRole,
        /// Full name
        #[arg(long, default_value = "")]
        name: String,
        /// Grant the operator's rights, for all accounts
        #[arg(long)]
        operator: bool,
    },
    /// Invite a person by mail; the answer has the link as well
    Invite {
        /// E-mail address
        email: String,
        /// Name or id of the account
        #[arg(long)]
        account: String,
        /// owner, admin, member or read-only
        #[arg(long, default_value = "member", value_parser = parse_role)]
        role: UserRole,
        /// Grant the operator's rights, for all accounts
        #[arg(long)]
        operator: bool,
        /// Send no mail: the link is passed on by hand
        #[arg(long)]
        no_mail: bool,
    },
    /// List the open invitations of an account
    Invitations {
        /// Name or id of the account
        #[arg(long)]
        account: String,
    },
    /// Revoke an invitation: its link stops working
    Uninvite {
        /// E-mail address
        email: String,
        /// Name or id of the account
        #[arg(long)]
        account: String,
    },
    /// List the people of an account, or of all
    List {
        /// Name or id of the account
        #[arg(long)]
        account: Option<String>,
    },
    /// Change a person's name, role or operator's rights
    Update {
        /// E-mail address
        email: String,
        /// owner, admin, member or read-only
        #[arg(long, value_parser = parse_role)]
        role: Option<UserRole>,
        /// Full name
        #[arg(long)]
        name: Option<String>,
        /// Whether the person has the operator's rights
        #[arg(long, value_name = "true|false")]
        operator: Option<bool>,
    },
    /// Create a link with which a person chooses a new password; it works for an hour
    ResetPassword {
        /// E-mail address
        email: String,
    },
    /// Disable the authenticator app of a person who lost it
    DisableTotp {
        /// E-mail address
        email: String,
    },
    /// List the sessions of a person, newest first
    Sessions {
        /// E-mail address
        email: String,
    },
    /// End all sessions of a person, or one
    SignOut {
        /// E-mail address
        email: String,
        /// Id of the session to end, as `user sessions` shows it; all without it
        #[arg(long, value_name = "ID")]
        session: Option<i64>,
    },
    /// Remove a person, also the last owner of an account
    Remove {
        /// E-mail address
        email: String,
    },
    /// Print a link with which the first person of an installation signs up
    SetUpLink,
}

impl UserCommand {
    pub(super) async fn execute(self, app: &App) -> Result<Value, AdminError> {
        match self {
            Self::Create { email, account, role, name, operator } => {
                app.add_user(email, &account, role, name, operator).await
            }
            Self::Invite { email, account, role, operator, no_mail } => {
                app.add_invitation(email, &account, role, operator, !no_mail).await
            }
            Self::Invitations { account } => app.show_invitations(&account).await,
            Self::Uninvite { email, account } => app.end_invitation(&email, &account).await,
            Self::List { account } => app.show_users(account.as_deref()).await,
            Self::Update { email, role, name, operator } => {
                let changes = UserChangeRequest { role, name, operator, ..UserChangeRequest::default() };
                app.change_user(&email, changes).await
            }
            Self::ResetPassword { email } => app.create_reset_link(&email).await,
            Self::DisableTotp { email } => app.end_totp_of(&email).await,
            Self::Sessions { email } => app.show_sessions(&email).await,
            Self::SignOut { email, session } => app.end_sessions_of(&email, session.map(UserSessionId)).await,
            Self::Remove { email } => app.delete_user(&email).await,
            Self::SetUpLink => app.create_set_up_link().await,
        }
    }
}

fn parse_role(text: &str) -> Result<UserRole, String> {
    UserRole::parse(text).ok_or_else(|| "use owner, admin, member or read-only".to_owned())
}
