//! Templates that customers write: checked, built and rendered.

use postroad_app::templates::StandaloneTemplate;
use postroad_store::{TemplateContent, TemplateFormat, TemplateTexts};

use super::{Target, texts};

pub(super) const TARGET: Target = Target {
    name: "templates",
    run,
    seeds: || {
        texts(&[
            "<style>p { color: red }</style><p class=\"{{ a }}\">{{ a|upper }}</p>",
            "{% for r in rows %}<tr><td>{{ r.n * 2 }}</td></tr>{% endfor %}{% if a is defined %}x{% endif %}",
            "{{ a ~ 'x' }}{{ rows|map(attribute='n')|join(', ') }}{{ n|currency('EUR') }}{{ at|date('long') }}",
            "<mjml><mj-body><mj-section><mj-column><mj-text>{{ a }}</mj-text></mj-column></mj-section></mj-body></mjml>",
        ])
    },
    frames: &["{{ {} }}", "{% set x = {} %}", "<p title=\"{}\">x</p>", "<style>{}</style><p>x</p>", "{}"],
};

/// Longer templates are refused before they are parsed.
const BYTES_MAX: usize = 512 << 10;

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(BYTES_MAX)]) else { return };
    for format in [TemplateFormat::Html, TemplateFormat::Mjml] {
        let html = TemplateTexts {
            subject: Some("x".to_owned()),
            html_body: Some(text.to_owned()),
            ..TemplateTexts::default()
        };
        let content = TemplateContent { texts: html, format, inline_css: true, ..TemplateContent::default() };
        if let Ok(template) = StandaloneTemplate::build(content) {
            let model = template.suggested_model();
            let _ = template.render(&model, Some("de-AT"));
        }
    }
}
