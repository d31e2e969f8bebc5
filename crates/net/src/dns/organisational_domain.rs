//! The registered domain of a name, by the public suffix list.

use postroad_model::DomainName;

/// The public suffix of `domain` with one more label, or `domain` itself if it is a public suffix.
///
/// Not generic, so that the list, thousands of functions of `psl`, is compiled in this crate only.
pub fn organisational_domain(domain: &DomainName) -> &str {
    psl::domain_str(domain.as_str()).unwrap_or(domain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn organisational_domain_is_one_label_below_the_public_suffix() {
        for (domain, organisational) in [
            ("example.com", "example.com"),
            ("mail.eu.example.com", "example.com"),
            ("mail.example.co.uk", "example.co.uk"),
            ("shop.example.com.au", "example.com.au"),
            // A suffix of private domains, a wildcard rule and its exception.
            ("mail.someone.github.io", "someone.github.io"),
            ("mail.example.anything.ck", "example.anything.ck"),
            ("mail.www.ck", "www.ck"),
            // Punycode.
            ("mail.example.xn--p1ai", "example.xn--p1ai"),
            // Not in the list: the last label is the suffix.
            ("mail.example.unlisted", "example.unlisted"),
            // Public suffixes themselves.
            ("co.uk", "co.uk"),
            ("github.io", "github.io"),
        ] {
            let domain = DomainName::parse(domain).expect("a domain");
            assert_eq!(organisational_domain(&domain), organisational);
        }
    }
}
