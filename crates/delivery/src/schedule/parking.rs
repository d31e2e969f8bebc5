//! Connections that only wait for the reply to a message they have sent. The reply may take minutes, and aborting could
//! cause a duplicate. So up to a limit such connections are parked: they do not count among the node's connections, but
//! still count for the limits of their site and provider.

use postroad_model::Timestamp;

use super::Schedule;
use super::connection_shares::WaitingLine;

/// One in this many of the node's connections may be parked.
const CONNECTIONS_PER_PARKED: u32 = 2;

impl Schedule {
    /// A reply takes long: parks the connection, so that another can be opened. Returns whether the limit allowed it.
    pub(crate) fn park(&mut self, path_id: usize, now: Timestamp) -> bool {
        if self.parked_connections >= self.connections_max.div_ceil(CONNECTIONS_PER_PARKED) {
            return false;
        }
        self.parked_connections += 1;
        self.connections -= 1;
        self.end_connected_attempts(path_id);
        for line in [WaitingLine::General, WaitingLine::New, WaitingLine::Silent] {
            self.serve_line(line, now);
        }
        true
    }

    /// The reply arrived, or its timeout passed. The node may have one connection too many until another one asks for
    /// work.
    pub(crate) fn unpark(&mut self) {
        self.parked_connections -= 1;
        self.connections += 1;
    }
}
