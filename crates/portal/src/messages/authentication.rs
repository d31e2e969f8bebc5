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

/// Empty if the server does not have the sender's domain.
pub(super) async fn explain(visit: &Visit, server: i64, from: &str) -> Result<Vec<MethodRow>, Problem> {
    let caller = visit.caller(server, Operation::DomainsGet).await?;
    let domain = from.rsplit_once('@').map_or(from, |(_, domain)| domain);
    let found = visit.app().domain_authentication(&caller, domain).await?;
    Ok(found.map_or_else(Vec::new, |found| rows(&found)))
}

fn rows(found: &Authentication) -> Vec<MethodRow> {
    let Authentication { domain, return_path, selectors, .. } = found;
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
    let dkim = if selectors.is_empty() {
        format!("Only this service signs: no key of {domain} is in the DNS, or the domain is not verified.")
    } else {
        let label = if selectors.len() == 1 { "selector" } else { "selectors" };
        format!(
            "Signed for d={domain} with the {label} {}. The signature is added when the message is delivered.",
            selectors.join(", ")
        )
    };
    let policy = match found.dmarc {
        RecordStatus::Verified => format!("{domain} publishes a DMARC policy."),
        RecordStatus::Pending => format!("The DMARC record of {domain} was not checked yet."),
        _ => format!("The DMARC record of {domain} is missing or wrong: Gmail and Yahoo expect one."),
    };
    let dmarc = if found.is_aligned() {
        format!("Passes: one aligned method is enough. {policy}")
    } else {
        format!("Fails: neither method vouches for {domain}. {policy}")
    };
    vec![
        row("SPF", found.is_return_path_own, "Aligned", "Not aligned", spf),
        row("DKIM", !selectors.is_empty(), "Aligned", "Not aligned", dkim),
        row("DMARC", found.is_aligned(), "Passes", "Fails", dmarc),
    ]
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
            |found: &Authentication| rows(found).into_iter().map(|row| row.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&found(false, &["a", "b"])), ["Not aligned", "Aligned", "Passes"]);
        assert_eq!(verdicts(&found(true, &[])), ["Aligned", "Not aligned", "Passes"]);
        assert_eq!(verdicts(&found(false, &[])), ["Not aligned", "Not aligned", "Fails"]);
    }
}
