//! Converts MJML to HTML.

use mrml::prelude::parser::noop_loader::NoopIncludeLoader;
use mrml::prelude::parser::{Error, ParserOptions};
use mrml::prelude::render::RenderOptions;

use super::nesting::{Syntax, check_nesting};
use super::protect::{position_of, protect};
use crate::templates::language::SourcePosition;

const ELEMENTS_MAX: usize = 5_000;

/// Converts MJML to HTML. Reads no files and fetches nothing: `mj-include` is refused.
pub(crate) fn mjml_to_html(source: &str) -> Result<String, (SourcePosition, String)> {
    let problem_of_whole = |message: String| (SourcePosition { line: 0, column: 0 }, message);
    let protected = protect(source);
    let position_at = |at: usize| position_of(source, protected.offset_in_source(at));
    match check_nesting(&protected.text, Syntax::Mjml) {
        Err(at) => {
            let message = "this is not valid MJML: an element does not end where it should, or elements are nested too deeply";
            return Err((position_at(at), message.to_owned()));
        }
        Ok(nesting) if nesting.elements > ELEMENTS_MAX => {
            return Err(problem_of_whole(format!("the MJML has more than {ELEMENTS_MAX} elements")));
        }
        Ok(_) => {}
    }
    let options = ParserOptions { include_loader: Box::new(NoopIncludeLoader) };
    let parsed = mrml::parse_with_options(&protected.text, &options).map_err(|error| {
        let text = error.to_string();
        // ` in root template` is followed by a position in the protected text, which means nothing to the author.
        let reason = text.split(" in root template").next().unwrap_or_default();
        let message = format!("this is not valid MJML: {reason}");
        offset_of(&error, &protected.text)
            .map_or_else(|| problem_of_whole(message.clone()), |at| (position_at(at), message.clone()))
    })?;
    let html = parsed
        .element
        .render(&RenderOptions::default())
        .map_err(|error| problem_of_whole(format!("this MJML cannot be made into HTML: {error}")))?;
    Ok(protected.restore(&html))
}

/// Offset of the error in `text`, if the parser reports a position.
fn offset_of(error: &Error, text: &str) -> Option<usize> {
    match error {
        Error::UnexpectedElement { position, .. }
        | Error::UnexpectedToken { position, .. }
        | Error::MissingAttribute { position, .. }
        | Error::InvalidAttribute { position, .. }
        | Error::InvalidFormat { position, .. }
        | Error::IncludeLoaderError { position, .. } => Some(position.start),
        Error::EndOfStream { .. } => Some(text.len()),
        Error::NoRootNode => Some(0),
        Error::ParserError { source, .. } => {
            let position = source.pos();
            let lines = text.split_inclusive('\n').take(position.row.saturating_sub(1) as usize);
            Some(lines.map(str::len).sum::<usize>() + position.col.saturating_sub(1) as usize)
        }
        Error::SizeLimit { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_tags_survive_the_conversion_and_includes_are_refused() {
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
