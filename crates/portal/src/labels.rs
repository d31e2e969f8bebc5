//! Problems of fields, with the labels of the forms. `app` names fields and endpoints as the API does; people see
//! labels.

use postroad_app::FieldProblem;

/// Names of fields in the API, and the labels of the forms. For a nested field, the last name is looked up.
const LABELS: &[(&str, &str)] = &[
    ("account", "The account"),
    ("action", "The action"),
    ("address", "The address"),
    ("algorithm", "The algorithm"),
    ("alias", "The alias"),
    ("allow", "The list of networks"),
    ("bodies_days", "The number of days that content is kept"),
    ("daily_limit", "The number of messages a day"),
    ("details", "The note"),
    ("email", "The e-mail address"),
    ("events", "The list of events"),
    ("excluded_hosts", "The list of hosts"),
    ("expires_at", "The last day"),
    ("format", "The format"),
    ("from", "The address in From"),
    ("helo", "The HELO name"),
    ("host", "The host"),
    ("hourly_limit", "The number of messages an hour"),
    ("html_body", "The HTML"),
    ("id", "This"),
    ("ip_pool", "The pool"),
    ("layout", "The layout"),
    ("locales", "The list of languages"),
    ("messages_days", "The number of days that messages are kept"),
    ("mode", "The mode"),
    ("monthly_limit", "The number of messages a month"),
    ("name", "The name"),
    ("operator", "The operator's right"),
    ("origin_message_id", "The id of the message"),
    ("password", "The password"),
    ("per_minute", "The number of messages a minute"),
    ("plain_body", "The text"),
    ("pool", "The pool"),
    ("private_key", "The private key"),
    ("q", "The search"),
    ("query", "The search"),
    ("reason", "The reason"),
    ("role", "The role"),
    ("sample_model", "The sample model"),
    ("scope", "What to stop"),
    ("scopes", "The list of scopes"),
    ("selector", "The selector"),
    ("send_at", "The time"),
    ("send_rate", "The send rate"),
    ("subject", "The subject"),
    ("time", "The number of hours"),
    ("to", "The address in To"),
    ("url", "The address"),
    ("weight", "The weight"),
];

/// Phrases for programs, and what people read instead.
const PHRASES: &[(&str, &str)] = &[
    ("; enable it with webhooks/update first", ": enable it first"),
    (" parameter is required but is missing", " is missing"),
    (", or `none`", ", or empty"),
    ("than the caller's", "than yours"),
    ("than the caller", "than you"),
];

/// A whole sentence about one field.
pub(crate) fn sentence(problem: &FieldProblem) -> String {
    let mut text = problem.message.trim_end_matches('.').to_owned();
    for (of_api, of_portal) in PHRASES {
        text = text.replace(of_api, of_portal);
    }
    // Text between backticks is a field of the API, or a value.
    let mut plain = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 0 {
            plain.push_str(part);
            continue;
        }
        match (label(part), plain.is_empty()) {
            (Some(label), true) => plain.push_str(label),
            (Some(label), false) => plain.push_str(label.trim_start_matches("The ")),
            (None, _) => plain.extend(["“", part, "”"]),
        }
    }
    let mut letters = plain.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Label of a field such as `name`, `retention/bodies_days` or `tracking/excluded_hosts/1`.
fn label(field: &str) -> Option<&'static str> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let name = field.rsplit('/').find(|part| !is_number(part))?;
    LABELS.iter().find(|(known, _)| *known == name).map(|(_, label)| *label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_of_the_api_become_labels() {
        for (message, expected) in [
            (
                "`name` should have 1 to 100 characters, and no control characters",
                "The name should have 1 to 100 characters, and no control characters.",
            ),
            (
                "`send_rate` should be a rate such as `10/s`, `100/m` or `1000/h`, or `none`",
                "The send rate should be a rate such as “10/s”, “100/m” or “1000/h”, or empty.",
            ),
            (
                "`retention/bodies_days` may be at most 7: the operator of the service set this ceiling",
                "The number of days that content is kept may be at most 7: the operator of the service set this ceiling.",
            ),
            (
                "`tracking/excluded_hosts/1` is not a host name: it is empty",
                "The list of hosts is not a host name: it is empty.",
            ),
            ("`url`: it has no host.", "The address: it has no host."),
            (
                "Another template of the server has this `name`",
                "Another template of the server has this name.",
            ),
            (
                "the webhook is disabled; enable it with webhooks/update first",
                "The webhook is disabled: enable it first.",
            ),
            ("`helo` parameter is required but is missing", "The HELO name is missing."),
            ("`q` has the unknown key `colour`", "The search has the unknown key “colour”."),
            ("", "."),
        ] {
            assert_eq!(sentence(&FieldProblem::new("/x", message)), expected);
        }
    }
}
