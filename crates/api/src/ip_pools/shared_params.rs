//! Fields shared by several calls of ip_pools/*.

use std::net::{IpAddr, Ipv4Addr};

use crate::account_params::{read_integer, read_required_text};
use crate::fields::{Fields, Findings};

/// Takes `address`, which is required.
pub(super) fn read_address(fields: &mut Fields<'_>, findings: &mut Findings) -> IpAddr {
    let is_absent = fields.is_absent("address");
    let text = read_required_text(fields, "address", findings);
    text.trim().parse().unwrap_or_else(|_| {
        if !is_absent {
            findings.problem("/address", "`address` should be an IPv4 or IPv6 address such as 192.0.2.1");
        }
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    })
}

/// Takes `weight`; numbers out of range become 0, which `app` refuses.
pub(super) fn read_weight(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<u32> {
    read_integer(fields, "weight", findings).map(|number| u32::try_from(number).unwrap_or(0))
}
