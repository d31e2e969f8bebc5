//! Headers with which a mail client offers one-click unsubscription, at our own URL (RFC 2369, RFC 8058).

/// Both headers, each with its line ending. `mailto` is an address without its scheme.
pub fn one_click_headers(url: &str, mailto: Option<&str>) -> String {
    let mailto = mailto.map(|address| format!(",\r\n <mailto:{address}>")).unwrap_or_default();
    format!("List-Unsubscribe: <{url}>{mailto}\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_https_url_comes_before_the_mailto_url() {
        insta::assert_snapshot!(one_click_headers("https://track.example.net/u/abc", Some("leave@example.com")).replace("\r\n", "|\n"), @r"
        List-Unsubscribe: <https://track.example.net/u/abc>,|
         <mailto:leave@example.com>|
        List-Unsubscribe-Post: List-Unsubscribe=One-Click|
        ");
    }
}
