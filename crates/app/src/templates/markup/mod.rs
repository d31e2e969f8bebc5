//! Conversion of a template's HTML when it is saved: MJML becomes HTML, style sheets are inlined, and a plain text is
//! generated. Template tags are preserved.

mod css;
mod html_state;
mod inline;
mod mjml;
mod nesting;
mod plain_text;
mod protect;

pub(super) use css::{check_css, position_of_styles};
pub(super) use inline::{StyleElements, inline_css};
pub(super) use mjml::mjml_to_html;
pub(super) use plain_text::plain_text;
