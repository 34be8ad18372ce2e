//! A node for tests: TLS and raw HTTP/1.1, answering what a script says, so
//! that every way of failing can be played.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::Client;
use crate::config::{ApiToken, Config, Dirs, HostPort, Pin};

/// The secret of the token that the tests use.
pub const SECRET: &str = "5ec7e7aa-0000-4000-8000-00000000beef";

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// Path and query as they stood on the wire.
    pub target: String,
    /// Header lines in lower case but for their values.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Number of the connection that it came by, from 0.
    pub connection: usize,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// What the node does with a request.
pub enum Act {
    /// Writes these bytes; the connection stays open.
    Write(Vec<u8>),
    /// Writes these bytes and closes.
    WriteAndClose(Vec<u8>),
    /// Never answers.
    Silence,
    /// A byte, a pause, a byte, without end.
    Drip,
}

/// Makes an act, for tables.
pub type Make = fn() -> Act;

/// An answer with status line, JSON body and the right length.
pub fn json(status: &str, body: &str) -> Act {
    answer(status, "application/json;charset=UTF-8", body)
}

/// `{"data":…}` with 200.
pub fn data(data: serde_json::Value) -> Act {
    json("200 OK", &serde_json::json!({ "data": data }).to_string())
}

/// The node list that the client asks for before it sends something to a node.
pub fn nodes(names: &[&str]) -> Act {
    data(names.iter().map(|n| serde_json::json!({"node": n})).collect())
}

pub fn answer(status: &str, content_type: &str, body: &str) -> Act {
    Act::Write(
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )
}

/// A certificate and a key, which need not belong together.
#[derive(Clone)]
pub struct Identity {
    pub certificate: CertificateDer<'static>,
    pub key: Arc<PrivateKeyDer<'static>>,
    pub pem: String,
}

impl Identity {
    /// Self-signed, for these names and addresses.
    pub fn new(names: &[&str]) -> Self {
        Self::made(names, |_| {})
    }

    pub fn made(names: &[&str], change: impl FnOnce(&mut rcgen::CertificateParams)) -> Self {
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        change(&mut params);
        let pair = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&pair).unwrap();
        Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key: Arc::new(PrivateKeyDer::try_from(pair.serialize_der()).unwrap()),
        }
    }

    /// This certificate, shown by somebody who has another key.
    pub fn stolen(&self) -> Self {
        Self { key: Self::new(&["localhost"]).key, ..self.clone() }
    }

    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.certificate).into()
    }

    fn acceptor(&self) -> TlsAcceptor {
        #[derive(Debug)]
        struct Always(Arc<rustls::sign::CertifiedKey>);
        impl rustls::server::ResolvesServerCert for Always {
            fn resolve(
                &self,
                _: rustls::server::ClientHello<'_>,
            ) -> Option<Arc<rustls::sign::CertifiedKey>> {
                Some(Arc::clone(&self.0))
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = provider.key_provider.load_private_key(self.key.clone_key()).unwrap();
        let certified = rustls::sign::CertifiedKey::new(vec![self.certificate.clone()], key);
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A running node; it ends when it is dropped.
pub struct Node {
    pub host: HostPort,
    pub identity: Identity,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    /// A node that does with each request what the script says.
    pub async fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Self {
        Self::start_as(Identity::new(&["localhost", "127.0.0.1"]), script).await
    }

    pub async fn start_as(
        identity: Identity,
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::listen(listener, identity, script)
    }

    pub fn listen(
        listener: TcpListener,
        identity: Identity,
        script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Self {
        let address: SocketAddr = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let acceptor = identity.acceptor();
        let script: Arc<dyn Fn(&Seen) -> Act + Send + Sync> = Arc::new(script);
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                let mut connections = tokio::task::JoinSet::new();
                for connection in 0.. {
                    let Ok((tcp, _)) = listener.accept().await else { return };
                    let (acceptor, script, seen) =
                        (acceptor.clone(), Arc::clone(&script), Arc::clone(&seen));
                    connections.spawn(async move {
                        if let Ok(tls) = acceptor.accept(tcp).await {
                            serve(tls, connection, &*script, &seen).await;
                        }
                    });
                }
            }
        });
        let host = HostPort { host: address.ip().to_string(), port: address.port() };
        Self { host, identity, seen, task }
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests so far, as `METHOD target`, without the look at the node list.
    pub fn asked(&self) -> Vec<String> {
        let seen = self.seen();
        let shown = seen.iter().filter(|s| s.target != "/api2/json/nodes");
        shown.map(|s| format!("{} {}", s.method, s.target)).collect()
    }

    /// A configuration that trusts this node by its fingerprint.
    pub fn config(&self) -> Config {
        config(&[self])
    }

    pub fn client(&self) -> Client {
        Client::new(&self.config()).unwrap()
    }
}

/// A configuration that knows several nodes, in order of preference.
pub fn config(nodes: &[&Node]) -> Config {
    let nowhere = std::path::PathBuf::from("/nonexistent");
    let mut config = Config::minimal(Dirs { config: nowhere.clone(), state: nowhere });
    config.hosts = nodes.iter().map(|n| n.host.clone()).collect();
    config.tls.fingerprints =
        nodes.iter().map(|n| Pin { host: None, sha256: n.identity.sha256() }).collect();
    config.token =
        Some(ApiToken { id: "mcp@pve!full".to_owned(), secret: SECRET.to_owned().into() });
    config.timeout = Duration::from_secs(4);
    config
}

/// A port on which nothing listens.
pub async fn closed_port() -> HostPort {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    HostPort { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() }
}

async fn serve(
    mut tls: TlsStream<TcpStream>,
    connection: usize,
    script: &(dyn Fn(&Seen) -> Act + Send + Sync),
    seen: &Mutex<Vec<Seen>>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut tls, &mut buffer, connection).await {
        seen.lock().unwrap().push(request.clone());
        match script(&request) {
            Act::Write(bytes) => {
                if tls.write_all(&bytes).await.is_err() || tls.flush().await.is_err() {
                    return;
                }
            }
            Act::WriteAndClose(bytes) => {
                let _ = tls.write_all(&bytes).await;
                let _ = tls.shutdown().await;
                return;
            }
            Act::Silence => std::future::pending().await,
            Act::Drip => {
                let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
                let _ = tls.write_all(head).await;
                while tls.write_all(b" ").await.is_ok() && tls.flush().await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                return;
            }
        }
    }
}

async fn read(
    tls: &mut TlsStream<TcpStream>,
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<Seen> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        let mut chunk = [0; 4096];
        match tls.read(&mut chunk).await {
            Ok(n) if n > 0 => buffer.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_lowercase(), v.to_owned()))
        .collect();
    let length = headers.iter().find(|(n, _)| n == "content-length");
    let length: usize = length.map_or(0, |(_, v)| v.parse().unwrap());
    while buffer.len() < length {
        let mut chunk = [0; 65536];
        match tls.read(&mut chunk).await {
            Ok(n) if n > 0 => buffer.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
    let body = String::from_utf8_lossy(&buffer[..length]).into_owned();
    buffer.drain(..length);
    Some(Seen {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body,
        connection,
    })
}
