//! DMARC policies of the domain and of its organisational domain.

use postroad_app::domains::check::{Purpose, RecordStatus, zone_fragment};

use crate::world::{World, verdict};

const SUGGESTED: &str = "v=DMARC1; p=none; rua=mailto:dmarc-reports@rp.post.example";

async fn check(
    world: World,
    records: &[(&str, &str)],
    status: RecordStatus,
    found: &[&str],
    hint: Option<&str>,
) {
    for (name, record) in records {
        world.server.txt(name, record);
    }
    let check = world.check(Purpose::Dmarc).await;
    assert_eq!(verdict(&check), (status, hint), "{records:?}");
    assert_eq!(check.found, found, "{records:?}");
}

fn subdomain_world() -> World {
    let world = World::new().with_domain("news.shop.example");
    world.server.a("news.shop.example", [198, 51, 100, 1]);
    world
}

#[tokio::test]
async fn any_valid_policy_counts() {
    for policy in [
        "v=DMARC1; p=none",
        "v=DMARC1;p=Reject;",
        " v = DMARC1 ; p = quarantine ; pct=50; unknown=1",
        SUGGESTED,
    ] {
        check(World::new(), &[("_dmarc.shop.example", policy)], RecordStatus::Verified, &[policy], None)
            .await;
    }
    let missing = "There is no such record yet. Add this TXT record at _dmarc.shop.example.";
    check(World::new(), &[], RecordStatus::Missing, &[], Some(missing)).await;
    assert_eq!(World::new().check(Purpose::Dmarc).await.value, SUGGESTED);
}

#[tokio::test]
async fn records_that_are_no_policy_are_named() {
    for (policy, hint) in [
        (
            "v=DMARC1; p=maybe",
            "p=maybe in the DMARC record at _dmarc.shop.example is not a policy. It has to be p=none, p=quarantine or \
             p=reject.",
        ),
        (
            "v=DMARC1; p=none; sp=soft",
            "sp=soft in the DMARC record at _dmarc.shop.example is not a policy. It has to be sp=none, sp=quarantine or \
             sp=reject.",
        ),
        (
            "v=DMARC1; adkim=s",
            "The DMARC record at _dmarc.shop.example has no policy, so receivers ignore it. Add p=none: v=DMARC1; p=none; \
             adkim=s",
        ),
        (
            "v=DMARC1 p=none",
            "The TXT record at _dmarc.shop.example is not a DMARC policy: it must begin with exactly `v=DMARC1;`. Replace \
             it by: v=DMARC1; p=none; rua=mailto:dmarc-reports@rp.post.example",
        ),
        (
            "p=none; v=DMARC1",
            "The TXT record at _dmarc.shop.example is not a DMARC policy: it must begin with exactly `v=DMARC1;`. Replace \
             it by: v=DMARC1; p=none; rua=mailto:dmarc-reports@rp.post.example",
        ),
    ] {
        check(
            World::new(),
            &[("_dmarc.shop.example", policy)],
            RecordStatus::Mismatch,
            &[policy],
            Some(hint),
        )
        .await;
    }
}

#[tokio::test]
async fn a_record_with_a_report_address_but_without_a_policy_counts_as_p_none() {
    let policy = "v=DMARC1; rua=mailto:a@shop.example";
    let hint = "The DMARC record at _dmarc.shop.example has no policy; receivers take it for p=none. Better add \
                p=none: v=DMARC1; p=none; rua=mailto:a@shop.example";
    let records = [("_dmarc.shop.example", policy)];
    check(World::new(), &records, RecordStatus::Verified, &[policy], Some(hint)).await;
}

/// Publishing the suggested value keeps the rest of the record.
#[tokio::test]
async fn the_suggested_value_keeps_existing_tags() {
    let wrong = "v=DMARC1; p=maybe; sp=reject; np=x; rua=mailto:a@shop.example; pct=50";
    let kept = "v=DMARC1; p=none; rua=mailto:b@shop.example";
    for (records, value) in [
        (vec![wrong], "v=DMARC1; p=none; sp=reject; np=none; rua=mailto:a@shop.example; pct=50"),
        (vec!["v=DMARC1; p=reject", kept], kept),
    ] {
        let world = World::new();
        for record in records {
            world.server.txt("_dmarc.shop.example", record);
        }
        let check = world.check(Purpose::Dmarc).await;
        assert_eq!(check.value, value);
        let zone = zone_fragment(&[check]);
        let expected = format!(
            "; replaces the DMARC record that is there: a name has only one\n\
             _dmarc.shop.example. 3600 IN TXT \"{value}\"\n"
        );
        assert_eq!(zone, expected);
    }
}

#[tokio::test]
async fn of_two_records_the_milder_one_is_suggested() {
    let records = ["v=DMARC1; p=reject", "v=DMARC1; p=none; rua=mailto:a@shop.example"];
    let hint = "There are 2 DMARC records at _dmarc.shop.example, so receivers ignore all of them. Keep this one: v=DMARC1; \
                p=none; rua=mailto:a@shop.example";
    let named = records.map(|record| ("_dmarc.shop.example", record));
    check(World::new(), &named, RecordStatus::Multiple, &records, Some(hint)).await;
}

#[tokio::test]
async fn the_policy_of_the_organisational_domain_counts() {
    for (policy, decides) in [
        ("v=DMARC1; p=reject", "p=reject"),
        ("v=DMARC1; p=reject; sp=none", "sp=none"),
        ("v=DMARC1; p=none; sp=quarantine; np=reject", "sp=quarantine"),
    ] {
        let hint = format!("The policy of shop.example ({decides}) counts for this domain too.");
        check(
            subdomain_world(),
            &[("_dmarc.shop.example", policy)],
            RecordStatus::Verified,
            &[policy],
            Some(&hint),
        )
        .await;
    }
    // The organisational domain's policy is not suggested as this domain's own record.
    let world = subdomain_world();
    world.server.txt("_dmarc.shop.example", "v=DMARC1; p=reject; rua=mailto:x@shop.example");
    assert_eq!(world.check(Purpose::Dmarc).await.value, SUGGESTED);
    // Without an address or a mail server the name counts as one that does not exist (RFC 9091).
    let world = World::new().with_domain("news.shop.example");
    let policy = "v=DMARC1; p=none; sp=quarantine; np=reject";
    let hint = "The policy of shop.example (np=reject) counts for this domain too.";
    check(world, &[("_dmarc.shop.example", policy)], RecordStatus::Verified, &[policy], Some(hint)).await;
    // The domain's own record takes precedence.
    let own = "v=DMARC1; p=none";
    let records = [("_dmarc.shop.example", "v=DMARC1; p=reject"), ("_dmarc.news.shop.example", own)];
    check(subdomain_world(), &records, RecordStatus::Verified, &[own], None).await;
    let hint = "sp=x in the DMARC record at _dmarc.shop.example is not a policy. It has to be sp=none, sp=quarantine or \
                sp=reject.";
    let policy = "v=DMARC1; p=none; sp=x";
    check(
        subdomain_world(),
        &[("_dmarc.shop.example", policy)],
        RecordStatus::Mismatch,
        &[policy],
        Some(hint),
    )
    .await;
    let missing = "There is no such record yet. Add this TXT record at _dmarc.news.shop.example.";
    check(subdomain_world(), &[], RecordStatus::Missing, &[], Some(missing)).await;
}

#[tokio::test]
async fn the_public_suffix_list_says_where_a_domain_begins() {
    let world = World::new().with_domain("shop.co.uk");
    world.server.a("shop.co.uk", [198, 51, 100, 1]);
    let missing = "There is no such record yet. Add this TXT record at _dmarc.shop.co.uk.";
    check(world, &[("_dmarc.co.uk", "v=DMARC1; p=none")], RecordStatus::Missing, &[], Some(missing)).await;
}

#[tokio::test]
async fn a_wildcard_text_is_no_policy() {
    let hint = "A wildcard record (*.shop.example) answers for _dmarc.shop.example. Add a TXT record at _dmarc.shop.example \
                itself; it takes precedence over the wildcard.";
    let records = [("*.shop.example", "hello")];
    check(World::new(), &records, RecordStatus::Missing, &["hello"], Some(hint)).await;
}
