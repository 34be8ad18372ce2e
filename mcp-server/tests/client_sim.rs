//! The client against the simulated estate: trust, faults, privileges, lists.

#![allow(clippy::unwrap_used)] // helpers of tests count as no tests

use std::{path::PathBuf, sync::Arc, time::Duration};

use proxmox_mcp::{
    Code, Error,
    config::{ApiToken, Config, Dirs, HostPort, Pin, Tls},
    pve::{ApiPath, Client, GuestConfig, Params, Upid, Vmid, loose, task, tls},
};
use pve_sim::{Effect, Fault, Options, Sim};
use serde_json::Value;

async fn sim() -> Sim {
    Sim::start(Options { task_pace: 0.0, ..Options::default() }).await.unwrap()
}

fn host(sim: &Sim) -> HostPort {
    HostPort { host: sim.addr().ip().to_string(), port: sim.addr().port() }
}

fn config(sim: &Sim) -> Config {
    let nowhere = PathBuf::from("/nonexistent");
    let mut config = Config::minimal(Dirs { config: nowhere.clone(), state: nowhere });
    let (id, secret) = sim.token("admin").unwrap();
    config.hosts = vec![host(sim)];
    config.token = Some(ApiToken { id, secret: secret.into() });
    config.tls.fingerprints = vec![Pin::parse(&sim.fingerprint()).unwrap()];
    config.timeout = Duration::from_secs(4);
    config
}

async fn read(config: &Config, path: &str) -> Result<Arc<Value>, Error> {
    get(&Client::new(config).unwrap(), path).await
}

async fn get(client: &Client, path: &str) -> Result<Arc<Value>, Error> {
    client.get(&ApiPath::parse(path).unwrap(), &Params::new()).await
}

#[tokio::test]
async fn each_way_of_trust_right_and_wrong() {
    let (sim, other) = (sim().await, sim().await);
    let folder = tempfile::tempdir().unwrap();
    let pem = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        Tls { ca_file: Some(file), ..Tls::default() }
    };
    let pin = |text: &str| Tls { fingerprints: vec![Pin::parse(text).unwrap()], ..Tls::default() };
    let shown = sim.fingerprint();
    let cases = [
        ("pin", pin(&shown), None),
        ("pin in small letters without colons", pin(&shown.replace(':', "").to_lowercase()), None),
        ("pin of another", pin(&other.fingerprint()), Some(Code::TlsPinMismatch)),
        ("CA", pem("ca", sim.ca_pem()), None),
        ("CA of another", pem("other", other.ca_pem()), Some(Code::TlsUntrusted)),
        ("insecure", Tls { insecure: true, ..Tls::default() }, None),
    ];
    for (name, tls, wrong) in cases {
        let result = read(&Config { tls, ..config(&sim) }, "/version").await;
        assert_eq!(result.as_ref().err().map(|e| e.code), wrong, "{name}: {result:?}");
        if let Err(error) = result {
            assert!(error.message.contains(&shown), "{name}: {error}");
        }
    }
    let seen = tls::fetch_fingerprint(&host(&sim), Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen.sha256, shown);
}

#[tokio::test]
async fn faults_of_reads() {
    let every = Duration::from_millis(20);
    let cases = [
        ("401", Effect::unauthorized(), Code::Unauthorized, false),
        ("595", Effect::no_route(), Code::ProxyFailed, true),
        ("596", Effect::broken_pipe(), Code::ProxyFailed, true),
        ("500", Effect::Error(500, "something odd".into()), Code::ApiError, false),
        ("502", Effect::Html(502), Code::BadAnswer, true),
        ("200 web page", Effect::Html(200), Code::BadAnswer, false),
        ("garbage", Effect::Garbage, Code::BadAnswer, false),
        ("broken JSON", Effect::BrokenJson, Code::BadAnswer, false),
        ("cut before", Effect::CutBeforeBody, Code::Unreachable, true),
        ("cut after", Effect::CutAfterBody { apply: false }, Code::Unreachable, true),
        ("cut within", Effect::CutInAnswer, Code::Unreachable, true),
        ("never", Effect::NeverAnswer { apply: false }, Code::Timeout, true),
        ("drip", Effect::Drip { chunk: 1, every }, Code::Timeout, true),
        ("late", Effect::Latency(Duration::from_secs(30)), Code::Timeout, true),
    ];
    // All at once, since many of them wait.
    let cases = cases.into_iter().map(async |(name, effect, code, passes)| {
        let sim = sim().await;
        let config = Config {
            timeout: Duration::from_secs(if code == Code::Timeout { 2 } else { 4 }),
            cache_ttl: Duration::ZERO,
            ..config(&sim)
        };
        let client = Client::new(&config).unwrap();
        sim.inject(Fault::new(effect.clone()));
        let once = get(&client, "/cluster/resources").await;
        assert_eq!(once.is_ok(), passes, "{name} once: {:?}", once.err());

        sim.inject(Fault::new(effect).always());
        let error = get(&client, "/cluster/resources").await.unwrap_err();
        assert_eq!(error.code, code, "{name}: {error}");
        let (_, secret) = sim.token("admin").unwrap();
        assert!(!format!("{error} {error:?}").contains(&secret), "{name}: {error}");

        sim.clear_faults();
        get(&client, "/cluster/resources").await.unwrap_or_else(|e| panic!("after {name}: {e}"));
    });
    futures::future::join_all(cases).await;
}

#[tokio::test]
async fn an_answer_without_end_is_not_swallowed() {
    let sim = sim().await;
    sim.inject(Fault::new(Effect::Huge(70 << 20)));
    let config = Config { timeout: Duration::from_secs(60), max_retries: 0, ..config(&sim) };
    let error = read(&config, "/version").await.unwrap_err();
    assert_eq!((error.code, error.message.contains("64 MiB")), (Code::BadAnswer, true), "{error}");
}

#[tokio::test]
async fn a_wrong_secret_is_tried_once() {
    let sim = sim().await;
    let mut config = config(&sim);
    let secret = "00000000-0000-4000-8000-000000000000".to_owned();
    config.token = config.token.map(|t| ApiToken { secret: secret.clone().into(), ..t });
    let error = read(&config, "/version").await.unwrap_err();
    assert_eq!(error.code, Code::Unauthorized, "{error}");
    assert!(!error.to_string().contains(&secret));
    assert_eq!(sim.requests().len(), 1);
}

#[tokio::test]
async fn the_estate_reads_through_types() {
    let sim = sim().await;
    let client = Client::new(&config(&sim)).unwrap();
    let names = client.nodes().await.unwrap();
    assert!(names.len() > 1, "{names:?}");
    let resources = get(&client, "/cluster/resources").await.unwrap();
    let guests = loose::rows(&resources).iter().filter(|r| loose::some(r, "vmid").is_some());
    let mut disks = 0;
    for row in guests {
        let vmid = Vmid::new(loose::uint(row, "vmid").unwrap()).unwrap();
        let guest = client.guest(vmid).await.unwrap();
        assert_eq!(loose::str(row, "node"), Some(guest.node.as_str()));
        let raw = client.get_of_guest(&guest, &["config"], &Params::new()).await.unwrap();
        let config = GuestConfig::new(guest.kind, &raw);
        assert!(config.memory().is_some() && config.digest().is_some(), "{raw}");
        for disk in config.disks() {
            assert_eq!(loose::text(&raw, &disk.slot).unwrap(), disk.line.to_string());
            disks += 1;
        }
        for nic in config.nics() {
            assert!(nic.mac.is_some() && nic.bridge.is_some(), "{raw}");
        }
    }
    assert!(disks > 20, "{disks}");
    let error = client.guest(Vmid::new(999_999_999).unwrap()).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[tokio::test]
async fn tasks_of_the_history_are_understood() {
    let sim = sim().await;
    let client = Client::new(&config(&sim)).unwrap();
    let tasks = get(&client, "/cluster/tasks").await.unwrap();
    let rows = loose::rows(&tasks);
    assert!(!rows.is_empty());
    for row in rows.iter().filter(|r| loose::some(r, "endtime").is_some()).take(20) {
        let upid = Upid::parse(loose::str(row, "upid").unwrap()).unwrap();
        let status = task::status(&client, &upid).await.unwrap();
        assert_eq!(status.exitstatus(), loose::str(row, "status").unwrap(), "{upid}");
        assert_eq!(status.ok(), task::TaskStatus::ended(status.exitstatus()).ok());
        assert_eq!(status.log_tail.is_empty(), status.ok(), "{upid}");
        let page = task::log(&client, &upid, None, 5).await.unwrap();
        assert!(page.lines.len() <= 5 && page.total >= page.lines.len(), "{page:?}");
    }
}

#[tokio::test]
async fn the_api_description_of_the_node() {
    let sim = sim().await;
    let schema = Client::new(&config(&sim)).unwrap().schema().await.unwrap();
    let roots: Vec<String> =
        schema.list("/", 1).unwrap().iter().map(|l| l.path.to_string()).collect();
    assert!(roots.contains(&"/nodes".to_owned()), "{roots:?}");
    let path = "/nodes/pve1/qemu/100/config";
    let (node, info) = schema.method(path, proxmox_mcp::safety::Method::Get).unwrap();
    assert_eq!(node.path(), "/nodes/{node}/qemu/{vmid}/config");
    assert!(info.permissions.contains("VM.Audit"), "{}", info.permissions);
}

#[tokio::test]
async fn many_at_once_share_and_then_nothing_is_asked() {
    let sim = sim().await;
    let client = Client::new(&config(&sim)).unwrap();
    let reads = (0..16).map(|_| get(&client, "/cluster/resources"));
    let found: Vec<_> = futures::future::join_all(reads).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(sim.requests().len(), 1);
    for _ in 0..1000 {
        get(&client, "/cluster/resources").await.unwrap();
    }
    assert_eq!(sim.requests().len(), 1, "the kept answer served them all");
}
