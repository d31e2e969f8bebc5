//! One mark of the flight journal as bytes: length, checksum, kind, key, and the reply as JSON.

use std::io;

use postroad_model::{MessageId, ServerId};

use super::flight::{FinalReply, FlightKey};

/// Length and checksum of the payload.
const HEAD_BYTES: usize = 8;
const KIND_AND_KEY_BYTES: usize = 21;
/// More than a reply needs: control characters grow sixfold in JSON.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;

const FINISHING: u8 = 1;
const REPLIED: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "only one exists at a time, while it is written or read")]
pub(super) enum Mark {
    /// Written right before the final dot or last chunk.
    Finishing,
    /// Written right after the final reply.
    Replied(FinalReply),
}

pub(super) fn encode(key: FlightKey, mark: &Mark) -> io::Result<Vec<u8>> {
    let mut record = vec![0; HEAD_BYTES];
    record.push(match mark {
        Mark::Finishing => FINISHING,
        Mark::Replied(_) => REPLIED,
    });
    record.extend_from_slice(&key.server_id.0.to_le_bytes());
    record.extend_from_slice(&key.message_id.0.to_le_bytes());
    record.extend_from_slice(&key.attempt.to_le_bytes());
    if let Mark::Replied(reply) = mark {
        serde_json::to_writer(&mut record, reply)?;
    }
    let payload = &record[HEAD_BYTES..];
    let (length, checksum) = (payload.len() as u32, crc32fast::hash(payload));
    record[..4].copy_from_slice(&length.to_le_bytes());
    record[4..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(record)
}

/// The first mark of `bytes` and its length. `None` if it is incomplete or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<(FlightKey, Mark, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    // Blocks of zeros, which file systems may leave after a crash, would be empty payloads with a matching checksum.
    if !(KIND_AND_KEY_BYTES..=PAYLOAD_BYTES_MAX).contains(&length) {
        return None;
    }
    let payload = rest.get(..length)?;
    if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (kind, rest) = payload.split_first()?;
    let (server_id, rest) = rest.split_first_chunk()?;
    let (message_id, rest) = rest.split_first_chunk()?;
    let (attempt, reply) = rest.split_first_chunk()?;
    let key = FlightKey {
        server_id: ServerId(i64::from_le_bytes(*server_id)),
        message_id: MessageId(i64::from_le_bytes(*message_id)),
        attempt: u32::from_le_bytes(*attempt),
    };
    let mark = match *kind {
        FINISHING => Mark::Finishing,
        REPLIED => Mark::Replied(serde_json::from_slice(reply).ok()?),
        _ => return None,
    };
    Some((key, mark, HEAD_BYTES + length))
}
