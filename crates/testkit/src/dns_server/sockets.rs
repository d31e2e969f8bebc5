//! UDP and TCP sockets of the DNS server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::failure::Failure;
use super::zone::{DnsResponse, Zone};

/// UDP payload size that the server announces in EDNS.
const PAYLOAD_BYTES_MAX: u16 = 1_232;

pub(super) struct Sockets {
    udp: std::net::UdpSocket,
    tcp: std::net::TcpListener,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

impl Sockets {
    /// Finds a port that is free for both.
    pub(super) fn bind() -> Self {
        for _ in 0..100 {
            let udp =
                std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has a free port");
            let address = udp.local_addr().expect("a bound socket has an address");
            if let Ok(tcp) = std::net::TcpListener::bind(address) {
                udp.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
                tcp.set_nonblocking(true).expect("a fresh socket can be made non-blocking");
                return Self { udp, tcp };
            }
        }
        panic!("no port of the loopback is free for both UDP and TCP");
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.udp.local_addr().expect("a bound socket has an address")
    }

    pub(super) async fn serve(self, zone: Arc<Mutex<Zone>>) {
        let udp = Arc::new(UdpSocket::from_std(self.udp).expect("the runtime is running"));
        let tcp = TcpListener::from_std(self.tcp).expect("the runtime is running");
        tokio::join!(serve_udp(udp, &zone), serve_tcp(tcp, &zone));
    }
}

async fn serve_udp(socket: Arc<UdpSocket>, zone: &Arc<Mutex<Zone>>) {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        // An error here comes from an earlier reply to a closed port.
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else { continue };
        let (bytes, socket, zone) = (buffer[..length].to_vec(), Arc::clone(&socket), Arc::clone(zone));
        tokio::spawn(async move {
            if let Some(reply) = reply_to(&bytes, Transport::Udp, &zone).await {
                drop(socket.send_to(&reply, client).await);
            }
        });
    }
}

async fn serve_tcp(listener: TcpListener, zone: &Arc<Mutex<Zone>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let zone = Arc::clone(zone);
        // A client that disconnects is not an error.
        tokio::spawn(async move { drop(converse(stream, &zone).await) });
    }
}

/// Answers queries over TCP, where each message follows its length (RFC 1035 4.2.2).
async fn converse(mut stream: TcpStream, zone: &Mutex<Zone>) -> io::Result<()> {
    loop {
        let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut bytes).await?;
        if let Some(reply) = reply_to(&bytes, Transport::Tcp, zone).await {
            let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes(), reply.as_slice()].concat()).await?;
        }
    }
}

async fn reply_to(bytes: &[u8], transport: Transport, zone: &Mutex<Zone>) -> Option<Vec<u8>> {
    let request = Message::from_vec(bytes).ok()?;
    let question = request.queries.first()?.clone();
    let (failure, mut reply, is_secure) = {
        let mut zone = zone.lock();
        let counts = zone.counter(&question);
        match transport {
            Transport::Udp => counts.udp += 1,
            Transport::Tcp => counts.tcp += 1,
        }
        let reply = zone.reply(&question);
        let is_secure = zone.is_secure(&question, &reply);
        (zone.failure(&question), reply, is_secure)
    };
    let error = |code| DnsResponse { code, answers: Vec::new(), authorities: Vec::new() };
    match failure {
        Some(Failure::Silent) => return None,
        Some(Failure::Garbage) => return Some([&bytes[..2], &[0xff; 30]].concat()),
        Some(Failure::Slow(delay)) => tokio::time::sleep(delay).await,
        Some(Failure::ServFail) => reply = error(ResponseCode::ServFail),
        Some(Failure::Refused) => reply = error(ResponseCode::Refused),
        Some(Failure::Empty) => reply = error(ResponseCode::NoError),
        Some(Failure::Referral) => reply = Zone::referral(),
        Some(Failure::Truncated | Failure::WrongId) | None => {}
    }
    let mut message = message_of(&request, question, reply);
    // RFC 6840 5.7, 5.8: the AD bit is only for clients that understand it.
    let asks_for_ad =
        request.metadata.authentic_data || request.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok);
    message.metadata.authentic_data = is_secure && asks_for_ad && failure.is_none();
    if failure == Some(Failure::WrongId) {
        message.metadata.id = message.metadata.id.wrapping_add(1);
    }
    let whole = message.to_vec().expect("the records of a test can be written");
    let fits = transport == Transport::Tcp
        || (failure != Some(Failure::Truncated) && whole.len() <= usize::from(request.max_payload()));
    Some(if fits { whole } else { message.truncate().to_vec().expect("a question can be written") })
}

fn message_of(request: &Message, question: Query, reply: DnsResponse) -> Message {
    let mut message = Message::response(request.metadata.id, OpCode::Query);
    message.metadata.response_code = reply.code;
    message.metadata.authoritative = true;
    message.metadata.recursion_desired = request.metadata.recursion_desired;
    // Clients request recursion; this server is the whole DNS of the test.
    message.metadata.recursion_available = true;
    message.add_query(question);
    message.answers = reply.answers;
    message.authorities = reply.authorities;
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD_BYTES_MAX);
        message.set_edns(edns);
    }
    message
}
