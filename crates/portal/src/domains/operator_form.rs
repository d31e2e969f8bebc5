//! Fields of the form by which the operator sets how a domain's mail is tracked.

use postroad_store::DomainTracking;

/// An option of a switch: on, off, or as the server has it.
pub(super) struct SwitchChoice {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

/// Settings of a domain in the operator's form.
pub(super) struct OperatorForm {
    pub(super) opens: Vec<SwitchChoice>,
    pub(super) clicks: Vec<SwitchChoice>,
    pub(super) host: String,
}

impl OperatorForm {
    pub(super) fn of(tracking: &DomainTracking) -> Self {
        let host = tracking.host.clone().unwrap_or_default();
        Self { opens: choices(tracking.opens), clicks: choices(tracking.clicks), host }
    }
}

fn choices(setting: Option<bool>) -> Vec<SwitchChoice> {
    [("", "as the server has it", None), ("on", "on", Some(true)), ("off", "off", Some(false))]
        .map(|(value, label, meaning)| SwitchChoice { value, label, is_chosen: setting == meaning })
        .into()
}
