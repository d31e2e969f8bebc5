//! Certificate authority of one test, and a server certificate from it.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use postroad_model::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::server::ParsedCertificate;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// PEM texts: `certificate_pem` and `key_pem` for the server, `ca_pem` for the client.
#[derive(Debug, Clone)]
pub struct TestCertificate {
    pub ca_pem: String,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl TestCertificate {
    /// A certificate for `localhost`, 127.0.0.1 and ::1.
    pub fn for_localhost() -> Self {
        Self::for_names(&["localhost", "127.0.0.1", "::1"])
    }

    /// A certificate for DNS names or IP addresses.
    pub fn for_names(names: &[&str]) -> Self {
        Self::signed(&leaf_params(names))
    }

    /// A certificate that is signed by the authority, but expired in 2002.
    pub fn expired(names: &[&str]) -> Self {
        let mut params = leaf_params(names);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        Self::signed(&params)
    }

    /// A certificate that is signed by the authority, and valid until that day begins, in UTC.
    pub fn valid_until(names: &[&str], day: Timestamp) -> Self {
        let text = day.to_rfc3339();
        let part =
            |range: std::ops::Range<usize>| text[range].parse::<i32>().expect("RFC 3339 has digits there");
        let (year, month, day) = (part(0..4), part(5..7) as u8, part(8..10) as u8);
        let mut params = leaf_params(names);
        params.not_after = date_time_ymd(year, month, day);
        Self::signed(&params)
    }

    /// A self-signed certificate; `ca_pem` belongs to another authority.
    pub fn self_signed(names: &[&str]) -> Self {
        let key = KeyPair::generate().expect("the default key type is supported");
        let certificate = leaf_params(names).self_signed(&key).expect("the parameters are valid");
        Self {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            ..Self::signed(&leaf_params(names))
        }
    }

    /// Adds the authority's certificate to the chain that servers send, as DANE-TA needs it.
    #[must_use]
    pub fn with_authority_in_chain(mut self) -> Self {
        self.certificate_pem.push_str(&self.ca_pem);
        self
    }

    /// Data of a TLSA record (RFC 6698 2.1) about this certificate; usages 0 and 2 are about its authority.
    pub fn tlsa(&self, (usage, selector, matching): (u8, u8, u8)) -> Vec<u8> {
        let pem = if matches!(usage, 0 | 2) { &self.ca_pem } else { &self.certificate_pem };
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a test certificate is PEM");
        let selected = match selector {
            1 => {
                let parsed = ParsedCertificate::try_from(&der).expect("a test certificate can be parsed");
                parsed.subject_public_key_info().to_vec()
            }
            _ => der.to_vec(),
        };
        match matching {
            1 => digest(&SHA256, &selected).as_ref().to_vec(),
            2 => digest(&SHA512, &selected).as_ref().to_vec(),
            _ => selected,
        }
    }

    /// Server configuration with this certificate, for TLS 1.2 and 1.3.
    pub fn server_config(&self) -> ServerConfig {
        let chain = CertificateDer::pem_slice_iter(self.certificate_pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .expect("a test certificate is PEM");
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).expect("a test key is PEM");
        // Explicit, because the service under test may install another default provider.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key belongs to the certificate")
    }

    fn signed(leaf_params: &CertificateParams) -> Self {
        let mut ca_params = CertificateParams::default();
        ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca_params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca_params.distinguished_name.push(DnType::CommonName, "Postroad test authority");
        let ca_key = KeyPair::generate().expect("the default key type is supported");
        let ca = ca_params.self_signed(&ca_key).expect("the parameters of the authority are valid");

        let leaf_key = KeyPair::generate().expect("the default key type is supported");
        let leaf = leaf_params
            .signed_by(&leaf_key, &Issuer::new(ca_params, ca_key))
            .expect("the authority signs any key");
        Self { ca_pem: ca.pem(), certificate_pem: leaf.pem(), key_pem: leaf_key.serialize_pem() }
    }
}

fn leaf_params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    CertificateParams::new(names).expect("the names are ASCII host names or addresses")
}
