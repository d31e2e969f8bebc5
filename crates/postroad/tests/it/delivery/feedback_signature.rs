//! Headers for feedback loops, and the installation's signature for receivers that report to the DKIM signer.

use std::io::Write as _;

use postroad_testkit::dkim_verifier;
use postroad_testkit::smtp_peer::Script;
use serde_json::json;
use tempfile::NamedTempFile;

use super::inbox::dkim_records;
use super::outside::Outside;
use crate::world::{Engine, World, both_engines, good_but};

/// Signing domains of the message's DKIM signatures from the top, and the verdict on each.
fn signatures(world: &World, message: &str) -> (Vec<String>, Vec<bool>) {
    let unfolded = message.replace("\r\n\t", " ");
    let signatures = unfolded.split("\r\n").filter(|line| line.starts_with("DKIM-Signature:"));
    let domain = |line: &str| {
        let domain = line.split(';').find_map(|tag| tag.trim().strip_prefix("d="));
        domain.expect("it names its domain").to_owned()
    };
    let mut records = dkim_records(&world.admin(&["domain", "records", "example.test"]));
    records.extend(dkim_records(&world.admin(&["domain", "records", "--installation"])));
    let records: Vec<(&str, &str)> = records.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    (signatures.map(domain).collect(), dkim_verifier::verify(message.as_bytes(), &records))
}

fn header_values<'a>(message: &'a str, name: &str) -> Vec<&'a str> {
    let head = message.split("\r\n\r\n").next().unwrap();
    let start = format!("{name}: ");
    head.split("\r\n").filter_map(|line| line.strip_prefix(start.as_str())).collect()
}

both_engines!(
    only_receivers_that_report_to_signers_get_the_installations_signature,
    headers_that_the_sender_sets_are_kept_and_signed
);

async fn only_receivers_that_report_to_signers_get_the_installations_signature(engine: Engine) {
    let outside = Outside::new();
    let usual = outside.site("usual.example", Script::new());
    let reporting = outside.site("reporting.example", Script::new());
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "[reporting]\nmx = [\"reporting.example\"]\nfeedback_by_dkim = true").unwrap();
    let envs = [("POSTROAD_DELIVERY_PROVIDERS_FILE", file.path().to_str().unwrap())];
    let world = outside.start(engine, &envs);
    // One send goes to both kinds of receivers.
    let send =
        json!({"to": ["a@usual.example", "b@usual.example", "c@reporting.example"], "tag": "Wel come:1"});
    world.accepted(&good_but(send)).await;
    usual.wait_until(|record| record.messages.len() == 2).await;
    reporting.wait_until(|record| record.messages.len() == 1).await;

    let text = |message: &postroad_testkit::smtp_peer::ReceivedMessage| {
        String::from_utf8(message.bytes.to_vec()).unwrap()
    };
    let usual: Vec<String> = usual.messages().iter().map(text).collect();
    let reported = text(&reporting.messages()[0]);
    for message in &usual {
        assert_eq!(signatures(&world, message), (vec!["example.test".to_owned()], vec![true]), "{message}");
        assert!(header_values(message, "CFBL-Address").is_empty(), "nobody signs for our address: {message}");
    }
    let both = vec!["example.test".to_owned(), "postroad.localhost".to_owned()];
    assert_eq!(signatures(&world, &reported), (both, vec![true, true]), "{reported}");
    assert_eq!(header_values(&reported, "CFBL-Address"), ["fbl@postroad.localhost; report=arf"]);

    let ids = header_values(&reported, "Feedback-ID");
    assert_eq!(header_values(&reported, "CFBL-Feedback-ID"), ids, "RFC 9477: beside the address");
    assert!(header_values(&usual[0], "CFBL-Feedback-ID").is_empty());
    let fields: Vec<&str> = ids[0].split(':').collect();
    let [campaign, server, account, installation] = fields[..] else { panic!("{ids:?}") };
    assert_eq!(campaign, "Wel_come_1");
    assert!(server.starts_with('s') && account.starts_with('a'), "{ids:?}");
    assert!((5..=15).contains(&installation.len()), "{ids:?}");
    assert_eq!(header_values(&usual[0], "Feedback-ID"), ids);
    // The signatures break if somebody adds a second Feedback-ID, or changes a header for feedback.
    let second = format!("Feedback-ID: x:y:z:other\r\n{reported}");
    assert_eq!(signatures(&world, &second).1, [false, false]);
    let other = reported.replace("fbl@postroad.localhost", "fbl@else.example");
    assert_eq!(signatures(&world, &other).1, [false, false]);
    let renamed = reported.replace("CFBL-Feedback-ID: Wel", "CFBL-Feedback-ID: Fare");
    assert_eq!(signatures(&world, &renamed).1, [false, false]);
    // Each copy has its own identifier.
    let own: std::collections::HashSet<&str> =
        usual.iter().chain([&reported]).map(|message| header_values(message, "X-Postroad-Id")[0]).collect();
    assert_eq!(own.len(), 3);
}

async fn headers_that_the_sender_sets_are_kept_and_signed(engine: Engine) {
    let outside = Outside::new();
    let peer = outside.site("usual.example", Script::new());
    let world = outside.start(engine, &[]);
    let headers = json!({"Feedback-ID": "a:b:c:sender", "CFBL-Address": "fbl@example.test; report=arf",
                             "List-Unsubscribe": "<https://example.test/u>",
                             "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"});
    world.accepted(&good_but(json!({"to": ["a@usual.example"], "headers": headers}))).await;
    peer.wait_until(|record| record.messages.len() == 1).await;
    let message = String::from_utf8(peer.messages()[0].bytes.to_vec()).unwrap();
    assert_eq!(header_values(&message, "Feedback-ID"), ["a:b:c:sender"]);
    assert_eq!(header_values(&message, "CFBL-Address"), ["fbl@example.test; report=arf"]);
    assert_eq!(signatures(&world, &message).1, [true]);
    for changed in ["c:sender", "fbl@example.test", "example.test/u", "One-Click"] {
        let forged = message.replace(changed, "x");
        assert_eq!(signatures(&world, &forged).1, [false], "{changed} is signed");
    }
}
