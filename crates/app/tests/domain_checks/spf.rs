//! SPF records of customers, evaluated for both addresses of the service.

use postroad_app::domains::check::{Purpose, RecordStatus};

use crate::world::{DOMAIN, World, verdict};

const OURS: &str = "include:spf.post.example";
const ADDRESSES: &str = "ip4:192.0.2.10 ip6:2001:db8::10";

/// Publishes the records of the domain; compares status, suggested value and hint.
async fn check(world: &World, records: &[&str], status: RecordStatus, value: &str, hint: Option<&str>) {
    for record in records {
        world.server.txt(DOMAIN, record);
    }
    let check = world.check(Purpose::Spf).await;
    assert_eq!(verdict(&check), (status, hint), "{records:?}");
    assert_eq!(check.value, value, "{records:?}");
    assert_eq!(check.found, records, "{records:?}");
}

/// Publishes other records with `others`, then `record`, and expects that it is verified without a change.
async fn passes(record: &str, others: impl FnOnce(&World)) {
    let world = World::new();
    others(&world);
    world.server.txt(DOMAIN, record);
    let check = world.check(Purpose::Spf).await;
    assert_eq!(verdict(&check), (RecordStatus::Verified, None), "{record}");
    assert_eq!(check.value, record);
}

#[tokio::test]
async fn a_domain_without_spf_is_offered_a_new_record() {
    let hint = "There is no such record yet. Add this TXT record at shop.example.";
    let value = format!("v=spf1 {OURS} ~all");
    check(&World::new(), &[], RecordStatus::Missing, &value, Some(hint)).await;
    let world = World::new();
    world.server.txt(DOMAIN, "some-site-verification=1234");
    check(&world, &[], RecordStatus::Missing, &value, Some(hint)).await;
}

#[tokio::test]
async fn our_include_is_offered_only_while_the_record_behind_it_is_right() {
    let value = format!("v=spf1 {ADDRESSES} ~all");
    let hint = "There is no such record yet. Add this TXT record at shop.example.";
    for spoiled in [
        "",
        "v=spf1 ip4:192.0.2.10 -all",
        "v=spf1 +all",
        "v=spf1 ip4:192.0.2.10 ip6:nonsense -all",
        "v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 +all",
    ] {
        let world = World::new();
        world.server.remove("spf.post.example");
        if !spoiled.is_empty() {
            world.server.txt("spf.post.example", spoiled);
        }
        check(&world, &[], RecordStatus::Missing, &value, Some(hint)).await;
    }
}

#[tokio::test]
async fn a_mistake_in_our_spf_record_does_not_fail_the_record_of_a_customer() {
    let hint = "Your SPF record is right, and there is nothing for you to change. But the SPF record of this service at \
                spf.post.example does not list this service's addresses correctly: some are missing, or others are \
                allowed. The operator has to correct it.";
    for spoiled in ["", "v=spf1 ip4:192.0.2.10 -all", "v=spf1 nonsense -all", "v=spf1 +all"] {
        for record in [
            "v=spf1 include:spf.post.example -all",
            "v=spf1 redirect=other.example",
            "v=spf1 include:other.example ~all",
        ] {
            let world = World::new();
            world.server.remove("spf.post.example");
            if !spoiled.is_empty() {
                world.server.txt("spf.post.example", spoiled);
            }
            world.server.txt("other.example", "v=spf1 include:SPF.post.example -all");
            check(&world, &[record], RecordStatus::Verified, record, Some(hint)).await;
        }
    }
    // If the customer's record is wrong too, our addresses are offered instead of the include.
    let world = World::new();
    world.server.remove("spf.post.example");
    let record = format!("v=spf1 -ip6:2001:db8::/32 {OURS} -all");
    let value = format!("v=spf1 {ADDRESSES} -ip6:2001:db8::/32 -all");
    let hint =
        format!("Your SPF record does not allow this service's address 2001:db8::10. Change it to: {value}");
    world.server.txt("spf.post.example", "v=spf1 ip4:192.0.2.10 -all");
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
}

#[tokio::test]
async fn records_that_allow_both_addresses_pass_whatever_their_form() {
    passes("v=spf1 include:spf.post.example -all", |_| {}).await;
    passes("V=SPF1 IP4:192.0.2.0/24 ip6:2001:db8::/32 -all", |_| {}).await;
    passes("v=spf1 redirect=_spf.shop.example", |world| {
        world.server.txt("_spf.shop.example", "v=spf1 include:spf.post.example -all");
    })
    .await;
    passes("v=spf1 a:out.post.example -all", |world| {
        world.server.a("out.post.example", [192, 0, 2, 10]);
        world.server.aaaa("out.post.example", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10]);
    })
    .await;
    passes("v=spf1 mx/24//64 -all", |world| {
        world.server.mx(DOMAIN, 10, "mx.shop.example").a("mx.shop.example", [192, 0, 2, 77]);
        world.server.aaaa("mx.shop.example", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x99]);
    })
    .await;
    passes("v=spf1 exists:%{ir}.%{v}._spf.%{d} -all", |world| {
        world.server.a("10.2.0.192.in-addr._spf.shop.example", [127, 0, 0, 2]);
        let nibbles = "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2";
        world.server.a(&format!("{nibbles}.ip6._spf.shop.example"), [127, 0, 0, 2]);
    })
    .await;
    passes("v=spf1 ptr:post.example -all", |world| {
        world.server.ptr([192, 0, 2, 10], "out.post.example").a("out.post.example", [192, 0, 2, 10]);
        let v6 = [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10];
        world.server.ptr(v6, "out.post.example").aaaa("out.post.example", v6);
    })
    .await;
}

#[tokio::test]
async fn a_record_split_into_several_strings_is_read_as_one() {
    let world = World::new();
    world.server.txt_strings(DOMAIN, &[b"v=spf1 include:spf.po", b"st.example", b" -all"]);
    let check = world.check(Purpose::Spf).await;
    assert_eq!(verdict(&check), (RecordStatus::Verified, None));
    assert_eq!(check.found, ["v=spf1 include:spf.post.example -all"]);
}

#[tokio::test]
async fn a_record_without_our_addresses_is_offered_with_them() {
    let hint = |value: &str| {
        format!(
            "Your SPF record does not allow this service's addresses 192.0.2.10 and 2001:db8::10. Change it to: {value}"
        )
    };
    for (record, value) in [
        ("v=spf1 ip4:198.51.100.1 -all", "v=spf1 ip4:198.51.100.1 include:spf.post.example -all"),
        ("v=spf1 -all", "v=spf1 include:spf.post.example -all"),
        ("v=spf1 -all include:spf.post.example", "v=spf1 include:spf.post.example -all"),
        (
            "v=spf1 -ip4:192.0.2.0/24 -ip6:2001:db8::/32 ?all",
            "v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 -ip4:192.0.2.0/24 -ip6:2001:db8::/32 ?all",
        ),
    ] {
        check(&World::new(), &[record], RecordStatus::Mismatch, value, Some(&hint(value))).await;
    }
    let world = World::new();
    world.server.txt("_spf.other.example", "v=spf1 ip4:198.51.100.0/24 -all");
    let value = "v=spf1 include:spf.post.example redirect=_spf.other.example";
    check(&world, &["v=spf1 redirect=_spf.other.example"], RecordStatus::Mismatch, value, Some(&hint(value)))
        .await;
}

#[tokio::test]
async fn a_record_that_allows_one_of_two_addresses_is_a_mismatch() {
    let value = "v=spf1 ip4:192.0.2.10 include:spf.post.example ~all";
    let hint =
        format!("Your SPF record does not allow this service's address 2001:db8::10. Change it to: {value}");
    check(&World::new(), &["v=spf1 ip4:192.0.2.10 ~all"], RecordStatus::Mismatch, value, Some(&hint)).await;
}

#[tokio::test]
async fn two_records_are_merged_into_one() {
    let world = World::new();
    world.server.txt("_spf.other.example", "v=spf1 ip4:198.51.100.0/24 -all");
    let value = "v=spf1 include:_spf.other.example ip4:198.51.100.7 include:spf.post.example ~all";
    let hint = format!("You have two SPF records. Replace them by this one: {value}");
    let records = ["v=spf1 include:_spf.other.example -all", "v=spf1 ip4:198.51.100.7 ~all"];
    check(&world, &records, RecordStatus::Multiple, value, Some(&hint)).await;

    let value = "v=spf1 ip4:198.51.100.1 ip4:198.51.100.7 include:spf.post.example ?all";
    let hint = format!(
        "You have two SPF records. The new record leaves out nonsense, and ends in ?all so that nobody is refused for that; \
         correct and add again what you need. Replace them by this one: {value}"
    );
    let records = ["v=spf1 ip4:198.51.100.1 nonsense -all", "v=spf1 ip4:198.51.100.7 ~all"];
    check(&World::new(), &records, RecordStatus::Multiple, value, Some(&hint)).await;
}

#[tokio::test]
async fn too_many_lookups_are_counted_and_the_most_expensive_terms_named() {
    let world = World::new();
    for (name, includes) in [("big.example", 5), ("small.example", 3)] {
        let terms: Vec<String> = (0..includes).map(|n| format!("include:n{n}.{name}")).collect();
        world.server.txt(name, &format!("v=spf1 {} ~all", terms.join(" ")));
        for n in 0..includes {
            world.server.txt(&format!("n{n}.{name}"), "v=spf1 ip4:198.51.100.1 ~all");
        }
    }
    world.server.mx(DOMAIN, 10, "mx.shop.example").a("mx.shop.example", [198, 51, 100, 1]);
    world.server.aaaa("mx.shop.example", [0x2001, 0xdb8, 0, 0, 0, 0, 0, 9]);
    let record = format!("v=spf1 mx include:big.example include:small.example {OURS} -all");
    // Our addresses replace our include, which would cost a lookup. They come first: receivers stop before the end.
    let value = format!("v=spf1 {ADDRESSES} mx include:big.example include:small.example -all");
    let hint = format!(
        "Your SPF needs 12 lookups; 10 are allowed. These terms cost most: include:big.example (6), \
         include:small.example (4), mx (1), {OURS} (1). Remove those that no longer send for you. Until then this record \
         works for mail from this service: {value}"
    );
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
    // With our addresses first, our mail passes, but the customer's other mail does not.
    world.server.remove(DOMAIN).ns(DOMAIN, "ns.shop.example").mx(DOMAIN, 10, "mx.shop.example");
    let hint = "Your SPF needs 11 lookups; 10 are allowed. These terms cost most: include:big.example (6), \
                include:small.example (4), mx (1). Mail from this service passes, other mail may not.";
    check(&world, &[&value], RecordStatus::Verified, &value, Some(hint)).await;
}

#[tokio::test]
async fn the_include_is_not_offered_when_it_would_be_one_lookup_too_many() {
    let world = World::new();
    let names: Vec<String> = (0..10).map(|n| format!("include:n{n}.example")).collect();
    for n in 0..10 {
        world.server.txt(&format!("n{n}.example"), "v=spf1 ip4:198.51.100.1 -all");
    }
    let record = format!("v=spf1 {} -all", names.join(" "));
    let value = format!("v=spf1 {} {ADDRESSES} -all", names.join(" "));
    let hint = format!(
        "Your SPF record does not allow this service's addresses 192.0.2.10 and 2001:db8::10. Change it to: {value}"
    );
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
}

#[tokio::test]
async fn more_than_two_names_that_do_not_exist_break_the_record() {
    let record = format!("v=spf1 a:x1.example mx:x2.example a:x3.example {OURS} -all");
    let value = format!("v=spf1 {OURS} -all");
    let hint = format!(
        "Your SPF asks for records that do not exist: a:x1.example, mx:x2.example and a:x3.example. More than two make \
         receivers ignore it. The new record leaves out a:x1.example, mx:x2.example, a:x3.example, which match nobody. \
         Change it to: {value}"
    );
    check(&World::new(), &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
    passes("v=spf1 a:x1.example mx:x2.example include:spf.post.example -all", |_| {}).await;
}

#[tokio::test]
async fn a_term_that_may_match_somebody_else_is_never_left_out() {
    // Names with addresses of one family only, and names that are made of the sender's address.
    let world = World::new();
    for name in ["x1.example", "x2.example", "x3.example"] {
        world.server.a(name, [198, 51, 100, 1]);
    }
    // The `mx` of this included record is void. It has the same text as the domain's own `mx`, which is not void.
    world.server.txt("other.example", "v=spf1 mx exists:%{i}.y1.example exists:%{i}.y2.example -all");
    world.server.mx(DOMAIN, 10, "x1.example");
    for terms in [
        "a:x1.example a:x2.example a:x3.example",
        "exists:%{i}.x1.example exists:%{i}.x2.example exists:%{ir}.x3.example",
        "a:%{i}.x1.example a:%{i}.x2.example mx:%{h}.x3.example",
        "mx include:other.example",
    ] {
        world.server.remove(DOMAIN).ns(DOMAIN, "ns.shop.example").mx(DOMAIN, 10, "x1.example");
        world.server.txt(DOMAIN, &format!("v=spf1 {terms} {OURS} -all"));
        let seen = world.check(Purpose::Spf).await;
        assert_eq!(seen.status, RecordStatus::Mismatch, "{seen:?}");
        let value = format!("v=spf1 {ADDRESSES} {terms} {OURS} -all");
        assert_eq!(seen.value, value, "{seen:?}");
        world.server.remove(DOMAIN).ns(DOMAIN, "ns.shop.example").mx(DOMAIN, 10, "x1.example");
        check(&world, &[&value], RecordStatus::Verified, &value, None).await;
    }
}

#[tokio::test]
async fn a_record_that_allows_everybody_is_verified_with_a_warning() {
    let value = format!("v=spf1 {OURS} ?all");
    let hint = format!(
        "Your SPF record allows every server in the world to send as shop.example (+all). Change it to: {value}"
    );
    check(&World::new(), &["v=spf1 +all"], RecordStatus::Verified, &value, Some(&hint)).await;
    // The warning also appears if an earlier term allows our addresses.
    check(&World::new(), &[&format!("v=spf1 {OURS} +all")], RecordStatus::Verified, &value, Some(&hint))
        .await;
    let world = World::new();
    world.server.txt("open.example", "v=spf1 ip4:0.0.0.0/0 ip6:::/0 -all");
    let check = {
        world.server.txt(DOMAIN, "v=spf1 include:open.example -all");
        world.check(Purpose::Spf).await
    };
    let hint = "Your SPF record allows every server in the world to send as shop.example (include:open.example). Remove \
                include:open.example.";
    assert_eq!(verdict(&check), (RecordStatus::Verified, Some(hint)));
}

#[tokio::test]
async fn errors_and_loops_are_named_and_left_out_of_the_suggestion() {
    let value = format!("v=spf1 mx {OURS} ?all");
    let hint = format!(
        "Your SPF record has an error, so receivers ignore all of it: ip4:198.51.100 is not valid. The new record leaves out \
         ip4:198.51.100, nonsense, and ends in ?all so that nobody is refused for that; correct and add again what you need. \
         Change it to: {value}"
    );
    let world = World::new();
    world.server.mx(DOMAIN, 10, "mx.shop.example").a("mx.shop.example", [198, 51, 100, 1]);
    let record = format!("v=spf1 ip4:198.51.100 mx {OURS} nonsense -all");
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;

    let value = format!("v=spf1 {OURS} -all");
    let record = format!("v=spf1 include:shop.example {OURS} -all");
    let hint = format!(
        "Receivers ignore your whole SPF record because of include:shop.example: it leads back to itself. The new record \
         leaves out include:shop.example, which matches nobody. Change it to: {value}"
    );
    check(&World::new(), &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;

    let world = World::new();
    world
        .server
        .txt("a.example", "v=spf1 include:b.example -all")
        .txt("b.example", "v=spf1 include:a.example -all");
    let record = format!("v=spf1 include:a.example {OURS} -all");
    let value = format!("v=spf1 {OURS} ?all");
    let hint = format!(
        "Receivers ignore your whole SPF record because of include:a.example: it leads back to itself. The new record leaves \
         out include:a.example, and ends in ?all so that nobody is refused for that; correct and add again what you need. \
         Change it to: {value}"
    );
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;

    // Somebody else's mistake, which may be repaired: the include stays, after our addresses.
    let world = World::new();
    world.server.txt("a.example", "v=spf1 -all").txt("a.example", "v=spf1 ~all");
    let record = format!("v=spf1 include:a.example {OURS} -all");
    let value = format!("v=spf1 {ADDRESSES} include:a.example {OURS} -all");
    let hint = format!(
        "Receivers ignore your whole SPF record because of include:a.example: a.example has several SPF records. Change \
         it to: {value}"
    );
    check(&world, &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
}

#[tokio::test]
async fn an_include_with_a_mistake_inside_stays_in_the_suggestion() {
    let world = World::new();
    world.server.txt("a.example", "v=spf1 include:gone.example -all");
    let value = format!("v=spf1 {ADDRESSES} include:a.example -all");
    let hint = format!(
        "Receivers ignore your whole SPF record because of include:a.example: gone.example has no SPF record. Change it to: \
         {value}"
    );
    check(&world, &["v=spf1 include:a.example -all"], RecordStatus::Mismatch, &value, Some(&hint)).await;
}

#[tokio::test]
async fn records_that_only_look_like_spf_are_offered_corrected() {
    let value = format!("v=spf1 ip4:198.51.100.1 {OURS} -all");
    let hint = format!(
        "This TXT record looks like SPF, but does not begin with v=spf1 and a space, so receivers do not see it. Replace \
         it by: {value}"
    );
    for record in
        ["\"v=spf1 ip4:198.51.100.1 -all\"", "v=spf1ip4:198.51.100.1 -all", "v=spf1; ipv4:198.51.100.1 -all"]
    {
        check(&World::new(), &[record], RecordStatus::Mismatch, &value, Some(&hint)).await;
    }
}

#[tokio::test]
async fn plain_typing_errors_are_repaired_in_the_suggestion() {
    let value = format!("v=spf1 ip4:198.51.100.1 {OURS} -all");
    let hint = format!(
        "Your SPF record has an error, so receivers ignore all of it: ipv4:198.51.100.1 is not valid. Change it to: {value}"
    );
    let record = format!("v=spf1 ipv4:198.51.100.1 {OURS} -all");
    check(&World::new(), &[&record], RecordStatus::Mismatch, &value, Some(&hint)).await;
}
