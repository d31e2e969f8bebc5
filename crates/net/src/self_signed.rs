//! Self-signed certificate, so that `postroad dev` offers TLS without any setup.

use std::io;
use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair};

use crate::private_file::write_private;

/// Writes a new certificate for `names` and its key as PEM files, unless both exist: clients may trust the existing
/// certificate.
pub fn ensure_self_signed(certificate: &Path, key: &Path, names: &[String]) -> io::Result<()> {
    if certificate.exists() && key.exists() {
        return Ok(());
    }
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "Postroad development");
    let pair = KeyPair::generate().map_err(io::Error::other)?;
    let signed = params.self_signed(&pair).map_err(io::Error::other)?;
    write_private(key, &pair.serialize_pem())?;
    write_private(certificate, &signed.pem())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::ReloadingCertificate;

    #[test]
    fn the_pair_is_valid_private_and_created_once() {
        let folder = tempfile::TempDir::new().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        ensure_self_signed(&certificate, &key, &names).unwrap();
        ReloadingCertificate::load(&certificate, &key).unwrap();
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let first = std::fs::read(&certificate).unwrap();
        ensure_self_signed(&certificate, &key, &names).unwrap();
        assert_eq!(std::fs::read(&certificate).unwrap(), first);
        std::fs::remove_file(&key).unwrap();
        ensure_self_signed(&certificate, &key, &names).unwrap();
        ReloadingCertificate::load(&certificate, &key).unwrap();
    }
}
