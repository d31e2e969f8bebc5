//! Variable-length numbers (unsigned LEB128) of one to ten bytes: each byte has seven bits of the number, and its
//! highest bit says that more bytes follow.

use crate::error::StoreError;

pub(crate) fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes one number off the front.
pub(crate) fn read(bytes: &mut &[u8]) -> Result<u64, StoreError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(StoreError::Internal("a stored number is damaged".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            write(number, &mut bytes);
        }
        let mut rest = bytes.as_slice();
        for number in numbers {
            assert_eq!(read(&mut rest).unwrap(), number);
        }
        assert!(rest.is_empty() && read(&mut rest).is_err());
        assert!(read(&mut [0x80; 20].as_slice()).is_err(), "a number has at most ten bytes");
    }
}
