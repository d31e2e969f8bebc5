//! MJML to HTML.

use mrml::prelude::parser::ParserOptions;
use mrml::prelude::parser::noop_loader::NoopIncludeLoader;
use mrml::prelude::render::RenderOptions;

use super::nesting::{Syntax, nesting};
use super::protect::protect;
use crate::templates::language::Place;

const ELEMENTS_MAX: usize = 5_000;

/// Reads no files and fetches nothing: `mj-include` is refused.
pub(crate) fn mjml_to_html(source: &str) -> Result<String, (Place, String)> {
    let whole = |message: String| (Place { line: 0, column: 0 }, message);
    let protected = protect(source);
    match nesting(&protected.text, Syntax::Mjml) {
        None => {
            let message =
                "this is no MJML: an element does not end where it should, or they are nested too deep";
            return Err(whole(message.to_owned()));
        }
        Some(nesting) if nesting.elements > ELEMENTS_MAX => {
            return Err(whole(format!("the MJML has more than {ELEMENTS_MAX} elements")));
        }
        Some(_) => {}
    }
    let options = ParserOptions { include_loader: Box::new(NoopIncludeLoader) };
    let parsed = mrml::parse_with_options(&protected.text, &options)
        .map_err(|error| whole(format!("this is no MJML: {error}")))?;
    let html = parsed
        .element
        .render(&RenderOptions::default())
        .map_err(|error| whole(format!("this MJML cannot be made into HTML: {error}")))?;
    Ok(protected.restore(&html))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_survive_and_includes_are_refused() {
        let mjml = |body: &str| format!("<mjml><mj-body>{body}</mj-body></mjml>");
        let html = mjml_to_html(&mjml(
            "{% for item in items %}<mj-section><mj-column><mj-text>Hello {{ item.name }}</mj-text>\
             <mj-button href=\"{{ item.url }}\">Go</mj-button></mj-column></mj-section>{% endfor %}",
        ))
        .unwrap();
        for part in [
            "{% for item in items %}",
            "Hello {{ item.name }}",
            "href=\"{{ item.url }}\"",
            "{% endfor %}",
            "<table",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(mjml_to_html(&mjml("<mj-include path=\"/etc/passwd\" />")).is_err());
        assert!(mjml_to_html("<p>no MJML</p>").is_err());
    }
}
