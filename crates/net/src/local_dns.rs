//! A small authoritative name server for `postroad dev`: on loopback, over UDP, with records that are published
//! through the dev API.
//!
//! With this server, people can verify a domain that they do not own. A name exists if it or a name below it has a
//! record. A file keeps the records; if it cannot be written, the records are lost with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, CNAME, SOA, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record};
use parking_lot::Mutex;
use postroad_boxed_futures::boxed_futures;
use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;

use crate::private_file::write_private;

const TTL_SECS: u32 = 1;
/// Size of a datagram that every IPv6 path carries whole: 1,280 bytes without the headers of IPv6 and UDP.
const PAYLOAD_BYTES_MAX: u16 = 1_232;
/// Values are limited so that one fits a datagram.
const VALUE_BYTES_MAX: usize = 1_000;
const RECORDS_MAX: usize = 10_000;
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);
/// Maximum number of aliases that are followed, so that a loop ends.
const ALIASES_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LocalType {
    A,
    Cname,
    Txt,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalRecord {
    /// Lower-case, without a dot at the end.
    pub name: String,
    #[serde(rename = "type")]
    pub record_type: LocalType,
    pub value: String,
}

/// Cheap to clone; serves until the runtime ends.
#[derive(Debug, Clone)]
pub struct LocalDns {
    address: SocketAddr,
    file: PathBuf,
    records: Records,
}

type Records = Arc<Mutex<BTreeMap<String, Vec<LocalRecord>>>>;

#[boxed_futures]
impl LocalDns {
    /// Starts on any free port, with the records of the file if it exists.
    pub async fn start(file: PathBuf) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let stored = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stored: Vec<LocalRecord> = stored.unwrap_or_default();
        let local = Self { address, file, records: Records::default() };
        local.insert(stored);
        tokio::spawn(serve(socket, Arc::clone(&local.records)));
        Ok(local)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes records, which replace records of the same names and types. Skips records that cannot be published;
    /// returns the published ones.
    pub fn publish(&self, records: Vec<LocalRecord>) -> Vec<LocalRecord> {
        let published = self.insert(records);
        self.save();
        published
    }

    /// Removes every record at the name and below it; returns how many.
    pub fn remove(&self, name: &str) -> usize {
        let mut count = 0;
        let below = format!(".{name}");
        self.records.lock().retain(|known, records| {
            let is_gone = known == name || known.ends_with(&below);
            count += if is_gone { records.len() } else { 0 };
            !is_gone
        });
        self.save();
        count
    }

    pub fn list(&self) -> Vec<LocalRecord> {
        self.records.lock().values().flatten().cloned().collect()
    }

    /// Like `publish`, but does not write the file.
    fn insert(&self, records: Vec<LocalRecord>) -> Vec<LocalRecord> {
        let mut zone = self.records.lock();
        let (mut published, mut replaced) = (Vec::new(), BTreeSet::new());
        for record in records {
            let count: usize = zone.values().map(Vec::len).sum();
            if data_of(&record).is_none() || name_of(&record.name).is_none() || count >= RECORDS_MAX {
                continue;
            }
            let records_of_name = zone.entry(record.name.clone()).or_default();
            // Two new records of one name and type are both published.
            if replaced.insert((record.name.clone(), record.record_type)) {
                records_of_name.retain(|known| known.record_type != record.record_type);
            }
            records_of_name.push(record.clone());
            published.push(record);
        }
        published
    }

    fn save(&self) {
        let text = serde_json::to_string_pretty(&self.list()).expect("records are texts");
        if let Err(error) = write_private(&self.file, &text) {
            tracing::warn!(%error, file = %self.file.display(), "storing records of the dev DNS failed; they are lost at the next start");
        }
    }
}

async fn serve(socket: UdpSocket, records: Records) {
    let mut buffer = vec![0; usize::from(PAYLOAD_BYTES_MAX)];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
            // The error is usually about an earlier reply to a port that is closed now. A lasting error must not use a
            // whole core.
            tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            continue;
        };
        let answer = encode_answer(&buffer[..length], &records.lock());
        if let Some(answer) = answer {
            drop(socket.send_to(&answer, client).await);
        }
    }
}

fn encode_answer(bytes: &[u8], records: &BTreeMap<String, Vec<LocalRecord>>) -> Option<Vec<u8>> {
    let request = Message::from_vec(bytes).ok()?;
    let question = request.queries.first()?.clone();
    let mut message = Message::response(request.metadata.id, OpCode::Query);
    message.metadata.authoritative = true;
    message.metadata.recursion_desired = request.metadata.recursion_desired;
    // Clients expect recursion. It is never needed: no other names exist here.
    message.metadata.recursion_available = true;
    (message.answers, message.metadata.response_code) = answer(&question, records);
    if message.answers.iter().all(|record| record.record_type() != question.query_type()) {
        message.authorities = vec![soa()];
    }
    message.add_query(question);
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD_BYTES_MAX);
        message.set_edns(edns);
    }
    message.to_vec().ok()
}

fn answer(question: &Query, records: &BTreeMap<String, Vec<LocalRecord>>) -> (Vec<Record>, ResponseCode) {
    let mut answers = Vec::new();
    let mut name = text_of(question.name());
    for _ in 0..ALIASES_MAX {
        let records_of_name = records.get(&name).map(Vec::as_slice).unwrap_or_default();
        let owner = name_of(&name).unwrap_or_else(Name::root);
        let wanted = records_of_name
            .iter()
            .filter_map(data_of)
            .filter(|data| data.record_type() == question.query_type());
        let before = answers.len();
        answers.extend(wanted.map(|data| Record::from_rdata(owner.clone(), TTL_SECS, data)));
        if answers.len() > before {
            break;
        }
        let alias = records_of_name.iter().find(|record| record.record_type == LocalType::Cname);
        let Some(alias) = alias else {
            let below = format!(".{name}");
            // RFC 8020: a name with names below it exists.
            let exists = !records_of_name.is_empty() || records.keys().any(|known| known.ends_with(&below));
            let code = if exists { ResponseCode::NoError } else { ResponseCode::NXDomain };
            return (answers, code);
        };
        answers.extend(data_of(alias).map(|data| Record::from_rdata(owner, TTL_SECS, data)));
        let Some(target) = name_of(&alias.value) else { break };
        name = text_of(&target);
    }
    (answers, ResponseCode::NoError)
}

fn soa() -> Record {
    let soa = SOA::new(Name::root(), Name::root(), 1, 3_600, 600, 86_400, TTL_SECS);
    Record::from_rdata(Name::root(), TTL_SECS, RData::SOA(soa))
}

/// Data of a record in DNS form; `None` if it cannot be published.
fn data_of(record: &LocalRecord) -> Option<RData> {
    if record.value.len() > VALUE_BYTES_MAX {
        return None;
    }
    Some(match record.record_type {
        LocalType::A => RData::A(A(record.value.parse().ok()?)),
        LocalType::Cname => RData::CNAME(CNAME(name_of(&record.value)?)),
        LocalType::Txt => RData::TXT(TXT::from_bytes(record.value.as_bytes().chunks(255).collect())),
    })
}

fn name_of(text: &str) -> Option<Name> {
    let mut name = Name::from_ascii(text).ok()?;
    name.set_fqdn(true);
    Some(name)
}

fn text_of(name: &Name) -> String {
    let text = name.to_lowercase().to_ascii();
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::{Dns, DnsSettings, LookupFailure, RecordData, RecordType};

    fn record(name: &str, record_type: LocalType, value: &str) -> LocalRecord {
        LocalRecord { name: name.to_owned(), record_type, value: value.to_owned() }
    }

    #[tokio::test]
    async fn published_records_are_found_until_removed_and_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dns.json");
        let local = LocalDns::start(file.clone()).await.unwrap();
        let long = "k".repeat(400);
        let published = local.publish(vec![
            record("a.test", LocalType::A, "127.0.0.1"),
            record("key.a.test", LocalType::Txt, &long),
            record("alias.b.test", LocalType::Cname, "A.test."),
            record("two.test", LocalType::Txt, "one"),
            record("two.test", LocalType::Txt, "other"),
            record("bad.test", LocalType::A, "no address"),
        ]);
        assert_eq!(published.len(), 5);
        let local = LocalDns::start(file).await.unwrap();
        assert_eq!(local.list().len(), 5);
        let settings = DnsSettings { nameservers: vec![local.address()], ..DnsSettings::default() };
        let dns = Dns::for_checks(&settings).unwrap();
        let ask = async |name: &str, record_type| dns.records(name, record_type).await;
        assert_eq!(ask("KEY.a.test", RecordType::TXT).await, Ok(vec![RecordData::Text(long.into_bytes())]));
        let address = Ok(vec![RecordData::Address(Ipv4Addr::LOCALHOST.into())]);
        assert_eq!(ask("alias.b.test", RecordType::A).await, address);
        let both = ["one", "other"].map(|text| RecordData::Text(text.into()));
        let found = ask("two.test", RecordType::TXT).await.unwrap();
        assert!(found.len() == 2 && both.iter().all(|text| found.contains(text)), "{found:?}");
        let target = Ok(vec![RecordData::Name("a.test".to_owned())]);
        assert_eq!(ask("alias.b.test", RecordType::CNAME).await, target);
        assert_eq!(ask("b.test", RecordType::A).await, Err(LookupFailure::NoData));
        assert_eq!(ask("a.test", RecordType::TXT).await, Err(LookupFailure::NoData));
        assert_eq!(ask("nothing.test", RecordType::A).await, Err(LookupFailure::NoSuchName));
        assert_eq!(local.remove("a.test"), 2);
        assert_eq!(ask("key.a.test", RecordType::TXT).await, Err(LookupFailure::NoSuchName));
    }
}
