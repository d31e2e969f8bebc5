//! Binding of listeners.

use std::io;
use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;

/// Maximum number of ports that `bind` tries after the one that is taken.
const NEXT_PORTS_MAX: u16 = 100;

/// Binds the address. With `may_use_next_port`, if the address's port is taken, binds the next free port; if a hundred
/// more ports are taken, any free port.
pub(crate) async fn bind(
    address: SocketAddr,
    may_use_next_port: bool,
    protocol: &str,
) -> anyhow::Result<TcpListener> {
    let mut bound = TcpListener::bind(address).await;
    let is_taken = |bound: &io::Result<TcpListener>| matches!(bound, Err(error) if error.kind() == io::ErrorKind::AddrInUse);
    if may_use_next_port {
        let next = (1..=NEXT_PORTS_MAX).map_while(|step| address.port().checked_add(step)).chain([0]);
        for port in next {
            if !is_taken(&bound) {
                break;
            }
            bound = TcpListener::bind((address.ip(), port)).await;
        }
    }
    bound.with_context(|| {
        format!("cannot listen on {address} for {protocol} (is another program using the port?)")
    })
}
