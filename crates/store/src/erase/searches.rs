//! Removes people's saved searches that mention an erased address.

use postroad_model::ServerId;

use crate::{Result, Store};

impl Store {
    /// Removes saved searches whose name or query contains one of the spellings (ASCII letters in lower case).
    pub(super) async fn remove_searches(&self, server_id: ServerId, spellings: &[String]) -> Result<()> {
        let text = "SELECT id, name, query FROM saved_searches WHERE server_id = $1 ORDER BY id";
        let read = |row: &crate::sql::Row| Ok((row.int(0)?, row.text(1)?, row.text(2)?));
        for (id, name, query) in self.fetch_all(text, vec![server_id.0.into()], read).await? {
            let texts = [name, query_text(&query)].map(|text| text.to_ascii_lowercase());
            let is_about = |spelling: &String| texts.iter().any(|text| text.contains(spelling.as_str()));
            if spellings.iter().any(is_about) {
                let text = "DELETE FROM saved_searches WHERE server_id = $1 AND id = $2";
                self.overwrite(text, vec![server_id.0.into(), id.into()]).await?;
            }
        }
        Ok(())
    }
}

/// A query string without percent-encoding.
fn query_text(query: &str) -> String {
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let encoded = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(encoded.unwrap_or(*first));
        rest = if encoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_string_is_decoded() {
        assert_eq!(
            query_text("q=to%3Ajane%2bx%40b%C3%BCcher.example&page=1"),
            "q=to:jane+x@bücher.example&page=1"
        );
        assert_eq!(query_text("100%"), "100%");
        assert_eq!(query_text("%zz%4"), "%zz%4");
    }
}
