//! A client that sends bytes as they are.

use std::io::Read;
use std::sync::Arc;

use flate2::read::{GzDecoder, ZlibDecoder};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// An answer; status 0 when the server closed without one.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

pub struct Client {
    addr: std::net::SocketAddr,
    tls: TlsConnector,
}

impl Client {
    pub fn new(sim: &pve_sim::Sim) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(sim.ca_pem().as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { addr: sim.addr(), tls: TlsConnector::from(Arc::new(config)) }
    }

    /// Sends bytes and gives everything that comes back until the server closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let tcp = TcpStream::connect(self.addr).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = self.tls.connect(name, tcp).await.unwrap();
        // The server may answer and close before it read everything.
        let _ = tls.write_all(bytes).await;
        let mut all = Vec::new();
        let _ = tls.read_to_end(&mut all).await;
        all
    }

    /// Sends a request with these headers on a connection of its own.
    pub async fn send(&self, line: &str, headers: &[(String, String)], body: &[u8]) -> Answer {
        let mut head =
            format!("{line}\r\nHost: {}\r\nConnection: close\r\n", self.addr).into_bytes();
        for (name, value) in headers {
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(body);
        parse(&self.raw(&head).await)
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Answer::default();
    };
    let latin1 = |b: &[u8]| b.iter().map(|&b| char::from(b)).collect::<String>();
    let head = latin1(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap();
    let mut parts = first.splitn(3, ' ');
    let (_, status, reason) = (parts.next(), parts.next().unwrap(), parts.next().unwrap_or(""));
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_owned(), v.trim().to_owned()))
        .collect();
    let mut answer = Answer {
        status: status.parse().unwrap_or(0),
        reason: reason.to_owned(),
        headers,
        body: bytes[end + 4..].to_vec(),
    };
    let mut plain = Vec::new();
    match answer.header("content-encoding") {
        Some("gzip") => GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).unwrap(),
        Some("deflate") => {
            ZlibDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).unwrap()
        }
        _ => return answer,
    };
    answer.body = plain;
    answer
}
