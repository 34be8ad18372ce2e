//! A CA and a leaf certificate made at start, so that pinning and CA checks are real.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

/// The server's identity.
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    /// SHA-256 of the leaf's DER, upper-case hex with colons.
    pub(crate) fingerprint: String,
    pub(crate) ca_pem: String,
    pub(crate) leaf_pem: String,
}

fn other(e: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(e)
}

pub(crate) fn make() -> io::Result<Identity> {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    ca.distinguished_name.push(DnType::CommonName, "Proxmox Virtual Environment");
    ca.distinguished_name.push(DnType::OrganizationName, "PVE Cluster Manager CA");
    let ca_key = KeyPair::generate().map_err(other)?;
    let ca_cert = ca.self_signed(&ca_key).map_err(other)?;
    let ca_pem = ca_cert.pem();
    let issuer = Issuer::new(ca, ca_key);

    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut leaf = CertificateParams::new(names).map_err(other)?;
    leaf.distinguished_name.push(DnType::CommonName, "localhost");
    let key = KeyPair::generate().map_err(other)?;
    let cert = leaf.signed_by(&key, &issuer).map_err(other)?;

    let der: CertificateDer<'static> = cert.der().clone();
    let fingerprint = fingerprint(&der);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(other)?
        .with_no_client_auth()
        .with_single_cert(vec![der, ca_cert.der().clone()], key)
        .map_err(other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        fingerprint,
        ca_pem,
        leaf_pem: cert.pem(),
    })
}

fn fingerprint(der: &[u8]) -> String {
    let digest = Sha256::digest(der);
    digest.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":")
}
