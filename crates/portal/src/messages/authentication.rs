//! The authentication of a message explained: SPF, DKIM and DMARC, each with a verdict and a sentence.

use postroad_app::access::Operation;
use postroad_app::domains::Authentication;
use postroad_app::domains::check::RecordStatus;

use crate::problem::Problem;
use crate::visit::Visit;

pub(super) struct MethodRow {
    pub(super) name: &'static str,
    pub(super) verdict: &'static str,
    pub(super) tone: &'static str,
    pub(super) text: String,
}

/// Explains the authentication of mail from `from`. `keys` are the DNS names of the DKIM keys that signed the message;
/// empty if it was not signed yet. Returns no rows if the server does not have the sender's domain.
pub(super) async fn explain(
    visit: &Visit,
    server: i64,
    from: &str,
    keys: &[String],
) -> Result<Vec<MethodRow>, Problem> {
    let caller = visit.caller(server, Operation::DomainsGet).await?;
    let domain = from.rsplit_once('@').map_or(from, |(_, domain)| domain);
    let found = visit.app().domain_authentication(&caller, domain).await?;
    Ok(found.map_or_else(Vec::new, |found| rows(&found, keys)))
}

fn rows(found: &Authentication, keys: &[String]) -> Vec<MethodRow> {
    let Authentication { domain, return_path, selectors, .. } = found;
    let is_dkim_aligned =
        if keys.is_empty() { !selectors.is_empty() } else { !own_selectors(domain, keys).is_empty() };
    // RFC 7489 section 3.1: DMARC passes if SPF or DKIM passes for the domain in From.
    let is_aligned = found.is_return_path_own || is_dkim_aligned;
    let row = |name, is_good, good, other, text| MethodRow {
        name,
        verdict: if is_good { good } else { other },
        tone: if is_good { "good" } else { "warn" },
        text,
    };
    let spf = if found.is_return_path_own {
        format!(
            "The envelope sender is at {return_path}, a name of {domain}: SPF vouches for the domain in From."
        )
    } else {
        format!(
            "The envelope sender is at {return_path}, a name of this service: SPF passes, for another name than the one in From. The return-path record of {domain} aligns it."
        )
    };
    let dkim = if !keys.is_empty() {
        signed(found, keys)
    } else if selectors.is_empty() {
        format!("Only this service signs: no key of {domain} is in the DNS, or the domain is not verified.")
    } else {
        format!(
            "Signed for d={domain} with {}. The signature is added when the message is delivered.",
            named(selectors)
        )
    };
    let policy = match found.dmarc {
        RecordStatus::Verified => format!("{domain} publishes a DMARC policy."),
        RecordStatus::Pending => format!("The DMARC record of {domain} was not checked yet."),
        RecordStatus::DnsError => format!("The DNS gave no answer about the DMARC record of {domain}."),
        _ => format!("The DMARC record of {domain} is missing or wrong: Gmail and Yahoo expect one."),
    };
    let is_checked = !matches!(found.dmarc, RecordStatus::Pending | RecordStatus::DnsError);
    let dmarc = match (is_aligned, is_checked) {
        (true, true) => format!("Passes: one aligned method is enough. {policy}"),
        (true, false) => format!("One aligned method is enough. {policy}"),
        (false, _) => format!("Neither method vouches for {domain}. {policy}"),
    };
    let mut rows = vec![
        row("SPF", found.is_return_path_own, "Aligned", "Not aligned", spf),
        row("DKIM", is_dkim_aligned, "Aligned", "Not aligned", dkim),
        row("DMARC", is_aligned, "Passes", "Fails", dmarc),
    ];
    if is_aligned && !is_checked {
        rows[2].verdict = "Not checked";
        rows[2].tone = "off";
    }
    rows
}

/// Selectors of the keys that belong to the domain.
fn own_selectors(domain: &str, keys: &[String]) -> Vec<String> {
    let suffix = format!("._domainkey.{domain}");
    keys.iter().filter_map(|key| key.strip_suffix(&suffix)).map(str::to_owned).collect()
}

/// Sentence about the keys that signed a message, which may have been replaced since.
fn signed(found: &Authentication, keys: &[String]) -> String {
    let Authentication { domain, selectors, .. } = found;
    let own = own_selectors(domain, keys);
    if own.is_empty() {
        return format!("This message was signed with {}, not with a key of {domain}.", keys.join(", "));
    }
    let text = format!("This message was signed for d={domain} with {}.", named(&own));
    if own == *selectors || selectors.is_empty() {
        return text;
    }
    format!("{text} Mail of {domain} is signed with {} now.", named(selectors))
}

fn named(selectors: &[String]) -> String {
    let label = if selectors.len() == 1 { "selector" } else { "selectors" };
    format!("the {label} {}", selectors.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_aligned_method_satisfies_dmarc() {
        let found = |is_return_path_own, selectors: &[&str]| Authentication {
            domain: "example.com".to_owned(),
            return_path: "rp.example.com".to_owned(),
            is_return_path_own,
            selectors: selectors.iter().map(|&selector| selector.to_owned()).collect(),
            dmarc: RecordStatus::Verified,
        };
        let verdicts =
            |found: &Authentication| rows(found, &[]).into_iter().map(|row| row.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&found(false, &["a", "b"])), ["Not aligned", "Aligned", "Passes"]);
        assert_eq!(verdicts(&found(true, &[])), ["Aligned", "Not aligned", "Passes"]);
        assert_eq!(verdicts(&found(false, &[])), ["Not aligned", "Not aligned", "Fails"]);
        let unknown = Authentication { dmarc: RecordStatus::Pending, ..found(false, &["a"]) };
        assert_eq!(verdicts(&unknown), ["Not aligned", "Aligned", "Not checked"]);
        let signed = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
            rows(&found(false, &["new"]), &keys).swap_remove(1)
        };
        let row = signed(&["old._domainkey.example.com", "pr._domainkey.mail.example.net"]);
        assert_eq!(row.verdict, "Aligned");
        assert_eq!(
            row.text,
            "This message was signed for d=example.com with the selector old. Mail of example.com is signed with the selector new now."
        );
        assert_eq!(signed(&["pr._domainkey.mail.example.net"]).verdict, "Not aligned");
    }
}
