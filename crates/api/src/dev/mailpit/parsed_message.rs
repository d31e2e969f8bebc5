//! A message whose parts are parsed when first needed: many searches need only headers.

use std::cell::OnceCell;

use postroad_app::{Correspondents, MessageView, NamedAddress, correspondents, view_message, visible_text};

use super::group::Group;

#[derive(Debug)]
pub(super) struct ParsedMessage<'a> {
    pub(super) group: &'a Group,
    correspondents: OnceCell<Correspondents>,
    view: OnceCell<MessageView>,
    text: OnceCell<String>,
}

impl<'a> ParsedMessage<'a> {
    pub(super) fn new(group: &'a Group) -> Self {
        Self { group, correspondents: OnceCell::new(), view: OnceCell::new(), text: OnceCell::new() }
    }

    pub(super) fn correspondents(&self) -> &Correspondents {
        self.correspondents.get_or_init(|| correspondents(&self.group.first().raw))
    }

    pub(super) fn view(&self) -> &MessageView {
        self.view.get_or_init(|| view_message(&self.group.first().raw))
    }

    /// The visible text.
    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| visible_text(self.view()))
    }

    /// Recipients that are neither in To nor in Cc.
    pub(super) fn bcc(&self) -> Vec<NamedAddress> {
        let Correspondents { to, cc, .. } = self.correspondents();
        let is_named =
            |address: &str| to.iter().chain(cc).any(|named| named.address.eq_ignore_ascii_case(address));
        let hidden = self.group.recipients().filter(|address| !is_named(address));
        hidden.map(|address| NamedAddress { name: String::new(), address: address.to_owned() }).collect()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (_, values) = self.view().headers.iter().find(|(known, _)| known == name)?;
        values.first().map(String::as_str)
    }
}
