//! Request of send/message for the OpenAPI document. `message::read` reads it; a test compares the field names
//! of both.

use postroad_openapi_macros::request_fields;

/// E-mail to compose. Needs at least one of `to`, `cc`, `bcc` and one of `plain_body`, `html_body`, `template`.
#[request_fields]
#[schema(example = json!({
    "to": ["Ann <ann@example.net>"],
    "from": "Shop <shop@example.com>",
    "subject": "Your order 1234",
    "plain_body": "Thank you for your order.",
    "html_body": "<p>Thank you for your order.</p>",
    "tag": "order"
}))]
pub(crate) struct SendMessageIn {
    /// Recipients, at most 50.
    to: Option<AddressesIn>,
    /// Copy recipients, at most 50.
    cc: Option<AddressesIn>,
    /// Blind copy recipients, at most 50; not visible to others.
    bcc: Option<AddressesIn>,
    /// `address` or `Name <address>`; its domain must be verified for the server.
    from: String,
    /// Sender header, if it differs from `from`; its domain must be verified too.
    sender: Option<String>,
    /// Address for replies.
    reply_to: Option<String>,
    /// Must be present, but may be empty. With a `template` it may be left out; a non-empty subject overrides the template's.
    subject: Option<String>,
    /// For filtering in analytics, at most 255 bytes.
    tag: Option<String>,
    /// Text of the mail. With a `template`, the bodies come from the template and must be left out.
    plain_body: Option<String>,
    /// HTML of the mail.
    html_body: Option<String>,
    /// Files and inline images, at most 100 unless the operator has changed the limit.
    attachments: Option<Vec<AttachmentIn>>,
    /// Additional headers. Headers that a parameter sets (`Subject`, `From`, `To` …) are ignored, with a warning.
    headers: Option<std::collections::BTreeMap<String, HeaderValueIn>>,
    /// Marks a bounce response: sent with the empty envelope sender.
    bounce: Option<bool>,
    /// Template to use instead of the bodies.
    template: Option<TemplateIn>,
    /// At most 10 pairs, returned with the message and its events.
    metadata: Option<std::collections::BTreeMap<String, String>>,
    /// Delivery time, at most 30 days ahead (RFC 3339).
    #[schema(format = "date-time")]
    send_at: Option<String>,
    /// No delivery attempts after this time (RFC 3339).
    #[schema(format = "date-time")]
    expires_at: Option<String>,
    track: Option<TrackIn>,
    /// Name of the IP pool to send from.
    ip_pool: Option<String>,
    /// Deliver over verified TLS, or not at all.
    require_tls: Option<bool>,
    list_unsubscribe: Option<ListUnsubscribeIn>,
    /// Alternative to the header Idempotency-Key.
    #[schema(min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
}

/// Addresses, each as `address` or `Name <address>`.
#[request_fields]
#[serde(untagged)]
pub(crate) enum AddressesIn {
    List(Vec<String>),
    /// Separated by commas.
    Text(String),
}

/// File, or an inline image of the HTML body.
#[request_fields]
pub(crate) struct AttachmentIn {
    /// File name.
    name: String,
    /// MIME type; `application/octet-stream` if absent.
    content_type: Option<String>,
    /// Content of the file in base64.
    data: String,
    /// For an inline image: the id that `cid:` URLs in the HTML refer to.
    content_id: Option<String>,
}

/// Value of a header; a list for a header that occurs several times.
#[request_fields]
#[serde(untagged)]
pub(crate) enum HeaderValueIn {
    Text(String),
    Number(f64),
    Several(Vec<String>),
}

/// Template, named by `id` or `alias`.
#[request_fields]
pub(crate) struct TemplateIn {
    /// Id of the template, as a number or a text; an alias is accepted here too.
    id: Option<TemplateIdIn>,
    /// Alias of the template, if there is no `id`.
    alias: Option<String>,
    /// Values of the template's variables, at most 1 MiB of JSON.
    #[schema(value_type = Option<Object>)]
    model: Option<serde_json::Value>,
    /// Language tag such as `de-AT`. Texts that it lacks come from `de`, then from the default language.
    locale: Option<String>,
}

#[request_fields]
#[serde(untagged)]
pub(crate) enum TemplateIdIn {
    Number(i64),
    Text(String),
}

/// Overrides the settings of server and domain.
#[request_fields]
pub(crate) struct TrackIn {
    /// Whether opens are recorded, by a picture in the HTML.
    opens: Option<bool>,
    /// Whether clicks are recorded, by replaced links.
    clicks: Option<bool>,
}

/// The List-Unsubscribe header (RFC 2369); `url`, `mailto` or both.
#[request_fields]
pub(crate) struct ListUnsubscribeIn {
    /// http or https URL where the recipient unsubscribes.
    #[schema(format = "uri")]
    url: Option<String>,
    /// Address or `mailto:` URL that takes unsubscriptions by mail.
    mailto: Option<String>,
    /// One-click unsubscription (RFC 8058) at your https `url`; without a `url`, Postroad adds a link that suppresses the
    /// recipient.
    one_click: Option<bool>,
}
