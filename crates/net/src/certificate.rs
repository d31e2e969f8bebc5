//! TLS certificate of the listeners, read from files and replaceable at run time.
//!
//! If a reload fails, the previous pair stays in use.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use postroad_model::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::certificate_expiry::expires_at;

/// Errors of certificate files; each text names the files, and nearly each the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read {}: {source}; check that the file exists and that postroad's user may read it", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not valid PEM: {source}; it should hold blocks of -----BEGIN …----- to -----END …-----", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error(
        "{} holds no certificate; it needs -----BEGIN CERTIFICATE----- blocks, the server's own first, then the chain (are certificate and key swapped?)",
        .0.display()
    )]
    NoCertificate(PathBuf),
    #[error(
        "{} holds no private key; it needs a -----BEGIN PRIVATE KEY----- block without a password (are certificate and key swapped?)",
        .0.display()
    )]
    NoKey(PathBuf),
    #[error(
        "the key in {} does not belong to the certificate in {}; use the key that the certificate was requested with, and put the server's own certificate first in its file",
        key.display(),
        certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("the certificate in {} with the key in {} cannot be used: {source}", certificate.display(), key.display())]
    Unusable { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

/// The certificate in use, and its files as they are now.
#[derive(Debug)]
pub struct CertificateStatus {
    /// `None` if the certificate cannot be parsed.
    pub expires_at: Option<Timestamp>,
    pub files: CertificateFiles,
}

#[derive(Debug)]
pub enum CertificateFiles {
    /// The files hold the certificate in use.
    InUse,
    /// The files hold another certificate, which a reload would use.
    Replaced,
    /// A reload or restart would fail.
    Unusable(CertificateError),
}

/// Certificate chain and key. Listeners keep this value; `reload` replaces its content.
pub struct ReloadingCertificate {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl ReloadingCertificate {
    /// Reads both PEM files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, CertificateError> {
        let provider = Arc::new(default_provider());
        let current = RwLock::new(Arc::new(read_pair(certificate, key, &provider)?));
        Ok(Arc::new(Self { certificate: certificate.to_owned(), key: key.to_owned(), provider, current }))
    }

    /// Reads both files again; new handshakes use the new pair.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let fresh = Arc::new(read_pair(&self.certificate, &self.key, &self.provider)?);
        *self.current.write() = fresh;
        Ok(())
    }

    /// The certificate in use, and the state of its files, which are read now.
    pub fn status(&self) -> CertificateStatus {
        let current = Arc::clone(&self.current.read());
        let files = match read_pair(&self.certificate, &self.key, &self.provider) {
            Ok(found) if found.cert.first() == current.cert.first() => CertificateFiles::InUse,
            Ok(_) => CertificateFiles::Replaced,
            Err(error) => CertificateFiles::Unusable(error),
        };
        CertificateStatus { expires_at: current.cert.first().and_then(expires_at), files }
    }

    /// Configuration of HTTPS listeners: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
    pub fn https_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let mut config = self.config();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// Configuration of SMTP listeners: TLS 1.2 and 1.3. No ALPN: RFC 8314 defines none.
    pub fn smtp_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        Arc::new(self.config())
    }

    fn config(self: &Arc<Self>) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider has suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Self>::clone(self))
    }
}

impl ResolvesServerCert for ReloadingCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

impl fmt::Debug for ReloadingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadingCertificate").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

fn read_pair(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, CertificateError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    let not_pem = |path: &Path| {
        let path = path.to_owned();
        |source| CertificateError::Pem { path, source }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(not_pem(certificate))?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate(certificate.to_owned()));
    }
    let private_key = match PrivateKeyDer::from_pem_slice(&read(key)?) {
        Err(pem::Error::NoItemsFound) => return Err(CertificateError::NoKey(key.to_owned())),
        parsed => parsed.map_err(not_pem(key))?,
    };
    CertifiedKey::from_der(chain, private_key, provider).map_err(|source| {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        match source {
            rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch { certificate, key },
            source => CertificateError::Unusable { certificate, key, source },
        }
    })
}

#[cfg(test)]
mod tests {
    use postroad_testkit::TestCertificate;
    use tempfile::TempDir;

    use super::*;

    struct Files {
        folder: TempDir,
    }

    impl Files {
        fn with(pair: &TestCertificate) -> Self {
            let files = Self { folder: TempDir::new().unwrap() };
            files.write("cert.pem", &pair.certificate_pem);
            files.write("key.pem", &pair.key_pem);
            files
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.folder.path().join(name), text).unwrap();
        }

        fn load(&self) -> Result<Arc<ReloadingCertificate>, CertificateError> {
            let folder = self.folder.path();
            ReloadingCertificate::load(&folder.join("cert.pem"), &folder.join("key.pem"))
        }
    }

    fn leaf_certificate(certificate: &ReloadingCertificate) -> Vec<u8> {
        certificate.current.read().cert[0].to_vec()
    }

    #[test]
    fn reload_replaces_the_pair_and_a_bad_pair_changes_nothing() {
        let files = Files::with(&TestCertificate::for_localhost());
        let certificate = files.load().unwrap();
        let first = leaf_certificate(&certificate);
        assert_eq!(certificate.https_config().alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);

        let next = TestCertificate::for_localhost();
        files.write("cert.pem", &next.certificate_pem);
        assert!(matches!(certificate.reload(), Err(CertificateError::Mismatch { .. })));
        assert_eq!(leaf_certificate(&certificate), first);
        assert!(matches!(certificate.status().files, CertificateFiles::Unusable(_)));

        files.write("key.pem", &next.key_pem);
        assert!(matches!(certificate.status().files, CertificateFiles::Replaced));
        certificate.reload().unwrap();
        let status = certificate.status();
        assert!(matches!(status.files, CertificateFiles::InUse) && status.expires_at.is_some());
        assert_ne!(leaf_certificate(&certificate), first);
    }

    #[test]
    fn errors_of_a_bad_pair_name_the_file() {
        let pair = TestCertificate::for_localhost();
        let files = Files::with(&pair);
        let error_text = |files: &Files| files.load().unwrap_err().to_string();

        files.write("key.pem", &pair.certificate_pem);
        assert!(error_text(&files).contains("key.pem holds no private key"), "{}", error_text(&files));
        files.write("key.pem", "-----BEGIN PRIVATE KEY-----\n!!!\n-----END PRIVATE KEY-----\n");
        assert!(error_text(&files).contains("key.pem is not valid PEM"), "{}", error_text(&files));
        files.write("cert.pem", &pair.key_pem);
        assert!(error_text(&files).contains("cert.pem holds no certificate"), "{}", error_text(&files));
        std::fs::remove_file(files.folder.path().join("cert.pem")).unwrap();
        assert!(error_text(&files).contains("cert.pem: No such file"), "{}", error_text(&files));
    }
}
