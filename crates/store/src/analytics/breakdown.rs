//! Dimensions that a set of counters tells apart. A chart by tag reads the counters of single tags, not those of every
//! combination that a tag is part of.

use super::dimensions::Dimensions;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breakdown {
    /// Nothing: everything is counted together. Its only set has the number 0.
    Total,
    Domain,
    Tag,
    Provider,
    Template,
    Pool,
    Credential,
    /// All of them at once: for questions about more than one.
    Full,
}

impl Breakdown {
    pub const ALL: [Self; 8] = [
        Self::Total,
        Self::Domain,
        Self::Tag,
        Self::Provider,
        Self::Template,
        Self::Pool,
        Self::Credential,
        Self::Full,
    ];

    /// Its number in the database: a bit for each dimension.
    pub(crate) const fn code(self) -> i64 {
        match self {
            Self::Total => 0,
            Self::Domain => 1,
            Self::Tag => 2,
            Self::Provider => 4,
            Self::Template => 8,
            Self::Pool => 16,
            Self::Credential => 32,
            Self::Full => 63,
        }
    }

    /// Those that sets are numbered for.
    pub const NUMBERED: [Self; 7] =
        [Self::Domain, Self::Tag, Self::Provider, Self::Template, Self::Pool, Self::Credential, Self::Full];

    /// With everything that it does not tell apart left empty.
    pub(crate) fn part_of(self, full: &Dimensions) -> Dimensions {
        let none = Dimensions::default();
        match self {
            Self::Total => none,
            Self::Domain => Dimensions { domain: full.domain.clone(), ..none },
            Self::Tag => Dimensions { tag: full.tag.clone(), ..none },
            Self::Provider => Dimensions { provider: full.provider.clone(), ..none },
            Self::Template => Dimensions { template: full.template.clone(), ..none },
            Self::Pool => Dimensions { pool_id: full.pool_id, ..none },
            Self::Credential => Dimensions { credential_id: full.credential_id, ..none },
            Self::Full => full.clone(),
        }
    }
}
