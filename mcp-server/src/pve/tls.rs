//! Trust in the node's certificate: pinned, by a CA file, by the system, or not at all.
//!
//! Whatever the rule, the signature of the handshake is verified: a certificate
//! is public, and only its key proves who is speaking.

use std::{sync::Arc, time::Duration};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;

use super::x509::{self, Facts};
use crate::{
    Code, Error, Result,
    config::{HostPort, Pin, Tls, same_host},
};

/// What a node shows of itself in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// SHA-256 of the certificate, `AA:BB:…`.
    pub sha256: String,
    /// Names and dates.
    pub facts: Facts,
}

/// Makes the TLS side of a connection for the configured trust.
///
/// # Errors
/// `config` when the CA file cannot be read or holds no certificate.
pub fn client_config(tls: &Tls) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = Trust::of(tls, &provider)?;
    with_trust(trust, provider)
}

/// Reads the certificate that a host shows, without trusting it and without
/// sending a request. The host has to own the certificate's key.
///
/// # Errors
/// `unreachable`, `timeout`, or `bad_answer` when it does not speak TLS.
pub async fn fetch_fingerprint(host: &HostPort, timeout: Duration) -> Result<CertificateFacts> {
    let look = async {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = with_trust(Trust::Anything, provider)?;
        let name = ServerName::try_from(host.host.clone())
            .map_err(|_| Error::new(Code::Config, format!("{host} is not a host name")))?;
        let tcp = TcpStream::connect((host.host.as_str(), host.port)).await.map_err(|e| {
            Error::new(Code::Unreachable, format!("no connection to {host}: {e}"))
                .hint("check PROXMOX_HOST and that port 8006 is open from here")
        })?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, tcp).await.map_err(|e| {
            Error::new(Code::BadAnswer, format!("{host} does not speak TLS as a node does: {e}"))
                .hint("check the port; pveproxy listens on 8006")
        })?;
        let seen = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let seen = seen.ok_or_else(|| Error::internal("the handshake left no certificate"))?;
        Ok(CertificateFacts {
            sha256: Pin::fingerprint(&fingerprint(seen)),
            facts: x509::facts(seen),
        })
    };
    tokio::time::timeout(timeout, look).await.unwrap_or_else(|_| {
        Err(Error::new(
            Code::Timeout,
            format!("{host} showed no certificate within {} s", timeout.as_secs_f32()),
        )
        .hint("check PROXMOX_HOST and that nothing filters port 8006"))
    })
}

fn with_trust(trust: Trust, provider: Arc<CryptoProvider>) -> Result<ClientConfig> {
    let verifier = Verifier { trust, algorithms: provider.signature_verification_algorithms };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Why a certificate was not accepted; travels inside the TLS error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Distrust {
    seen: [u8; 32],
    why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// None of these pins is the certificate's.
    Unpinned(Vec<[u8; 32]>),
    /// The CA file or the system store does not vouch for it.
    Unvouched(String),
    /// The handshake was signed by another key than the certificate's.
    KeyMissing { pinned: bool },
}

impl std::fmt::Display for Distrust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "certificate {} is not trusted", Pin::fingerprint(&self.seen))
    }
}

impl std::error::Error for Distrust {}

impl Distrust {
    /// As the product's error, naming the host that showed the certificate.
    pub(crate) fn to_error(&self, host: &HostPort) -> Error {
        let seen = Pin::fingerprint(&self.seen);
        let error = match &self.why {
            Why::Unpinned(pins) => {
                let expected: Vec<String> = pins.iter().map(Pin::fingerprint).collect();
                let wanted = match expected.as_slice() {
                    [] => "no fingerprint is set for this host".to_owned(),
                    list => format!("expected {}", list.join(" or ")),
                };
                Error::new(
                    Code::TlsPinMismatch,
                    format!("{host} shows another certificate than the pinned one: {wanted}, seen {seen}"),
                )
                .hint(
                    "if the node renewed its certificate, compare with `pvenode cert info` on the \
                     node, then run `proxmox-mcp fingerprint` and put its line into .env; \
                     if not, somebody stands in between",
                )
                .with("expected", expected)
            }
            Why::Unvouched(reason) => Error::new(
                Code::TlsUntrusted,
                format!("the certificate of {host} is not trusted: {reason} (seen {seen})"),
            )
            .hint(
                "pin it: compare the fingerprint with `pvenode cert info` on the node, then run \
                 `proxmox-mcp fingerprint` and put its line into .env; or set PROXMOX_TLS_CA_FILE",
            ),
            Why::KeyMissing { pinned } => Error::new(
                if *pinned { Code::TlsPinMismatch } else { Code::TlsUntrusted },
                format!("{host} shows certificate {seen} and does not own its key"),
            )
            .hint("somebody stands in between and shows a copied certificate; nothing was sent"),
        };
        error.with("seen", seen).with("host", host.to_string())
    }
}

impl From<Distrust> for rustls::Error {
    fn from(distrust: Distrust) -> Self {
        CertificateError::Other(OtherError(Arc::new(distrust))).into()
    }
}

/// Finds the reason inside an error that came up through HTTP.
pub(crate) fn distrust_in(error: &rustls::Error) -> Option<&Distrust> {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            inner.downcast_ref()
        }
        _ => None,
    }
}

#[derive(Debug)]
enum Trust {
    Pins(Vec<Pin>),
    Roots { verifier: Arc<WebPkiServerVerifier>, source: String },
    Anything,
}

impl Trust {
    fn of(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Self> {
        if !tls.fingerprints.is_empty() {
            return Ok(Self::Pins(tls.fingerprints.clone()));
        }
        let (roots, source) = match &tls.ca_file {
            Some(file) => (ca_file(file)?, file.display().to_string()),
            None if tls.insecure => return Ok(Self::Anything),
            None => (system_store(), "this system's store".to_owned()),
        };
        if roots.is_empty() {
            return Err(Error::new(Code::Config, format!("{source} holds no CA certificate")).hint(
                "pin the node's certificate instead: `proxmox-mcp fingerprint` prints the line for .env",
            ));
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?;
        Ok(Self::Roots { verifier, source })
    }
}

fn ca_file(file: &std::path::Path) -> Result<RootCertStore> {
    let unreadable = |why: String| {
        Error::new(Code::Config, format!("PROXMOX_TLS_CA_FILE {}: {why}", file.display()))
            .hint("it has to be a PEM file, such as a node's /etc/pve/pve-root-ca.pem")
    };
    let pem = std::fs::read(file).map_err(|e| unreadable(e.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| unreadable(e.to_string()))?;
        roots.add(certificate).map_err(|e| unreadable(e.to_string()))?;
    }
    Ok(roots)
}

fn system_store() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn owned(
        &self,
        certificate: &CertificateDer<'_>,
        checked: Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        checked.map_err(|_| {
            let pinned = matches!(self.trust, Trust::Pins(_));
            Distrust { seen: fingerprint(certificate), why: Why::KeyMissing { pinned } }.into()
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let distrust = |why| Distrust { seen: fingerprint(end_entity), why };
        match &self.trust {
            Trust::Anything => Ok(ServerCertVerified::assertion()),
            Trust::Pins(pins) => {
                let host = server_name.to_str();
                let wanted: Vec<[u8; 32]> = pins
                    .iter()
                    .filter(|pin| pin.host.as_deref().is_none_or(|h| same_host(h, &host)))
                    .map(|pin| pin.sha256)
                    .collect();
                if wanted.contains(&fingerprint(end_entity)) {
                    return Ok(ServerCertVerified::assertion());
                }
                Err(distrust(Why::Unpinned(wanted)).into())
            }
            Trust::Roots { verifier, source } => verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .map_err(|e| distrust(Why::Unvouched(in_words(&e, source))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.owned(
            certificate,
            verify_tls12_signature(message, certificate, signed, &self.algorithms),
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.owned(
            certificate,
            verify_tls13_signature(message, certificate, signed, &self.algorithms),
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn in_words(error: &rustls::Error, source: &str) -> String {
    let rustls::Error::InvalidCertificate(why) = error else { return error.to_string() };
    match why {
        CertificateError::UnknownIssuer => format!("no CA of {source} issued it"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet (is the clock right?)".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another host name".to_owned()
        }
        other => other.to_string(),
    }
}
