//! Records as a fragment of a BIND zone file (RFC 1035 5.1).

use std::fmt::Write as _;

use super::record::{Purpose, RecordCheck, RecordStatus, RecordType};
use super::text::display_text;

const TTL_SECS: u32 = 3_600;
/// RFC 1035 3.3: maximum number of bytes of one character string.
const STRING_BYTES_MAX: usize = 255;

/// A line for each record, with complete names, so that it fits into any zone file. Records that are in place or not
/// needed, or have no known value, are comments. So are SPF and DMARC records that could not be judged, and PTR
/// records, which the hosting provider sets.
pub fn zone_fragment(checks: &[RecordCheck]) -> String {
    let mut zone = String::new();
    for check in checks {
        let is_verified = check.status == RecordStatus::Verified;
        let is_found = check.found.contains(&display_text(check.value.as_bytes()));
        let is_in_place =
            is_verified && (is_found || !matches!(check.purpose, Purpose::Spf | Purpose::Dmarc));
        let is_unknown = matches!(check.status, RecordStatus::Pending | RecordStatus::DnsError);
        if check.value.is_empty() {
            writeln!(zone, "; no value is known for {}. {}", check.name, check.record_type.as_str())
                .expect("writing to a string does not fail");
            continue;
        }
        if is_in_place {
            zone.push_str("; in place: ");
        } else if check.purpose == Purpose::Dmarc && is_verified {
            zone.push_str("; not needed, the policy of the domain above counts: ");
        } else if let Some(only) = single_record_name(check.purpose).filter(|_| is_unknown) {
            // There may be a record that the look-up did not find.
            write!(zone, "; not checked, and a name has only one {only} record: ")
                .expect("writing to a string does not fail");
        } else if let Some(only) = single_record_name(check.purpose).filter(|_| !check.found.is_empty()) {
            writeln!(zone, "; replaces the {only} record that is there: a name has only one")
                .expect("writing to a string does not fail");
        } else if matches!(check.status, RecordStatus::Mismatch | RecordStatus::Multiple) {
            zone.push_str("; replaces what is there at this name\n");
        }
        if check.record_type == RecordType::Ptr && !is_in_place {
            zone.push_str("; ask whoever gave you the address:\n; ");
        }
        let (name, record_type) = (&check.name, check.record_type.as_str());
        let data = data_of(check);
        writeln!(zone, "{name}. {TTL_SECS} IN {record_type} {data}")
            .expect("writing to a string does not fail");
    }
    zone
}

/// The kind of record in words, if a DNS name may have only one record of this kind.
fn single_record_name(purpose: Purpose) -> Option<&'static str> {
    match purpose {
        Purpose::Spf => Some("SPF"),
        Purpose::Dmarc => Some("DMARC"),
        _ => None,
    }
}

fn data_of(check: &RecordCheck) -> String {
    match check.record_type {
        RecordType::A | RecordType::Aaaa => check.value.clone(),
        RecordType::Cname | RecordType::Mx | RecordType::Ns | RecordType::Ptr => format!("{}.", check.value),
        RecordType::Txt => {
            let strings = check.value.as_bytes().chunks(STRING_BYTES_MAX).map(quote);
            strings.collect::<Vec<String>>().join(" ")
        }
    }
}

fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\{byte:03}").expect("writing to a string does not fail"),
        }
    }
    text.push('"');
    text
}
