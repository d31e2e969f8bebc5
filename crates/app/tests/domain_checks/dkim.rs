//! DKIM keys as people publish them.

use postroad_app::domains::check::{Purpose, RecordStatus};
use postroad_mail::DkimKey;

use crate::world::{DOMAIN, SELECTOR_NAME, World, key_one, key_two, txt_of, verdict};

async fn check(records: &[&str], status: RecordStatus, hint: Option<&str>) {
    let world = World::new();
    for record in records {
        world.server.txt(SELECTOR_NAME, record);
    }
    let check = world.check(Purpose::Dkim).await;
    assert_eq!(verdict(&check), (status, hint), "{records:?}");
    assert_eq!(check.value, txt_of(key_one()));
}

fn base64_of(key: &DkimKey) -> String {
    txt_of(key).split_once("p=").expect("a record has a key").1.to_owned()
}

#[tokio::test]
async fn a_key_is_compared_by_its_bits() {
    let base64 = base64_of(key_one());
    let (start, end) = base64.split_at(100);
    for record in [
        txt_of(key_one()),
        format!("p={base64}"),
        format!("v=DKIM1;k=rsa;h=sha1:sha256;s=email;t=s;n=a note;p={base64};"),
        format!("v=DKIM1; k=rsa; p={start} {end}"),
        format!("v=DKIM1; k=rsa; p={start}\r\n\t{end}"),
        format!("v=DKIM1; k=rsa; p={start}\n{end}"),
        format!("v=DKIM1; k=rsa; p={}", base64.trim_end_matches('=')),
    ] {
        check(&[&record], RecordStatus::Verified, None).await;
    }
    let world = World::new();
    let text = txt_of(key_one());
    let strings: Vec<&[u8]> = text.as_bytes().chunks(64).collect();
    world.server.txt_strings(SELECTOR_NAME, &strings);
    assert_eq!(world.check(Purpose::Dkim).await.status, RecordStatus::Verified);
}

#[tokio::test]
async fn keys_that_receivers_cannot_use_are_distinguished() {
    let (value, base64) = (txt_of(key_one()), base64_of(key_one()));
    let replace = |reason: &str| format!("{reason} Replace the record by: {value}");
    for (record, reason) in [
        ("v=DKIM1; k=rsa; p=".to_owned(), "The key is revoked: p= is empty."),
        (
            format!("\"v=DKIM1; k=rsa; p={}\" \"{}\"", &base64[..200], &base64[200..]),
            "The key is right, but the value has quotation marks or backslashes in it. Enter it without them.",
        ),
        (
            format!("v=DKIM1\\; k=rsa\\; p={base64}"),
            "The key is right, but the value has quotation marks or backslashes in it. Enter it without them.",
        ),
        (format!("v=DKIM1; k=rsa; p={}", &base64[..200]), "The key is cut off: its end is missing."),
        (
            format!("v=DKIM1; k=rsa; p={}!", &base64[..200]),
            "The key cannot be read: p= is not base64, or part of it is missing.",
        ),
        (format!("v=DKIM1; k=ed25519; p={base64}"), "The key type is wrong: it has to be k=rsa."),
        (format!("k=rsa; v=DKIM1; p={base64}"), "The record has to begin with v=DKIM1."),
        (format!("v=DKIM2; k=rsa; p={base64}"), "The record has to begin with v=DKIM1."),
        (format!("v=DKIM1; h=sha1; p={base64}"), "The tag h= has to allow sha256; leave it out."),
        (format!("v=DKIM1; s=chat; p={base64}"), "The tag s= has to allow email; leave it out."),
    ] {
        check(&[&record], RecordStatus::Mismatch, Some(&replace(reason))).await;
    }
    let hint = "The tag t=y says that DKIM is only being tested: receivers may ignore signatures. Remove it.";
    check(&[&format!("v=DKIM1; t=y; p={base64}")], RecordStatus::Verified, Some(hint)).await;
}

#[tokio::test]
async fn another_key_at_the_selector_is_a_mismatch() {
    let value = txt_of(key_one());
    let hint = format!(
        "This is another key, perhaps that of another domain or of an earlier set-up. Replace it by: {value}"
    );
    check(&[&txt_of(key_two())], RecordStatus::Mismatch, Some(&hint)).await;
    let hint = format!("The TXT record at {SELECTOR_NAME} holds no DKIM key. Replace it by: {value}");
    check(&["v=spf1 -all"], RecordStatus::Mismatch, Some(&hint)).await;
    let hint = format!(
        "There are 2 DKIM keys at {SELECTOR_NAME}; receivers take any of them. Keep only this one: {value}"
    );
    check(&[&txt_of(key_two()), &value], RecordStatus::Multiple, Some(&hint)).await;
}

#[tokio::test]
async fn each_of_several_keys_of_a_domain_is_checked_separately() {
    let second = DkimKey::generate_ed25519().unwrap();
    let world = World::new().with_key("pr-two", key_two()).with_key("pr-ed", &second);
    world.server.txt(SELECTOR_NAME, &txt_of(key_two()));
    world.server.txt("pr-two._domainkey.shop.example", &txt_of(key_two()));
    world.server.txt("pr-ed._domainkey.shop.example", &txt_of(&second));
    let checks = world.checks().await;
    let keys: Vec<_> = checks.iter().filter(|check| check.purpose == Purpose::Dkim).collect();
    let hint = format!(
        "This is the key of the selector pr-two. Each selector has its own; replace it by: {}",
        txt_of(key_one())
    );
    assert_eq!(verdict(keys[0]), (RecordStatus::Mismatch, Some(hint.as_str())));
    assert_eq!(verdict(keys[1]), (RecordStatus::Verified, None));
    assert_eq!(verdict(keys[2]), (RecordStatus::Verified, None));
    assert_eq!((keys[0].required, keys[1].required), (true, false));
}

#[tokio::test]
async fn a_key_behind_aliases_counts() {
    let world = World::new();
    world
        .server
        .cname(SELECTOR_NAME, "shop.keys.post.example")
        .cname("shop.keys.post.example", "k.post.example");
    world.server.txt("k.post.example", &txt_of(key_one()));
    assert_eq!(verdict(&world.check(Purpose::Dkim).await), (RecordStatus::Verified, None));
}

#[tokio::test]
async fn a_missing_key_is_looked_for_at_the_doubled_name_that_dns_panels_make() {
    let world = World::new();
    let hint = format!("There is no such record yet. Add this TXT record at {SELECTOR_NAME}.");
    assert_eq!(verdict(&world.check(Purpose::Dkim).await), (RecordStatus::Missing, Some(hint.as_str())));
    world.server.txt(&format!("{SELECTOR_NAME}.{DOMAIN}"), &txt_of(key_one()));
    let hint =
        "The name has the domain twice: your DNS panel appends it. Enter pr-one._domainkey as the name.";
    assert_eq!(verdict(&world.check(Purpose::Dkim).await), (RecordStatus::Missing, Some(hint)));
}

#[tokio::test]
async fn a_wildcard_in_place_of_the_key_is_recognised() {
    let world = World::new();
    world.server.txt("*.shop.example", "v=spf1 -all");
    let check = world.check(Purpose::Dkim).await;
    let hint = "A wildcard record (*.shop.example) answers for pr-one._domainkey.shop.example. Add a TXT record at \
                pr-one._domainkey.shop.example itself; it takes precedence over the wildcard.";
    assert_eq!(verdict(&check), (RecordStatus::Missing, Some(hint)));
    assert_eq!(check.found, ["v=spf1 -all"]);
}
