//! Menu, head and notices that all pages for signed-in people share (`templates/layout.html`).

use postroad_app::access::{Actor, Operation, Subject, permit};
use postroad_store::{Server, User};

use crate::{assets, snippets};

/// Page of the menu that is marked as the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Servers,
    Account,
    Overview,
    Messages,
    Queue,
    Events,
    Analytics,
    Reports,
    Templates,
    Domains,
    Webhooks,
    Keys,
    Suppressions,
    Settings,
    People,
    Pools,
    AccountDomains,
    AccountKeys,
    Audit,
    You,
    Operator,
    Inbox,
}

/// Pages about one server: section, folder, name, and shortcut, which is `g` followed by this key of the keyboard.
const SERVER_PAGES: &[(Section, &str, &str, &str)] = &[
    (Section::Overview, "", "Overview", "o"),
    (Section::Messages, "/messages", "Messages", "m"),
    (Section::Queue, "/queue", "Queue", "q"),
    (Section::Events, "/events", "Events", "f"),
    (Section::Analytics, "/analytics", "Analytics", "a"),
    (Section::Reports, "/reports", "Reports", "r"),
    (Section::Templates, "/templates", "Templates", "t"),
    (Section::Domains, "/domains", "Domains", "d"),
    (Section::Webhooks, "/webhooks", "Webhooks", "w"),
    (Section::Suppressions, "/suppressions", "Suppressions", "s"),
    (Section::Keys, "/keys", "Keys", "k"),
    (Section::Settings, "/settings", "Settings", "e"),
];

/// Pages about the account: section, path, name, and shortcut. The shortcuts differ from those of a server's pages.
const ACCOUNT_PAGES: &[(Section, &str, &str, &str)] = &[
    (Section::Servers, "/servers", "Servers", "v"),
    (Section::Account, "/account", "Account", "c"),
    (Section::People, "/account/people", "People", "p"),
    (Section::AccountDomains, "/account/domains", "Account domains", "b"),
    (Section::Pools, "/account/pools", "IP pools", "i"),
    (Section::AccountKeys, "/account/keys", "Account keys", "h"),
    (Section::Audit, "/account/audit", "Audit log", "l"),
    (Section::You, "/account/you", "You", "y"),
];

/// Pages for the operator alone.
const OPERATOR_PAGES: &[(Section, &str, &str, &str)] = &[(Section::Operator, "/operator", "Operator", "x")];

/// Inbox with mail that is caught instead of sent: of the installation, for the operator, or of a development server.
const INBOX_PAGES: &[(Section, &str, &str, &str)] = &[(Section::Inbox, "/inbox", "Inbox", "n")];

/// Page of the menu that a path belongs to.
pub(crate) fn section_of(path: &str) -> Section {
    let of_server = path.strip_prefix("/servers/").and_then(|rest| rest.split_once('/'));
    let (pages, folder) = match of_server {
        Some((_, rest)) => (SERVER_PAGES, format!("/{}", rest.split('/').next().unwrap_or_default())),
        None if path.starts_with("/servers/") => (SERVER_PAGES, String::new()),
        None if path.starts_with("/operator") => return Section::Operator,
        None => (ACCOUNT_PAGES, path.split('/').take(3).collect::<Vec<_>>().join("/")),
    };
    let found = pages.iter().find(|(_, known, ..)| *known == folder);
    found.map_or(Section::Servers, |(section, ..)| *section)
}

/// A link of the menu.
pub(crate) struct MenuLink {
    pub(crate) path: String,
    pub(crate) name: &'static str,
    /// Key of the keyboard that opens the page after `g`.
    pub(crate) shortcut: &'static str,
    pub(crate) is_current: bool,
}

/// A server in the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerLink {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) is_suspended: bool,
    pub(crate) is_development: bool,
}

impl ServerLink {
    pub(crate) fn of(server: &Server) -> Self {
        Self {
            id: server.id.0,
            name: server.name.clone(),
            is_suspended: server.suspended_reason.is_some(),
            is_development: server.mode == postroad_model::ServerMode::Development,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) person: String,
    pub(crate) csrf: String,
    pub(crate) is_operator: bool,
    actor: Actor,
    /// Scheme and host that the browser uses, for commands in empty lists.
    pub(crate) base_url: String,
    /// Whether mail is caught instead of sent, and the person may see it.
    pub(crate) has_inbox: bool,
    pub(crate) servers: Vec<ServerLink>,
    pub(crate) server: Option<ServerLink>,
    /// Notice about the last form's effect.
    pub(crate) notice: Option<&'static str>,
    /// Warning about a ceiling that the account has come near.
    pub(crate) warning: Option<String>,
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

impl Layout {
    pub(crate) fn new(title: &str, section: Section, person: &User, csrf: String) -> Self {
        Self {
            title: title.to_owned(),
            section,
            person: if person.name.is_empty() { person.email.clone() } else { person.name.clone() },
            csrf,
            is_operator: person.operator,
            actor: Actor::User {
                id: person.id,
                account_id: person.account_id,
                role: person.role,
                operator: person.operator,
            },
            base_url: String::new(),
            has_inbox: false,
            servers: Vec::new(),
            server: None,
            notice: None,
            warning: None,
            style: assets::style_path(),
            script: assets::script_path(),
            icon: assets::icon_path(),
        }
    }

    /// Whether the role of the person allows an operation, such as `servers/delete`. Forms for operations that the role
    /// does not allow are not shown; `app` checks the permission again.
    pub(crate) fn may(&self, operation: &str) -> bool {
        let Some(operation) = Operation::ALL.iter().find(|known| known.name() == operation) else {
            return false;
        };
        let own = self.actor.account_id().map_or(Subject::Installation, Subject::Account);
        permit(&self.actor, *operation, own).is_ok()
    }

    /// Command that calls an endpoint of the API, such as `webhooks/create`, for an empty list.
    pub(crate) fn command(&self, endpoint: &str) -> String {
        snippets::call_command(&self.base_url, endpoint)
    }

    /// Menu of the server, or of the account on pages that are about no server.
    pub(crate) fn links(&self) -> Vec<MenuLink> {
        match &self.server {
            Some(server) => {
                let base = format!("/servers/{}", server.id);
                let mut links = self.menu(SERVER_PAGES, &base);
                let has_own_inbox = server.is_development;
                links.extend(if has_own_inbox { self.menu(INBOX_PAGES, &base) } else { self.inbox_link() });
                links
            }
            None => self.person_links(),
        }
    }

    /// Menu at the top: pages of the person's account, and for an operator those of the installation.
    pub(crate) fn person_links(&self) -> Vec<MenuLink> {
        let mut links = self.menu(ACCOUNT_PAGES, "");
        links.retain(|link| match link.path.as_str() {
            "/account/keys" => self.may("account_keys/list"),
            "/account/audit" => self.may("account/audit"),
            _ => true,
        });
        if self.is_operator {
            links.extend(self.menu(OPERATOR_PAGES, ""));
        }
        links.extend(self.inbox_link());
        links
    }

    fn inbox_link(&self) -> Vec<MenuLink> {
        if self.has_inbox { self.menu(INBOX_PAGES, "") } else { Vec::new() }
    }

    fn menu(&self, pages: &[(Section, &str, &'static str, &'static str)], base: &str) -> Vec<MenuLink> {
        let link = |&(section, path, name, shortcut): &(Section, &str, &'static str, &'static str)| {
            MenuLink { path: format!("{base}{path}"), name, shortcut, is_current: section == self.section }
        };
        pages.iter().map(link).collect()
    }
}

/// Texts for `?done=`: a fixed table, so that a link cannot put arbitrary text on the page.
pub(crate) fn notice(code: &str) -> Option<&'static str> {
    Some(match code {
        "retried" => "The message is tried again now.",
        "sent-now" => "The message is due now.",
        "released" => "Released: it is in the queue.",
        "cancelled" => "Cancelled: it will not be sent.",
        "erased" => "Erased: recipient, subject and content are gone.",
        "changed" => "Done. The results are in the list.",
        "partly" => {
            "Done, but not for all: some were being sent or no longer waiting, their recipient is suppressed, or a limit or setting stops them."
        }
        "partly-cancelled" => {
            "Done, but not for all: some were being sent at that moment, or were no longer waiting."
        }
        "rescheduled" => {
            "Rescheduled. Messages that are being sent, or that expire before the new time, keep their time."
        }
        "rescheduled-some" => "Many were rescheduled, but not all yet: send the form again for the rest.",
        "saved" => "Saved.",
        "published" => "Published: mails are rendered from this version from now on.",
        "created" => "Created.",
        "removed" => "Removed.",
        "invited" => "Invited: the link is on its way by mail.",
        "revoked" => "Revoked: the key stops working at once.",
        "imported" => "Imported: every line was accepted.",
        "emptied" => "The inbox is being emptied: its messages are cancelled and will not be sent.",
        "unshared" => "Revoked: the link stops working at once.",
        "checked" => "Checked.",
        "replayed" => "The event is posted again.",
        "replayed-all" => "The events of that time are posted again.",
        "exists" => {
            "This webhook was created already. Its secret was shown once: make a new one if it was not copied."
        }
        "rotated-before" => {
            "The secret was replaced since this page was opened. Nothing was done: make a new one if it was not copied."
        }
        "restored" => "Restored: it is as it was.",
        "suspended" => "Suspended: the server sends nothing.",
        "resumed" => "Resumed.",
        "gated" => "Done: it takes effect within seconds. Messages are still accepted, and wait.",
        "lifted" => "Lifted: messages go out again within seconds.",
        "ended" => "The sessions have ended.",
        "closed" => "Maintenance has begun: the API refuses all calls, and the SMTP relay takes no mail.",
        "opened" => "Maintenance has ended: the API and the SMTP relay work again.",
        "app-off" => "The authenticator app is switched off: the person signs in with the password alone.",
        "rolled-back" => "Rolled back: mails are rendered from the version that was published before.",
        "signed-out" => "You are signed out.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Operations that templates name, in `layout.may("…")`.
    fn collect_operations(folder: &Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the folder is readable").path();
            if path.is_dir() {
                collect_operations(&path, names);
            } else {
                let text = std::fs::read_to_string(&path).expect("a template is a text");
                let parts = text.split("layout.may(\"").skip(1);
                names.extend(parts.filter_map(|part| part.split('"').next().map(ToOwned::to_owned)));
            }
        }
    }

    #[test]
    fn every_page_of_the_menus_has_a_shortcut_of_its_own() {
        let all = [SERVER_PAGES, ACCOUNT_PAGES, OPERATOR_PAGES, INBOX_PAGES].concat();
        let mut shortcuts: Vec<&str> = all.iter().map(|(.., shortcut)| *shortcut).collect();
        shortcuts.sort_unstable();
        shortcuts.dedup();
        assert_eq!((shortcuts.len(), shortcuts.contains(&"")), (all.len(), false), "{shortcuts:?}");
    }

    #[test]
    fn templates_name_operations_that_exist() {
        let mut names = Vec::new();
        collect_operations(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"), &mut names);
        assert!(names.len() > 50, "{names:?}");
        for name in names {
            assert!(Operation::ALL.iter().any(|known| known.name() == name), "{name}");
        }
    }
}
