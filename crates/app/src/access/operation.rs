//! Table of all operations. An endpoint, page or command that does something new needs a row here.

use postroad_model::{Scope, UserRole};

/// Which keys and people may call an operation. People also need the operation's lowest role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One server's data: the server's keys, and people, but no account or operator keys.
    Server,
    /// Data of a server or an account: all keys, and people.
    ServerOrAccount,
    /// An account's data: account keys, operator keys, and people.
    Account,
    /// Only the operator: operator keys, and people with the operator's rights.
    Operator,
    /// A person's own data, such as password, sessions and saved searches: that person, and no key.
    Person,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    Send,
    /// Submission over SMTP by the client's address, without a secret.
    SendByAddress,
    Change,
}

impl Effect {
    /// The scope that a server key needs.
    pub fn server_scope(self) -> Scope {
        match self {
            Self::Read => Scope::Read,
            Self::Send => Scope::Send,
            Self::SendByAddress => Scope::Address,
            Self::Change => Scope::Full,
        }
    }
}

macro_rules! operations {
    ($($name:ident $text:literal $level:ident $effect:ident $role:ident;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {$($name,)+}

        impl Operation {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            const fn row(self) -> (&'static str, Level, Effect, UserRole) {
                match self {
                    $(Self::$name => ($text, Level::$level, Effect::$effect, UserRole::$role),)+
                }
            }
        }
    };
}

operations! {
    // operation              name                        level            effect   lowest role of a person
    SendMessage               "send/message"              Server           Send     Member;
    SendRaw                   "send/raw"                  Server           Send     Member;
    SendBatch                 "send/batch"                Server           Send     Member;
    SendCancel                "send/cancel"               Server           Send     Member;
    SendReschedule            "send/reschedule"           Server           Send     Member;
    SmtpSubmit                "smtp/submit"               Server           Send     Member;
    SmtpSubmitByAddress       "smtp/submit_by_address"    Server           SendByAddress Member;
    MessagesMessage           "messages/message"          Server           Read     ReadOnly;
    MessagesDeliveries        "messages/deliveries"       Server           Read     ReadOnly;
    MessagesSearch            "messages/search"           Server           Read     ReadOnly;
    MessagesTimeline          "messages/timeline"         Server           Read     ReadOnly;
    MessagesRetry             "messages/retry"            Server           Change   Member;
    MessagesRelease           "messages/release"          Server           Change   Member;
    MessagesCancelHold        "messages/cancel_hold"      Server           Change   Member;
    MessagesCancel            "messages/cancel"           Server           Change   Member;
    MessagesErase             "messages/erase"            Server           Change   Admin;
    QueueList                 "queue/list"                Server           Read     ReadOnly;
    QueueSuspend              "queue/suspend"             Account          Change   Admin;
    QueueResume               "queue/resume"              Account          Change   Admin;
    JobsGet                   "jobs/get"                  Server           Read     ReadOnly;
    AnalyticsSummary          "analytics/summary"         Server           Read     ReadOnly;
    AnalyticsTimeseries       "analytics/timeseries"      Server           Read     ReadOnly;
    AnalyticsTop              "analytics/top"             Server           Read     ReadOnly;
    AnalyticsMessage          "analytics/message"         Server           Read     ReadOnly;
    WebhooksCreate            "webhooks/create"           Server           Change   Member;
    WebhooksGet               "webhooks/get"              Server           Read     ReadOnly;
    WebhooksList              "webhooks/list"             Server           Read     ReadOnly;
    WebhooksUpdate            "webhooks/update"           Server           Change   Member;
    WebhooksDelete            "webhooks/delete"           Server           Change   Member;
    WebhooksRotateSecret      "webhooks/rotate_secret"    Server           Change   Member;
    WebhooksTest              "webhooks/test"             Server           Change   Member;
    WebhooksAttempts          "webhooks/attempts"         Server           Read     ReadOnly;
    WebhooksReplay            "webhooks/replay"           Server           Change   Member;
    WebhooksOpenInspector     "webhooks/open_inspector"   Server           Change   Member;
    WebhooksClearInspector    "webhooks/clear_inspector"  Server           Change   Member;
    EventsList                "events/list"               Server           Read     ReadOnly;
    SuppressionsList          "suppressions/list"         Server           Read     ReadOnly;
    SuppressionsGet           "suppressions/get"          Server           Read     ReadOnly;
    SuppressionsAdd           "suppressions/add"          Server           Change   Member;
    SuppressionsRemove        "suppressions/remove"       Server           Change   Member;
    SuppressionsImport        "suppressions/import"       Server           Change   Member;
    SuppressionsExport        "suppressions/export"       Server           Read     ReadOnly;
    TemplatesCreate           "templates/create"          Server           Change   Member;
    TemplatesGet              "templates/get"             Server           Read     ReadOnly;
    TemplatesList             "templates/list"            Server           Read     ReadOnly;
    TemplatesUpdate           "templates/update"          Server           Change   Member;
    TemplatesDelete           "templates/delete"          Server           Change   Member;
    TemplatesRender           "templates/render"          Server           Read     ReadOnly;
    TemplatesValidate         "templates/validate"        Server           Read     ReadOnly;
    TemplatesVersions         "templates/versions"        Server           Read     ReadOnly;
    TemplatesPublish          "templates/publish"         Server           Change   Member;
    TemplatesRollback         "templates/rollback"        Server           Change   Member;
    TemplatesDiff             "templates/diff"            Server           Read     ReadOnly;
    ServerGet                 "server/get"                Server           Read     ReadOnly;
    ServerUpdate              "server/update"             Server           Change   Admin;
    DomainsCreate             "domains/create"            ServerOrAccount  Change   Admin;
    DomainsGet                "domains/get"               ServerOrAccount  Read     ReadOnly;
    DomainsList               "domains/list"              ServerOrAccount  Read     ReadOnly;
    DomainsVerify             "domains/verify"            ServerOrAccount  Change   Admin;
    DomainsRotateDkim         "domains/rotate_dkim"       ServerOrAccount  Change   Admin;
    DomainsDelete             "domains/delete"            ServerOrAccount  Change   Admin;
    DomainsZone               "domains/zone"              ServerOrAccount  Read     ReadOnly;
    DomainsReports            "domains/reports"           ServerOrAccount  Read     ReadOnly;
    DomainsShare              "domains/share"             ServerOrAccount  Change   Admin;
    DomainsLinks              "domains/links"             ServerOrAccount  Read     ReadOnly;
    DomainsUnshare            "domains/unshare"           ServerOrAccount  Change   Admin;
    DomainsSetTracking        "domains/set_tracking"      Operator         Change   Owner;
    DomainsSetVerified        "domains/set_verified"      Operator         Change   Owner;
    ServersCreate             "servers/create"            Account          Change   Admin;
    ServersList               "servers/list"              Account          Read     ReadOnly;
    ServersGet                "servers/get"               Account          Read     ReadOnly;
    ServersUpdate             "servers/update"            Account          Change   Admin;
    ServersSuspend            "servers/suspend"           Account          Change   Admin;
    ServersResume             "servers/resume"            Account          Change   Admin;
    ServersDelete             "servers/delete"            Account          Change   Admin;
    ServersRestore            "servers/restore"           Account          Change   Admin;
    CredentialsCreate         "credentials/create"        Account          Change   Admin;
    CredentialsList           "credentials/list"          Account          Read     ReadOnly;
    CredentialsGet            "credentials/get"           Account          Read     ReadOnly;
    CredentialsUpdate         "credentials/update"        Account          Change   Admin;
    CredentialsRevoke         "credentials/revoke"        Account          Change   Admin;
    CredentialsRotate         "credentials/rotate"        Account          Change   Admin;
    IpPoolsCreate             "ip_pools/create"           Operator         Change   Owner;
    IpPoolsList               "ip_pools/list"             Account          Read     ReadOnly;
    IpPoolsGet                "ip_pools/get"              Account          Read     ReadOnly;
    IpPoolsDelete             "ip_pools/delete"           Operator         Change   Owner;
    IpPoolsAddAddress         "ip_pools/add_address"      Operator         Change   Owner;
    IpPoolsUpdateAddress      "ip_pools/update_address"   Operator         Change   Owner;
    IpPoolsRemoveAddress      "ip_pools/remove_address"   Operator         Change   Owner;
    IpPoolsWarmUp             "ip_pools/warm_up"          Account          Change   Admin;
    IpPoolsHistory            "ip_pools/history"          Account          Read     ReadOnly;
    AccountGet                "account/get"               Account          Read     ReadOnly;
    AccountUpdate             "account/update"            Account          Change   Admin;
    AccountUsage              "account/usage"             Account          Read     ReadOnly;
    AccountAudit              "account/audit"             Account          Read     Admin;
    AccountKeysCreate         "account_keys/create"       Account          Change   Admin;
    AccountKeysList           "account_keys/list"         Account          Read     Admin;
    AccountKeysRevoke         "account_keys/revoke"       Account          Change   Admin;
    UsersList                 "users/list"                Account          Read     ReadOnly;
    UsersUpdate               "users/update"              Account          Change   Admin;
    UsersRemove               "users/remove"              Account          Change   Admin;
    UsersInvite               "users/invite"              Account          Change   Admin;
    UsersInvitations          "users/invitations"         Account          Read     Admin;
    UsersUninvite             "users/uninvite"            Account          Change   Admin;
    UsersSessions             "users/sessions"            Account          Read     Admin;
    UsersRevokeSession        "users/revoke_session"      Account          Change   Admin;
    UsersCreate               "users/create"              Operator         Change   Owner;
    UsersResetPassword        "users/reset_password"      Operator         Change   Owner;
    UsersDisableTotp          "users/disable_totp"        Operator         Change   Owner;
    PersonSignIn              "person/sign_in"            Person           Change   ReadOnly;
    PersonSignOut             "person/sign_out"           Person           Change   ReadOnly;
    PersonAcceptInvitation    "person/accept_invitation"  Person           Change   ReadOnly;
    PersonUpdate              "person/update"             Person           Change   ReadOnly;
    PersonChangePassword      "person/change_password"    Person           Change   ReadOnly;
    PersonEnableTotp          "person/enable_totp"        Person           Change   ReadOnly;
    PersonDisableTotp         "person/disable_totp"       Person           Change   ReadOnly;
    PersonSessions            "person/sessions"           Person           Read     ReadOnly;
    PersonRevokeSession       "person/revoke_session"     Person           Change   ReadOnly;
    PersonSearches            "person/searches"           Person           Read     ReadOnly;
    PersonSaveSearch          "person/save_search"        Person           Change   ReadOnly;
    PersonForgetSearch        "person/forget_search"      Person           Change   ReadOnly;
    OperatorKeysCreate        "operator_keys/create"      Operator         Change   Owner;
    OperatorKeysList          "operator_keys/list"        Operator         Read     Owner;
    OperatorKeysRevoke        "operator_keys/revoke"      Operator         Change   Owner;
    AccountsCreate            "accounts/create"           Operator         Change   Owner;
    AccountsList              "accounts/list"             Operator         Read     Owner;
    AccountsGet               "accounts/get"              Operator         Read     Owner;
    AccountsUpdate            "accounts/update"           Operator         Change   Owner;
    AccountsSuspend           "accounts/suspend"          Operator         Change   Owner;
    AccountsResume            "accounts/resume"           Operator         Change   Owner;
    AccountsDelete            "accounts/delete"           Operator         Change   Owner;
    AccountsRestore           "accounts/restore"          Operator         Change   Owner;
    InstallationRecords       "installation/records"      Operator         Read     Owner;
    InstallationSetHost       "installation/set_host"     Operator         Change   Owner;
    InstallationReports       "installation/reports"      Operator         Read     Owner;
    InstallationVerifyAudit   "installation/verify_audit" Operator         Read     Owner;
    InstallationMaintenance   "installation/maintenance"  Operator         Change   Owner;
    InstallationStatus        "installation/status"       Operator         Read     Owner;
    InstallationSuspend       "installation/suspend"      Operator         Change   Owner;
    InstallationResume        "installation/resume"       Operator         Change   Owner;
    InstallationInbox         "installation/inbox"        Operator         Read     Owner;
    InstallationClearInbox    "installation/clear_inbox"  Operator         Change   Owner;
}

impl Operation {
    /// `group/action`: the operation's name in the audit log, and the path of its endpoint, if there is an endpoint.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    pub const fn level(self) -> Level {
        self.row().1
    }

    pub const fn effect(self) -> Effect {
        self.row().2
    }

    /// Lowest role with which a person may call the operation. At the level `Operator`, people also need the operator's
    /// rights.
    pub const fn role(self) -> UserRole {
        self.row().3
    }

    pub fn group(self) -> &'static str {
        self.name().split('/').next().unwrap_or_default()
    }

    pub fn is_read(self) -> bool {
        self.effect() == Effect::Read
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operation_names_are_unique() {
        let names: BTreeSet<&str> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        assert_eq!(names.len(), Operation::ALL.len());
        assert!(names.iter().all(|name| name.split('/').count() == 2), "{names:?}");
    }

    #[test]
    fn read_only_people_change_only_their_own_data() {
        for operation in Operation::ALL {
            let is_for_readers = operation.role() == UserRole::ReadOnly;
            let is_own = operation.level() == Level::Person;
            assert!(!is_for_readers || is_own || operation.is_read(), "{}", operation.name());
        }
    }
}
