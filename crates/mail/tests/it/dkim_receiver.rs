//! A receiver that checks DKIM signatures with a verifier of another project, against published records held in memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use mail_auth::common::parse::TxtRecordParser as _;
use mail_auth::common::verify::DomainKey;
use mail_auth::hickory_resolver::config::{ResolverConfig, ResolverOpts};
use mail_auth::{AuthenticatedMessage, DkimResult, MessageAuthenticator, Parameters, ResolverCache, Txt};

#[derive(Default)]
pub(crate) struct Receiver {
    records: Records,
}

#[derive(Default)]
struct Records(HashMap<Box<str>, Txt>);

impl ResolverCache<Box<str>, Txt> for Records {
    fn get<Q>(&self, name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.0.get(name).cloned()
    }

    fn remove<Q>(&self, _name: &Q) -> Option<Txt>
    where
        Box<str>: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _key: Box<str>, _value: Txt, _valid_until: Instant) {}
}

impl Receiver {
    pub(crate) fn publish(&mut self, selector: &str, domain: &str, txt: &str) {
        let record = DomainKey::parse(txt.as_bytes()).expect("the record is valid");
        self.records.0.insert(format!("{selector}._domainkey.{domain}.").into(), Txt::from(record));
    }

    /// The verdict on each signature of the message, from the top.
    pub(crate) fn verify(&self, message: &[u8]) -> Vec<DkimResult> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // No DNS servers: every record is in the cache.
            let config = ResolverConfig::from_parts(None, Vec::new(), Vec::new());
            let verifier = MessageAuthenticator::new(config, ResolverOpts::default()).unwrap();
            let message = AuthenticatedMessage::parse(message).expect("the message has headers");
            let parameters = Parameters::new(&message).with_txt_cache(&self.records);
            let outputs = verifier.verify_dkim(parameters).await;
            outputs.iter().map(|output| output.result().clone()).collect()
        })
    }

    pub(crate) fn accepts(&self, message: &[u8]) -> bool {
        let results = self.verify(message);
        !results.is_empty() && results.iter().all(|result| *result == DkimResult::Pass)
    }
}
