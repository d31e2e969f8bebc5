//! Name of a set of mail hosts: identifies a site, also in logs and commands.
//!
//! Two sets must never share a name, because all mail for a site shares connections. Host names contain none of the
//! separators used here (`mx.rs` checks that), so a name is unambiguous.

use aws_lc_rs::digest::{SHA256, digest};

const READABLE_BYTES_MAX: usize = 120;

pub(super) fn name_of<'a>(hosts: impl Iterator<Item = &'a str>) -> String {
    let mut hosts: Vec<&str> = hosts.collect();
    hosts.sort_unstable();
    hosts.dedup();
    let readable = fold_common_suffix(&hosts);
    if readable.len() <= READABLE_BYTES_MAX {
        return readable;
    }
    // Half of SHA-256 is enough: nobody can construct a second set with the same name.
    let hash = digest(&SHA256, hosts.join(",").as_bytes());
    let hash = hash.as_ref().first_chunk().expect("SHA-256 has more than 16 bytes");
    let hash = u128::from_be_bytes(*hash);
    let first = hosts.first().copied().unwrap_or_default();
    format!("{first}+{}#{hash:032x}", hosts.len() - 1)
}

/// Hosts with a common suffix as one name: `(alt1|alt2|@).gmail-smtp-in.l.google.com`, where `@` is the suffix itself.
fn fold_common_suffix(hosts: &[&str]) -> String {
    let [first, others @ ..] = hosts else { return String::new() };
    let labels: Vec<&str> = first.rsplit('.').collect();
    let common = others.iter().fold(labels.len(), |common, host| {
        labels.iter().zip(host.rsplit('.')).take(common).take_while(|(label, other)| *label == other).count()
    });
    // A shared top-level domain alone is not worth folding.
    if others.is_empty() || common < 2 {
        return hosts.join(",");
    }
    let end_bytes = labels[..common].iter().map(|label| label.len() + 1).sum::<usize>() - 1;
    let end = &first[first.len() - end_bytes..];
    let heads: Vec<&str> = hosts
        .iter()
        .map(|host| match host[..host.len() - end_bytes].trim_end_matches('.') {
            "" => "@",
            head => head,
        })
        .collect();
    format!("({}).{end}", heads.join("|"))
}

#[cfg(test)]
mod tests {
    use super::name_of;

    fn site(hosts: &[&str]) -> String {
        name_of(hosts.iter().copied())
    }

    #[test]
    fn hosts_with_a_common_suffix_are_folded() {
        let google = [
            "gmail-smtp-in.l.google.com",
            "alt1.gmail-smtp-in.l.google.com",
            "alt2.gmail-smtp-in.l.google.com",
            "alt3.gmail-smtp-in.l.google.com",
            "alt4.gmail-smtp-in.l.google.com",
        ];
        assert_eq!(site(&google), "(alt1|alt2|alt3|alt4|@).gmail-smtp-in.l.google.com");
        assert_eq!(site(&["mta7.am0.yahoodns.net", "mta5.am0.yahoodns.net"]), "(mta5|mta7).am0.yahoodns.net");
        assert_eq!(
            site(&["example-com.mail.protection.outlook.com"]),
            "example-com.mail.protection.outlook.com"
        );
        assert_eq!(site(&["mx.example.com", "mx.example.net"]), "mx.example.com,mx.example.net");
        assert_eq!(site(&["mx.example.com", "mx.other.com"]), "mx.example.com,mx.other.com");
        assert_eq!(site(&["amx.example.com", "mx.example.com"]), "(amx|mx).example.com");
    }

    #[test]
    fn the_order_of_hosts_does_not_change_the_name() {
        assert_eq!(site(&["b.example", "a.example", "a.example"]), site(&["a.example", "b.example"]));
        assert_ne!(site(&["a.example.com"]), site(&["a.example.com", "b.example.com"]));
    }

    #[test]
    fn names_of_long_host_sets_are_shortened_and_stay_different() {
        let hosts: Vec<String> = (0..32).map(|number| format!("mail-host-{number:02}.example.com")).collect();
        let all: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let name = site(&all);
        assert!(name.starts_with("mail-host-00.example.com+31#") && name.len() < 120, "{name}");
        let mut changed = all.clone();
        changed[31] = "mail-host-99.example.com";
        assert_ne!(site(&changed), name);
    }
}
