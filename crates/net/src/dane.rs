//! DANE for SMTP (RFC 7672): TLS configurations that accept a certificate by the TLSA records of its host.
//!
//! DANE-EE(3) ignores names and dates: the record authenticates the key. DANE-TA(2) checks the chain up to the
//! authority named by the record, and the host's name. PKIX-TA(0) and PKIX-EE(1) are not used for SMTP (RFC 7672
//! 3.1.3).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client_tls;
use crate::dns::TlsaRecord;

const DANE_TA: u8 = 2;
const DANE_EE: u8 = 3;
const FULL_CERTIFICATE: u8 = 0;
const PUBLIC_KEY: u8 = 1;
const EXACT: u8 = 0;
const MATCHING_SHA256: u8 = 1;
const MATCHING_SHA512: u8 = 2;
const SESSIONS_MAX: usize = 8;
/// Maximum number of certificates of a chain that are examined as authorities.
const CHAIN_MAX: usize = 16;

/// TLS to one host, authenticated by its TLSA records.
#[derive(Clone)]
pub struct DaneTls {
    pub config: Arc<ClientConfig>,
    /// Name for SNI: the name that has the records (RFC 7672 8.1).
    pub server_name: String,
    /// Number of usable records.
    pub usable: usize,
}

impl DaneTls {
    /// `base` is the name that has the records; `host` the name in the MX record. `None` if no record is usable: TLS is
    /// then required, with any certificate (RFC 7672 2.2).
    pub fn new(base: &str, host: &str, records: &[TlsaRecord]) -> Option<Self> {
        let usable = usable(records);
        if usable.is_empty() {
            return None;
        }
        let mut names = vec![base, host];
        names.dedup();
        let names = names.into_iter().filter_map(|name| ServerName::try_from(name.to_owned()).ok()).collect();
        let provider = Arc::new(default_provider());
        let count = usable.len();
        let verifier = DaneVerifier { records: usable, names, provider: Arc::clone(&provider) };
        let mut config = client_tls::builder(&provider)
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        // The configuration has its own sessions, so that only connections with the same records resume them.
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Some(Self { config: Arc::new(config), server_name: base.to_owned(), usable: count })
    }
}

impl fmt::Debug for DaneTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server_name, usable, .. } = self;
        f.debug_struct("DaneTls")
            .field("server_name", server_name)
            .field("usable", usable)
            .finish_non_exhaustive()
    }
}

/// The usable records: those with known parameters; of several digests for one usage and selector, only the strongest
/// (RFC 7671 9).
fn usable(records: &[TlsaRecord]) -> Vec<TlsaRecord> {
    let is_known = |record: &&TlsaRecord| {
        let has_data = match record.matching {
            EXACT => !record.data.is_empty(),
            MATCHING_SHA256 => record.data.len() == SHA256.output_len(),
            MATCHING_SHA512 => record.data.len() == SHA512.output_len(),
            _ => false,
        };
        has_data
            && matches!(record.usage, DANE_TA | DANE_EE)
            && matches!(record.selector, FULL_CERTIFICATE | PUBLIC_KEY)
    };
    let known: Vec<&TlsaRecord> = records.iter().filter(is_known).collect();
    let is_weaker = |record: &TlsaRecord| {
        record.matching == MATCHING_SHA256
            && known.iter().any(|other| {
                (other.usage, other.selector, other.matching)
                    == (record.usage, record.selector, MATCHING_SHA512)
            })
    };
    known.iter().filter(|record| !is_weaker(record)).map(|record| (*record).clone()).collect()
}

/// Why a certificate was refused.
#[derive(Debug, thiserror::Error)]
enum Mismatch {
    #[error("the certificate does not match the TLSA records of the host")]
    NoRecord,
    #[error("its authority matches a TLSA record, but the certificate is not for this host")]
    OtherName,
}

impl From<Mismatch> for rustls::Error {
    fn from(mismatch: Mismatch) -> Self {
        CertificateError::Other(OtherError(Arc::new(mismatch))).into()
    }
}

#[derive(Debug)]
struct DaneVerifier {
    records: Vec<TlsaRecord>,
    /// With DANE-TA, the certificate must be valid for one of these names.
    names: Vec<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl DaneVerifier {
    fn of_usage(&self, usage: u8) -> impl Iterator<Item = &TlsaRecord> {
        self.records.iter().filter(move |record| record.usage == usage)
    }

    /// Certificates of the chain, and those in the records themselves, that the records name as authorities.
    fn authorities(&self, chain: &[CertificateDer<'_>]) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for certificate in chain.iter().take(CHAIN_MAX) {
            if self.of_usage(DANE_TA).any(|record| is_match(record, certificate)) {
                // A certificate that cannot be an authority is skipped.
                let _ = roots.add(certificate.clone().into_owned());
            }
        }
        for record in self.of_usage(DANE_TA) {
            if (record.selector, record.matching) == (FULL_CERTIFICATE, EXACT) {
                let _ = roots.add(CertificateDer::from(record.data.clone()));
            }
        }
        roots
    }
}

/// Whether a record matches a certificate, by selector and matching type (RFC 6698 2.1.2, 2.1.3).
fn is_match(record: &TlsaRecord, certificate: &CertificateDer<'_>) -> bool {
    let key;
    let selected: &[u8] = if record.selector == PUBLIC_KEY {
        let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return false };
        key = parsed.subject_public_key_info();
        key.as_ref()
    } else {
        certificate.as_ref()
    };
    match record.matching {
        EXACT => selected == record.data,
        MATCHING_SHA256 => digest(&SHA256, selected).as_ref() == record.data,
        MATCHING_SHA512 => digest(&SHA512, selected).as_ref() == record.data,
        _ => false,
    }
}

impl ServerCertVerifier for DaneVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.of_usage(DANE_EE).any(|record| is_match(record, end_entity)) {
            return Ok(ServerCertVerified::assertion());
        }
        let roots = self.authorities(intermediates);
        if roots.is_empty() {
            return Err(Mismatch::NoRecord.into());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &roots, intermediates, now, algorithms)?;
        if !self.names.iter().any(|name| verify_server_name(&certificate, name).is_ok()) {
            return Err(Mismatch::OtherName.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(usage: u8, selector: u8, matching: u8, bytes: usize) -> TlsaRecord {
        TlsaRecord { usage, selector, matching, data: vec![7; bytes] }
    }

    #[test]
    fn pkix_records_and_records_of_unknown_kinds_are_not_usable() {
        let unusable = [
            record(0, 1, 1, 32),
            record(1, 1, 1, 32),
            record(4, 1, 1, 32),
            record(3, 2, 1, 32),
            record(3, 1, 3, 32),
            record(3, 1, 1, 31),
            record(3, 1, 2, 32),
            record(3, 0, 0, 0),
        ];
        assert_eq!(usable(&unusable), []);
        assert!(DaneTls::new("mx.example", "mx.example", &unusable).is_none());
    }

    #[test]
    fn of_several_digests_for_one_usage_and_selector_only_the_strongest_counts() {
        let records = [
            record(3, 1, 1, 32),
            record(3, 1, 2, 64),
            record(3, 0, 1, 32),
            record(2, 1, 1, 32),
            record(3, 1, 0, 9),
        ];
        let kinds: Vec<_> =
            usable(&records).iter().map(|record| (record.usage, record.selector, record.matching)).collect();
        assert_eq!(kinds, [(3, 1, 2), (3, 0, 1), (2, 1, 1), (3, 1, 0)]);
    }
}
