//! Encodings of the index: for a token, the positions (in the block's id list) of the messages that contain the token;
//! for a block, the ids of its messages.

use crate::Result;
use crate::varint;

/// Encodes positions in ascending order as differences. A token that most messages contain costs about one byte per
/// message.
pub(super) fn encode_positions(positions: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(positions.len() + 1);
    let mut next = 0;
    for position in positions {
        varint::write(u64::from(position - next), &mut bytes);
        next = position + 1;
    }
    bytes
}

pub(super) fn decode_positions(mut bytes: &[u8]) -> Result<Vec<u32>> {
    let mut positions = Vec::with_capacity(bytes.len());
    let mut next = 0_u64;
    while !bytes.is_empty() {
        let position = next.saturating_add(varint::read(&mut bytes)?);
        positions.push(u32::try_from(position).unwrap_or(u32::MAX));
        next = position.saturating_add(1);
    }
    Ok(positions)
}

/// Encodes ids in the given order, which need not be ascending: messages stored late are at the end.
pub(super) fn encode_ids(ids: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ids.len() * 3);
    let mut last = 0_i64;
    for id in ids {
        let step = id.wrapping_sub(last);
        // The sign is in the lowest bit, so that small steps are short in both directions.
        varint::write(((step << 1) ^ (step >> 63)).cast_unsigned(), &mut bytes);
        last = *id;
    }
    bytes
}

pub(super) fn decode_ids(mut bytes: &[u8]) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(bytes.len() / 2);
    let mut last = 0_i64;
    while !bytes.is_empty() {
        let step = varint::read(&mut bytes)?;
        last = last.wrapping_add((step >> 1).cast_signed() ^ -(step & 1).cast_signed());
        ids.push(last);
    }
    Ok(ids)
}

/// Common elements of two ascending lists.
pub(super) fn intersect(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(a.next()),
            std::cmp::Ordering::Greater => drop(b.next()),
            std::cmp::Ordering::Equal => {
                both.push(**x);
                a.next();
                b.next();
            }
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_lists_are_decoded_as_they_were() {
        for positions in [vec![], vec![0], vec![0, 1, 2, 4_095], vec![7, 300, 70_000]] {
            assert_eq!(decode_positions(&encode_positions(&positions)).unwrap(), positions);
        }
        for ids in [vec![], vec![5, 9, 7, 1 << 52, 3], vec![i64::MAX, 0]] {
            assert_eq!(decode_ids(&encode_ids(&ids)).unwrap(), ids);
        }
        assert!(decode_positions(&[0x80]).is_err(), "a truncated number is an error");
    }

    #[test]
    fn intersect_finds_the_common_positions() {
        assert_eq!(intersect(&[1, 3, 5, 9], &[0, 3, 4, 9, 10]), [3, 9]);
        assert!(intersect(&[1], &[]).is_empty());
    }
}
