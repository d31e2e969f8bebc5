//! Dimensions by which analytics can be split and filtered.

use std::collections::HashMap;

use postroad_store::{Breakdown, Dimensions, OTHER_LABELS};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Domain of the sender.
    Domain,
    Tag,
    RecipientProvider,
    Template,
    IpPool,
    Credential,
    BounceClass,
    /// Our address that the attempt was made from.
    SourceIp,
    TlsVersion,
}

impl Dimension {
    pub const ALL: [Self; 9] = [
        Self::Domain,
        Self::Tag,
        Self::RecipientProvider,
        Self::Template,
        Self::IpPool,
        Self::Credential,
        Self::BounceClass,
        Self::SourceIp,
        Self::TlsVersion,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::Tag => "tag",
            Self::RecipientProvider => "recipient_provider",
            Self::Template => "template",
            Self::IpPool => "ip_pool",
            Self::Credential => "credential",
            Self::BounceClass => "bounce_class",
            Self::SourceIp => "source_ip",
            Self::TlsVersion => "tls_version",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.as_str() == name)
    }

    /// Breakdown of the counters that distinguish only this dimension.
    pub(super) const fn breakdown(self) -> Breakdown {
        match self {
            Self::Domain => Breakdown::Domain,
            Self::Tag => Breakdown::Tag,
            Self::RecipientProvider => Breakdown::Provider,
            Self::Template => Breakdown::Template,
            Self::IpPool => Breakdown::Pool,
            Self::Credential => Breakdown::Credential,
            Self::BounceClass => Breakdown::BounceClass,
            Self::SourceIp => Breakdown::SourceIp,
            Self::TlsVersion => Breakdown::TlsVersion,
        }
    }

    /// Whether its value in `set` represents many values that are counted together.
    pub(super) fn is_surplus_in(self, set: &Dimensions) -> bool {
        match self {
            Self::Tag => set.tag == OTHER_LABELS,
            Self::Template => set.template == OTHER_LABELS,
            Self::SourceIp => set.source_ip == OTHER_LABELS,
            _ => false,
        }
    }

    /// Its value in `set`. `pools` maps pool ids to names.
    pub(super) fn value_in(self, set: &Dimensions, pools: &HashMap<i64, String>) -> DimensionValue {
        let text = |text: &str| match text {
            "" => DimensionValue::None,
            text => DimensionValue::Text(text.to_owned()),
        };
        match self {
            Self::Domain => text(&set.domain),
            Self::Tag => text(&set.tag),
            Self::RecipientProvider => text(&set.provider),
            Self::Template => text(&set.template),
            Self::BounceClass => text(&set.bounce_class),
            Self::SourceIp => text(&set.source_ip),
            Self::TlsVersion => text(&set.tls_version),
            Self::Credential if set.credential_id == 0 => DimensionValue::None,
            Self::Credential => DimensionValue::Number(set.credential_id),
            Self::IpPool if set.pool_id == 0 => DimensionValue::None,
            Self::IpPool => match pools.get(&set.pool_id) {
                Some(name) => DimensionValue::Text(name.clone()),
                // The pool was deleted meanwhile.
                None => DimensionValue::Text(format!("#{}", set.pool_id)),
            },
        }
    }
}

/// Value of a dimension; `None` for messages without a tag, template and so on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DimensionValue {
    None,
    Text(String),
    /// Id of a credential.
    Number(i64),
}

impl DimensionValue {
    /// Parses a filter value: an empty text means `None`, and a credential's id becomes a number. Domains and providers
    /// match in any letter case.
    pub fn of_text(dimension: Dimension, text: &str) -> Self {
        match (dimension, text) {
            (_, "") => Self::None,
            (Dimension::Credential, text) => {
                text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Number)
            }
            (Dimension::Domain | Dimension::RecipientProvider, text) => Self::Text(text.to_ascii_lowercase()),
            (_, text) => Self::Text(text.to_owned()),
        }
    }
}

/// Selects messages with one of these values.
#[derive(Debug, Clone)]
pub struct Filter {
    pub dimension: Dimension,
    pub values: Vec<DimensionValue>,
}
