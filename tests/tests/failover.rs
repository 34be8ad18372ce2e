//! Several hosts of one cluster: one that is down or without a majority is left for the next, and
//! a change goes to another host only when it certainly did not arrive.

use std::net::TcpListener;

use e2e::{Estate, Server};
use pve_sim::{Effect, Fault};
use serde_json::{Value, json};

/// Two hosts of one cluster: the same estate twice, with the token of the first on both.
struct Pair {
    first: Estate,
    second: Estate,
}

impl Pair {
    fn new() -> Self {
        let (first, second) = (Estate::sample(), Estate::sample());
        let pair = Self { first, second };
        let (id, secret) = pair.first.sim().token("admin").expect("a token");
        let (user, name) = id.split_once('!').expect("a token's id");
        pair.second.sim().with_state(|state| {
            let user = state.access.users.get_mut(user).expect("the same user");
            user.tokens.get_mut(name).expect("the same token").secret = secret;
        });
        pair
    }

    /// A server that is told of these hosts, in this order.
    fn open(&self, hosts: &[String]) -> Server {
        let prints = [&self.first, &self.second].map(|estate| estate.sim().fingerprint()).join(",");
        self.first.configure(&[
            ("PROXMOX_HOST", &hosts.join(",")),
            ("PROXMOX_TLS_FINGERPRINT", &prints),
            ("PROXMOX_MODE", "write"),
            ("PROXMOX_TIMEOUT", "2"),
            ("PROXMOX_CACHE_TTL", "0"),
        ]);
        Server::open(self.first.command().arg("serve"))
    }

    fn hosts(&self) -> [String; 2] {
        [&self.first, &self.second].map(|estate| estate.sim().addr().to_string())
    }

    /// Changes that reached the first and the second host.
    fn changes(&self) -> (usize, usize) {
        let count = |estate: &Estate| {
            estate.arrived().iter().filter(|line| !line.starts_with("GET")).count()
        };
        (count(&self.first), count(&self.second))
    }

    /// Reads of the version that reached the first and the second host.
    fn versions(&self) -> (usize, usize) {
        let count =
            |estate: &Estate| estate.arrived().iter().filter(|l| l.ends_with("/version")).count();
        (count(&self.first), count(&self.second))
    }
}

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").to_string()
}

fn version(server: &mut Server) -> Value {
    server.ok("pve_api_call", json!({ "method": "GET", "path": "/version" }))
}

/// A change of one object that nothing else hangs on.
fn pool(name: &str) -> (&'static str, Value) {
    ("pve_pool_create", json!({ "pool": name }))
}

#[test]
fn a_host_that_is_down_is_left_for_the_next() {
    let pair = Pair::new();
    let [_, second] = pair.hosts();
    let mut server = pair.open(&[nobody(), second]);
    for _ in 0..3 {
        version(&mut server);
    }
    // Nothing was sent to the first, so the change may go to the next.
    let (tool, arguments) = pool("made-at-the-second");
    let made = server.ok(tool, arguments);
    assert_eq!(made["status"], "done", "{made}");
    assert_eq!(pair.changes(), (0, 1));
    server.finish();
}

#[test]
fn a_host_that_cannot_answer_reads_is_left_for_the_next() {
    for (what, effect) in [
        ("503", Effect::Status(503, "Service Unavailable".into())),
        ("a proxy without its backend", Effect::Html(502)),
        ("595", Effect::no_route()),
        ("cut before the answer", Effect::CutAfterBody { apply: false }),
        ("no answer", Effect::NeverAnswer { apply: false }),
        ("no quorum", Effect::Error(500, "cluster not ready - no quorum?".into())),
    ] {
        let pair = Pair::new();
        let mut server = pair.open(&pair.hosts());
        pair.first.sim().inject(Fault::new(effect).path("/version").always());
        version(&mut server);
        let (first, second) = pair.versions();
        assert!(first >= 1 && second == 1, "{what}: {first} and {second}");
        server.finish();
    }
}

#[test]
fn a_change_that_may_have_arrived_goes_to_no_other_host() {
    for (what, effect) in [
        ("cut before the body was read", Effect::CutBeforeBody),
        ("cut before it was done", Effect::CutAfterBody { apply: false }),
        ("cut when it was done", Effect::CutAfterBody { apply: true }),
        ("cut in the answer", Effect::CutInAnswer),
        ("no answer, not done", Effect::NeverAnswer { apply: false }),
        ("no answer, done", Effect::NeverAnswer { apply: true }),
        ("502 of a proxy", Effect::StatusAfter(502, "Bad Gateway".into())),
        ("503", Effect::Status(503, "Service Unavailable".into())),
        ("596", Effect::broken_pipe()),
        ("an answer that is none", Effect::Garbage),
        ("JSON that ends early", Effect::BrokenJson),
    ] {
        let pair = Pair::new();
        let mut server = pair.open(&pair.hosts());
        pair.first.sim().inject(Fault::new(effect).method("POST").path("/pools").always());
        let (tool, arguments) = pool("perhaps");
        let error = server.refused(tool, arguments);
        assert_eq!(error["code"], "outcome_unknown", "{what}: {error}");
        assert_eq!(pair.changes(), (1, 0), "{what}");
        server.finish();
    }
}

#[test]
fn a_refused_change_is_refused_once() {
    for (what, effect, code) in [
        (
            "403",
            Effect::Status(403, "Permission check failed (/pool/x, Pool.Allocate)".into()),
            "forbidden",
        ),
        ("401", Effect::unauthorized(), "unauthorized"),
        ("500", Effect::Error(500, "create pool failed: it went wrong".into()), "api_error"),
        ("595", Effect::no_route(), "proxy_failed"),
    ] {
        let pair = Pair::new();
        let mut server = pair.open(&pair.hosts());
        pair.first.sim().inject(Fault::new(effect).method("POST").path("/pools").always());
        let (tool, arguments) = pool("refused");
        let error = server.refused(tool, arguments);
        assert_eq!(error["code"], code, "{what}: {error}");
        assert_eq!(pair.changes(), (1, 0), "{what}");
        server.finish();
    }
}

#[test]
fn a_host_without_quorum_refuses_once_and_then_the_next_is_asked() {
    let pair = Pair::new();
    let mut server = pair.open(&pair.hosts());
    let quorum = Effect::Error(500, "cluster not ready - no quorum?".into());
    pair.first.sim().inject(Fault::new(quorum).method("POST").always());
    let (tool, arguments) = pool("twice-asked");
    let error = server.refused(tool, arguments.clone());
    assert_eq!(error["code"], "conflict", "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("majority")), "{error}");
    assert_eq!(pair.changes(), (1, 0));
    let made = server.ok(tool, arguments);
    assert_eq!(made["status"], "done", "{made}");
    assert_eq!(pair.changes(), (1, 1));
    server.finish();
}

/// Sets which nodes a host believes to be there: fewer than half is no quorum.
fn alone(estate: &Estate) {
    estate.sim().with_state(|state| {
        let local = state.local.clone();
        for node in state.nodes.values_mut() {
            node.online = node.name == local;
        }
    });
}

#[test]
fn a_host_that_says_it_has_no_quorum_is_left_for_the_next() {
    let pair = Pair::new();
    alone(&pair.first);
    let mut server = pair.open(&pair.hosts());
    let status = server.ok("pve_cluster_status", json!({}));
    assert_eq!(status["quorate"], true, "what the majority knows: {status}");
    // From then on all goes there: what the lone host shows of the others is old.
    version(&mut server);
    assert_eq!(pair.versions(), (0, 1));
    let (tool, arguments) = pool("at-the-majority");
    server.ok(tool, arguments);
    assert_eq!(pair.changes(), (0, 1));
    server.finish();
}

#[test]
fn where_no_host_has_quorum_that_is_what_is_told() {
    let pair = Pair::new();
    alone(&pair.first);
    alone(&pair.second);
    let mut server = pair.open(&pair.hosts());
    for _ in 0..2 {
        let status = server.ok("pve_cluster_status", json!({}));
        assert_eq!(status["quorate"], false, "{status}");
        let findings = server.ok("pve_needs_attention", json!({}));
        assert!(findings.to_string().contains("quorum_lost"), "{findings}");
    }
    server.finish();
}

#[test]
fn when_all_hosts_fail_each_is_told_of() {
    let pair = Pair::new();
    let hosts = [nobody(), nobody()];
    let mut server = pair.open(&hosts);
    let error = server.refused("pve_api_call", json!({ "method": "GET", "path": "/version" }));
    assert_eq!(error["code"], "unreachable", "{error}");
    let (tool, arguments) = pool("nowhere");
    let change = server.refused(tool, arguments);
    for error in [error, change] {
        assert!(hosts.iter().all(|host| error.to_string().contains(host)), "{error}");
    }
    server.finish();
}
