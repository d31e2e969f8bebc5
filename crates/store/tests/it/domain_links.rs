//! Links to the DNS records of a domain, and saved searches of people.

use std::time::Duration;

use postroad_model::{SavedSearchId, UserRole};
use postroad_store::{DomainLink, KeyHash, NewDomainLink, NewSavedSearch, NewUser, StoreError};

use crate::fixture::{Fixture, on_both_engines};

on_both_engines!(
    a_link_works_until_it_expires_is_revoked_or_its_domain_is_deleted,
    a_saved_search_belongs_to_one_person_and_server
);

async fn a_link_works_until_it_expires_is_revoked_or_its_domain_is_deleted(fixture: Fixture) {
    let store = &fixture.store;
    let domain = store.create_domain(fixture.new_domain("example.com")).await.expect("it works").id;
    let other = store.create_domain(fixture.new_domain("example.org")).await.expect("it works").id;
    let link = async |number: u8, seconds| -> Result<DomainLink, StoreError> {
        let token_hash = KeyHash([number; 32]);
        let expires_at = fixture.in_secs(seconds);
        store.create_domain_link(NewDomainLink { domain_id: domain, token_hash, expires_at }, 3).await
    };
    let (first, second, third) = (
        link(1, 60).await.expect("it works"),
        link(2, 600).await.expect("it works"),
        link(3, 600).await.expect("it works"),
    );
    assert!(matches!(link(4, 600).await, Err(StoreError::LimitReached)));
    let listed = store.list_domain_links(domain, 10).await.expect("it works");
    assert_eq!(listed, [third.clone(), second.clone(), first], "the newest first");
    let find = async |number: u8| store.find_domain_link(KeyHash([number; 32])).await.expect("it works");
    assert_eq!(
        find(2).await.map(|(link, domain)| (link, domain.name.to_string())),
        Some((second.clone(), "example.com".into()))
    );
    assert!(find(9).await.is_none());

    let foreign = store.revoke_domain_link(other, second.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound)), "of another domain: {foreign:?}");
    store.revoke_domain_link(domain, second.id).await.expect("it works");
    assert!(find(2).await.is_none());
    assert!(matches!(store.revoke_domain_link(domain, second.id).await, Err(StoreError::NotFound)));

    fixture.clock.advance(Duration::from_secs(61));
    assert!(find(1).await.is_none() && find(3).await.is_some());
    assert_eq!(store.list_domain_links(domain, 10).await.expect("it works"), [third]);
    store.purge_user_sessions(100).await.expect("it works");
    assert_eq!(
        fixture.query_int("SELECT count(*) FROM domain_links").await,
        1,
        "the one that expired is gone"
    );
    store.delete_domain(domain, fixture.now()).await.expect("it works");
    assert!(find(3).await.is_none());
    assert!(matches!(link(5, 600).await, Err(StoreError::NotFound)));
}

async fn a_saved_search_belongs_to_one_person_and_server(fixture: Fixture) {
    let store = &fixture.store;
    let person = async |email: &str| {
        let new = NewUser {
            account_id: fixture.account,
            email: email.into(),
            name: String::new(),
            role: UserRole::Member,
            operator: false,
            password_hash: None,
        };
        store.create_user(new).await.expect("it works").id
    };
    let (ann, bob) = (person("ann@example.com").await, person("bob@example.com").await);
    let save = async |user_id, server_id, name: &str, query: &str| {
        store
            .save_search(NewSavedSearch { user_id, server_id, name: name.into(), query: query.into() }, 2)
            .await
    };
    save(ann, fixture.server, "one", "?q=1").await.expect("it works");
    save(ann, fixture.server, "two", "?q=2").await.expect("it works");
    assert!(matches!(save(ann, fixture.server, "three", "?q=3").await, Err(StoreError::LimitReached)));
    save(ann, fixture.server, "first", "?q=1").await.expect("the same search again");
    save(ann, fixture.other_server, "three", "?q=3").await.expect("it works");
    save(bob, fixture.server, "three", "?q=3").await.expect("it works");
    let of = async |user, server| store.list_saved_searches(user, server, 10).await.expect("it works");
    let kept = of(ann, fixture.server).await;
    assert_eq!(kept.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), ["first", "two"]);
    assert!(matches!(store.forget_search(bob, kept[0].id).await, Err(StoreError::NotFound)), "it is Ann's");
    store.forget_search(ann, kept[0].id).await.expect("it works");
    assert_eq!(of(ann, fixture.server).await.len(), 1);
    assert!(matches!(store.forget_search(ann, SavedSearchId(99)).await, Err(StoreError::NotFound)));
    store.remove_user(ann, true).await.expect("with all searches");
    assert!(of(ann, fixture.other_server).await.is_empty());
    assert_eq!(of(bob, fixture.server).await.len(), 1);
}
