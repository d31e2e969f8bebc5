//! HAProxy's PROXY protocol, versions 1 and 2: a load balancer sends the client's address before the
//! connection's data.
//!
//! The header is read only from proxies that the operator listed, and required from them: the protocol forbids
//! guessing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt};

const V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest possible line of version 1, with its line end.
const V1_BYTES_MAX: usize = 107;
/// Maximum number of bytes of addresses and extensions in version 2; the extensions are ignored.
const V2_REST_BYTES_MAX: usize = 4 << 10;

/// Who opened the connection, as the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Client(IpAddr),
    /// The proxy itself (health checks), or a client with an unknown kind of address.
    Proxy,
}

/// Reads the header and nothing beyond it.
pub(crate) async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Source> {
    let mut start = [0; V2_SIGNATURE.len()];
    // Every valid header is longer than this.
    stream.read_exact(&mut start).await?;
    if start == V2_SIGNATURE {
        let mut head = [0; 4];
        stream.read_exact(&mut head).await?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if length > V2_REST_BYTES_MAX {
            return Err(malformed());
        }
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await?;
        return parse_v2(head[0], head[1], &rest).ok_or_else(malformed);
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= V1_BYTES_MAX || !line.starts_with(b"PROXY ") {
            return Err(malformed());
        }
        line.push(stream.read_u8().await?);
    }
    str::from_utf8(&line).ok().and_then(parse_v1).ok_or_else(malformed)
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a listed proxy did not begin with a valid header of the PROXY protocol",
    )
}

/// Parses `PROXY TCP4 source destination source-port destination-port`, or `PROXY UNKNOWN` and anything.
fn parse_v1(line: &str) -> Option<Source> {
    let mut words = line.strip_suffix("\r\n")?.strip_prefix("PROXY ")?.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(Source::Proxy);
    }
    let (source, destination) = (words.next()?, words.next()?);
    let ports = [words.next()?, words.next()?];
    let are_ports = ports.iter().all(|port| port.parse::<u16>().is_ok());
    if words.next().is_some() || !are_ports {
        return None;
    }
    let address = match family {
        "TCP4" => destination.parse::<Ipv4Addr>().and_then(|_| source.parse().map(IpAddr::V4)).ok()?,
        "TCP6" => destination.parse::<Ipv6Addr>().and_then(|_| source.parse().map(IpAddr::V6)).ok()?,
        _ => return None,
    };
    Some(Source::Client(address))
}

fn parse_v2(version_and_command: u8, family: u8, rest: &[u8]) -> Option<Source> {
    match (version_and_command, family) {
        (0x21, 0x11) => {
            let source: [u8; 4] = rest.get(..12)?[..4].try_into().ok()?;
            Some(Source::Client(IpAddr::from(source)))
        }
        (0x21, 0x21) => {
            let source: [u8; 16] = rest.get(..36)?[..16].try_into().ok()?;
            Some(Source::Client(IpAddr::from(source)))
        }
        // LOCAL, or PROXY with another kind of address, such as a UNIX socket.
        (0x20 | 0x21, _) => Some(Source::Proxy),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> (io::Result<Source>, usize) {
        let mut rest = bytes;
        let address = read_header(&mut rest).await;
        (address, rest.len())
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&V2_SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    #[tokio::test]
    async fn both_versions_name_the_client_and_take_none_of_its_bytes() {
        let ipv6 = "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\nEHLO";
        for (header, address) in [
            (b"PROXY TCP4 192.0.2.1 198.51.100.1 50000 587\r\nEHLO".to_vec(), "192.0.2.1"),
            (ipv6.into(), "2001:db8::1"),
            (
                [v2(0x21, 0x11, &[192, 0, 2, 7, 1, 1, 1, 1, 0, 1, 0, 2]), b"EHLO".to_vec()].concat(),
                "192.0.2.7",
            ),
            (
                [v2(0x21, 0x21, &[[1; 36].as_slice(), &[9; 20]].concat()), b"EHLO".to_vec()].concat(),
                "101:101:101:101:101:101:101:101",
            ),
        ] {
            let (found, left) = read(&header).await;
            assert_eq!(found.unwrap(), Source::Client(address.parse().unwrap()));
            assert_eq!(left, 4);
        }
    }

    #[tokio::test]
    async fn a_header_without_a_client_address_means_the_proxy() {
        for header in [
            &b"PROXY UNKNOWN\r\n"[..],
            b"PROXY UNKNOWN x y\r\n",
            &v2(0x20, 0, b""),
            &v2(0x21, 0x31, &[0; 216]),
        ] {
            assert_eq!(read(header).await.0.unwrap(), Source::Proxy);
        }
    }

    #[tokio::test]
    async fn invalid_headers_are_refused() {
        let long = format!("PROXY TCP4 {}\r\n", "1".repeat(100));
        for header in [
            &b"EHLO client.example\r\n"[..],
            b"PROXY TCP4 192.0.2.1 198.51.100.1 50000\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.1 50000 99999\r\n",
            b"PROXY TCP4 2001:db8::1 192.0.2.1 1 2\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.1 1 2 3\r\n",
            b"PROXY TCP5 192.0.2.1 198.51.100.1 1 2\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.1 1 2\nEHLO x\r\n",
            long.as_bytes(),
            &v2(0x21, 0x11, &[0; 11]),
            &v2(0x31, 0x11, &[0; 12]),
            &v2(0x21, 0x11, &vec![0; 5_000]),
            b"PROXY TCP4 1",
        ] {
            assert!(read(header).await.0.is_err(), "{:?}", String::from_utf8_lossy(header));
        }
    }
}
