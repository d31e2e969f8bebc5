//! Whether a mechanism of an SPF record matches an address (RFC 7208 5).

use ipnet::IpNet;

use super::evaluate::{Evaluation, LOOKUPS_MAX, PermErrorReason, SpfResult, TermResult};
use super::macros::{DomainSpec, MacroValues};
use super::record::{Mechanism, Term};
use crate::domains::check::answers::{Answer, NotAskedYet};
use crate::domains::check::record::RecordType;
use crate::domains::check::reverse_name::reverse_name;

/// Maximum number of void lookups, which find no record (RFC 7208 4.6.4).
const VOID_LOOKUPS_MAX: usize = 2;
/// Maximum number of mail hosts of an `mx` term, and of PTR names of an address (RFC 7208 4.6.4).
const MAIL_HOSTS_MAX: usize = 10;
const POINTERS_MAX: usize = 10;

impl Evaluation<'_> {
    pub(super) fn match_mechanism(
        &mut self,
        domain: &str,
        term: &Term,
        mechanism: &Mechanism,
    ) -> Result<TermResult, NotAskedYet> {
        if term.costs_lookup()
            && let Some(reason) = self.count_lookup()
        {
            return Ok(TermResult::PermError(reason));
        }
        let target_name = |evaluation: &Self, spec: &Option<DomainSpec>| match spec {
            Some(spec) => evaluation.expand(domain, spec),
            None => Ok(domain.to_owned()),
        };
        match mechanism {
            Mechanism::All => Ok(TermResult::Match { allows_everybody: true }),
            Mechanism::Ip(network) if network.contains(&self.sender.address) => {
                Ok(TermResult::Match { allows_everybody: network.prefix_len() == 0 })
            }
            Mechanism::Ip(_) => Ok(TermResult::NoMatch),
            Mechanism::Include(target) => {
                let target = self.expand(domain, target)?;
                self.match_include(&target)
            }
            Mechanism::A { domain: spec, v4_bits, v6_bits } => {
                let name = target_name(self, spec)?;
                let answer = self.view.ask(&name, self.address_type())?;
                Ok(self.match_addresses(term, answer, *v4_bits, *v6_bits))
            }
            Mechanism::Mx { domain: spec, v4_bits, v6_bits } => {
                let name = target_name(self, spec)?;
                self.match_mail_hosts(term, &name, *v4_bits, *v6_bits)
            }
            Mechanism::Exists(spec) => {
                let name = self.expand(domain, spec)?;
                // RFC 7208 5.7: the A record decides, for IPv6 addresses too.
                let answer = self.view.ask(&name, RecordType::A)?;
                let result = self.result_without_records(term, answer);
                Ok(result.unwrap_or(TermResult::Match { allows_everybody: false }))
            }
            Mechanism::Ptr(spec) => {
                let target = target_name(self, spec)?;
                let names = self.validated_names()?;
                let matches = names.iter().any(|name| is_below(name, &target));
                Ok(if matches { TermResult::Match { allows_everybody: false } } else { TermResult::NoMatch })
            }
        }
    }

    fn match_include(&mut self, target: &str) -> Result<TermResult, NotAskedYet> {
        // RFC 7208 5.2: what the result of the included record means.
        Ok(match self.evaluate_name(target)? {
            SpfResult::Pass { allows_everybody, .. } => TermResult::Match { allows_everybody },
            SpfResult::NotAllowed => TermResult::NoMatch,
            SpfResult::TempError(reason) => TermResult::TempError(reason),
            SpfResult::PermError(error) => TermResult::PermError(error.reason),
            SpfResult::NoRecord => {
                TermResult::PermError(PermErrorReason::NoRecord { target: target.to_owned() })
            }
        })
    }

    fn match_addresses(&mut self, term: &Term, answer: &Answer, v4_bits: u8, v6_bits: u8) -> TermResult {
        if let Some(result) = self.result_without_records(term, answer) {
            return result;
        }
        if self.contains_sender(answer, v4_bits, v6_bits) {
            return TermResult::Match { allows_everybody: v4_bits == 0 || v6_bits == 0 };
        }
        TermResult::NoMatch
    }

    fn match_mail_hosts(
        &mut self,
        term: &Term,
        name: &str,
        v4_bits: u8,
        v6_bits: u8,
    ) -> Result<TermResult, NotAskedYet> {
        let answer = self.view.ask(name, RecordType::Mx)?;
        if let Some(result) = self.result_without_records(term, answer) {
            return Ok(result);
        }
        let hosts: Vec<&str> = answer.mail_hosts().map(|(_, host)| host).take(MAIL_HOSTS_MAX + 1).collect();
        if hosts.len() > MAIL_HOSTS_MAX {
            let reason = PermErrorReason::TooManyMailHosts { domain: name.to_owned() };
            return Ok(TermResult::PermError(reason));
        }
        for host in &hosts {
            self.view.prefetch(host, self.address_type());
        }
        for host in hosts {
            let answer = self.view.ask(host, self.address_type())?;
            if let Answer::Failed(reason) = answer {
                return Ok(TermResult::TempError(reason.clone()));
            }
            if self.contains_sender(answer, v4_bits, v6_bits) {
                return Ok(TermResult::Match { allows_everybody: v4_bits == 0 || v6_bits == 0 });
            }
        }
        Ok(TermResult::NoMatch)
    }

    /// The record type for the sender's address family.
    fn address_type(&self) -> RecordType {
        if self.sender.address.is_ipv4() { RecordType::A } else { RecordType::Aaaa }
    }

    fn contains_sender(&self, answer: &Answer, v4_bits: u8, v6_bits: u8) -> bool {
        let bits = if self.sender.address.is_ipv4() { v4_bits } else { v6_bits };
        let contains =
            |address| IpNet::new(address, bits).is_ok_and(|net| net.contains(&self.sender.address));
        answer.addresses().any(contains)
    }

    /// Counts a lookup. Returns the error if there are now too many lookups.
    pub(super) fn count_lookup(&mut self) -> Option<PermErrorReason> {
        self.lookups += 1;
        (self.lookups > LOOKUPS_MAX).then_some(PermErrorReason::TooManyLookups)
    }

    /// The result of a term whose question returned no records; `None` if it returned some. Counts a void lookup if the
    /// DNS says that there are none.
    fn result_without_records(&mut self, term: &Term, answer: &Answer) -> Option<TermResult> {
        match answer {
            Answer::Records(_) => None,
            Answer::Failed(reason) => Some(TermResult::TempError(reason.clone())),
            Answer::NoSuchName | Answer::NoData => {
                self.voids.push(term.text.clone());
                let is_too_many = self.voids.len() > VOID_LOOKUPS_MAX;
                let error = || TermResult::PermError(PermErrorReason::TooManyVoidLookups(self.voids.clone()));
                Some(if is_too_many { error() } else { TermResult::NoMatch })
            }
        }
    }

    pub(super) fn expand(&self, domain: &str, spec: &DomainSpec) -> Result<String, NotAskedYet> {
        if spec.differs_by_sender() {
            self.differs_by_sender.set(true);
        }
        let validated = if spec.needs_validated_name() { self.validated_names()? } else { Vec::new() };
        // RFC 7208 7.3: prefer the domain itself, then a name below it, then any name.
        let own = validated.iter().find(|name| name.eq_ignore_ascii_case(domain));
        let best = own.or_else(|| validated.iter().find(|name| is_below(name, domain))).or(validated.first());
        Ok(spec.expand(MacroValues {
            address: self.sender.address,
            helo: self.sender.helo,
            sender_domain: self.sender.domain,
            domain,
            validated_name: best.map_or("unknown", String::as_str),
        }))
    }

    /// RFC 7208 5.5: PTR names of the sender's address that resolve back to this address. A name whose look-up
    /// fails is left out.
    fn validated_names(&self) -> Result<Vec<String>, NotAskedYet> {
        self.differs_by_sender.set(true);
        let answer = self.view.ask(&reverse_name(self.sender.address), RecordType::Ptr)?;
        let names: Vec<&str> = answer.names().take(POINTERS_MAX).collect();
        for name in &names {
            self.view.prefetch(name, self.address_type());
        }
        let mut validated = Vec::new();
        for name in names {
            let answer = self.view.ask(name, self.address_type())?;
            if answer.addresses().any(|address| address == self.sender.address) {
                validated.push(name.to_owned());
            }
        }
        Ok(validated)
    }
}

/// Whether a name equals the domain or is below it.
fn is_below(name: &str, domain: &str) -> bool {
    let (name, domain) = (name.to_ascii_lowercase(), domain.to_ascii_lowercase());
    name == domain || name.strip_suffix(domain.as_str()).is_some_and(|prefix| prefix.ends_with('.'))
}
