//! When a certificate expires (RFC 5280 4.1.2.5).

use postroad_model::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// `None` if the certificate cannot be parsed.
pub(crate) fn expires_at(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let since_epoch = parsed.tbs_certificate.validity.not_after.to_unix_duration();
    i64::try_from(since_epoch.as_micros()).ok().map(Timestamp::from_micros)
}

#[cfg(test)]
mod tests {
    use postroad_testkit::TestCertificate;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_expiry_of_a_certificate_is_read() {
        let expired = TestCertificate::expired(&["localhost"]);
        let der = CertificateDer::from_pem_slice(expired.certificate_pem.as_bytes()).unwrap();
        assert_eq!(expires_at(&der), Timestamp::parse_rfc3339("2002-01-01T00:00:00Z"));
        assert_eq!(expires_at(&CertificateDer::from(b"no certificate".to_vec())), None);
    }
}
