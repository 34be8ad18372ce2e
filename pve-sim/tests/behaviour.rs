//! What a client of the simulator sees: TLS, faults, tasks, changes, privileges.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the helpers of a test may do what its body may"
)]

#[path = "replay/client.rs"]
mod client;

use std::time::Duration;

use client::{Answer, Client};
use pve_sim::{Clock, Effect, Estate, Fault, Options, Sim};
use serde_json::{Value, json};

struct World {
    sim: Sim,
    client: Client,
}

impl World {
    async fn new(estate: Estate) -> Self {
        let options = Options { estate, clock: Clock::Driven(1_800_000_000), ..Options::default() };
        let sim = Sim::start(options).await.unwrap();
        let client = Client::new(&sim);
        Self { sim, client }
    }

    async fn sample() -> Self {
        Self::new(Estate::sample()).await
    }

    async fn call_as(&self, who: &str, method: &str, path: &str, body: &str) -> Answer {
        let (id, secret) = self.sim.token(who).unwrap();
        let mut headers = vec![("Authorization".to_owned(), format!("PVEAPIToken={id}={secret}"))];
        if method == "POST" || method == "PUT" {
            headers
                .push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
            headers.push(("Content-Length".to_owned(), body.len().to_string()));
        }
        let line = format!("{method} /api2/json{path} HTTP/1.1");
        self.client.send(&line, &headers, body.as_bytes()).await
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call_as("admin", method, path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", path, "").await;
        assert_eq!(
            answer.status,
            200,
            "{path}: {} {}",
            answer.reason,
            String::from_utf8_lossy(&answer.body)
        );
        answer.json()["data"].clone()
    }

    /// Carries a change out and lets its task end; the task's exit status, `null` without a task.
    async fn done(&self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.call(method, path, body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.reason);
        let data = answer.json()["data"].clone();
        self.sim.advance(Duration::from_secs(30));
        match data.as_str().filter(|u| u.starts_with("UPID:")) {
            Some(upid) => {
                let node = upid.split(':').nth(1).unwrap();
                self.get(&format!("/nodes/{node}/tasks/{upid}/status")).await["exitstatus"].clone()
            }
            None => Value::Null,
        }
    }
}

#[tokio::test]
async fn faults_hit_what_they_are_for() {
    let world = World::sample().await;
    let start = "/nodes/pve3/qemu/112/status/start";
    let runs = |w: &World| w.sim.with_state(|s| s.guests[&112].running());
    for (effect, status, applied) in [
        (Effect::CutBeforeBody, 0, false),
        (Effect::CutAfterBody { apply: false }, 0, false),
        (Effect::CutAfterBody { apply: true }, 0, true),
        (Effect::CutInAnswer, 0, true),
        (Effect::unauthorized(), 401, false),
        (Effect::Error(500, "it broke".to_owned()), 500, false),
        (Effect::Html(502), 502, false),
        (Effect::no_route(), 595, false),
        (Effect::broken_pipe(), 596, false),
        (Effect::StatusAfter(502, "Bad Gateway".to_owned()), 502, true),
        (Effect::Garbage, 0, false),
        (Effect::BrokenJson, 200, true),
        (Effect::Huge(100_000), 200, true),
        (Effect::Latency(Duration::from_millis(1)), 200, true),
        (Effect::Drip { chunk: 7, every: Duration::ZERO }, 200, true),
    ] {
        world.sim.with_state(|s| s.guests.get_mut(&112).unwrap().run = None);
        world.sim.inject(Fault::new(effect.clone()).method("POST").path("*/status/start"));
        let other = world.call("GET", "/version", "").await;
        assert_eq!(other.status, 200, "{effect:?} hits nothing else");
        let answer = world.call("POST", start, "").await;
        if !matches!(effect, Effect::Garbage | Effect::CutInAnswer) {
            assert_eq!(answer.status, status, "{effect:?}");
        }
        world.sim.advance(Duration::from_secs(5));
        assert_eq!(runs(&world), applied, "{effect:?}");
    }
    world.sim.clear_requests();
    world.call("POST", start, "timeout=1").await;
    let seen = world.sim.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), seen[0].api_path()), ("POST", start));
    assert_eq!(seen[0].param("timeout").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_task_runs_over_time_and_can_be_stopped() {
    let world = World::sample().await;
    let answer = world.call("POST", "/nodes/pve3/qemu/112/status/start", "").await;
    let upid = answer.json()["data"].as_str().unwrap().to_owned();
    let status = format!("/nodes/pve3/tasks/{upid}/status");
    let running = world.get(&status).await;
    assert_eq!(running["status"], "running");
    assert_eq!(running.get("exitstatus"), None);
    assert_eq!(
        (running["user"].as_str(), running["tokenid"].as_str()),
        (Some("mcp@pve"), Some("full"))
    );
    world.call("DELETE", &format!("/nodes/pve3/tasks/{upid}"), "").await;
    assert_eq!(world.get(&status).await["exitstatus"], "unexpected status");
    world.sim.advance(Duration::from_secs(60));
    assert!(!world.sim.with_state(|s| s.guests[&112].running()), "a stopped task does nothing");
    assert_eq!(world.done("POST", "/nodes/pve3/qemu/112/status/start", "").await, "OK");
    assert_eq!(
        world.done("POST", "/nodes/pve3/qemu/112/status/start", "").await,
        "VM 112 already running"
    );
}

#[tokio::test]
async fn changes_of_a_running_guest_wait() {
    let world = World::sample().await;
    let config = "/nodes/pve1/qemu/100/config";
    let digest = world.get(config).await["digest"].as_str().unwrap().to_owned();
    world.done("PUT", config, &format!("memory=9216&description=neu&digest={digest}")).await;
    let stale = world.call("PUT", config, &format!("memory=1024&digest={digest}")).await;
    assert_eq!(
        (stale.status, stale.reason.as_str()),
        (500, "checksum mismatch (file change by other user?)")
    );
    assert_eq!(
        world.get(config).await["memory"],
        "9216",
        "the pending value stands in the configuration"
    );
    assert_eq!(world.get(&format!("{config}?current=1")).await["memory"], "8192");
    let pending = world.get("/nodes/pve1/qemu/100/pending").await;
    let row =
        |key: &str| pending.as_array().unwrap().iter().find(|r| r["key"] == key).unwrap().clone();
    assert_eq!(row("memory"), json!({"key": "memory", "value": "8192", "pending": "9216"}));
    assert_eq!(row("description"), json!({"key": "description", "value": "neu"}));
    world.done("PUT", config, "revert=memory").await;
    assert_eq!(world.get(config).await["memory"], "8192");
}

#[tokio::test]
async fn a_guests_life() {
    let world = World::sample().await;
    let ct = "/nodes/pve1/lxc/300";
    let template = "ostemplate=local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst";
    let made = format!(
        "vmid=300&{template}&hostname=neu&rootfs=local-lvm:4&features=nesting%3D1&net0=name%3Deth0%2Cbridge%3Dvmbr0"
    );
    assert_eq!(world.done("POST", "/nodes/pve1/lxc", &made).await, "OK");
    let config = world.get(&format!("{ct}/config")).await;
    assert_eq!(config["unprivileged"], 1);
    assert!(config["net0"].as_str().unwrap().contains("hwaddr=BC:24:11:"));
    assert_eq!(config["rootfs"], "local-lvm:vm-300-disk-0,size=4G");
    assert_eq!(world.done("POST", &format!("{ct}/status/start"), "").await, "OK");
    assert_eq!(world.done("POST", &format!("{ct}/snapshot"), "snapname=s1").await, "OK");
    world.done("PUT", &format!("{ct}/config"), "memory=1024").await;
    assert_eq!(world.done("POST", &format!("{ct}/snapshot/s1/rollback"), "").await, "OK");
    assert_eq!(world.get(&format!("{ct}/config")).await["memory"], 512);
    assert_eq!(world.done("PUT", &format!("{ct}/resize"), "disk=rootfs&size=%2B1G").await, "OK");
    assert_eq!(world.done("POST", "/nodes/pve1/vzdump", "vmid=300&storage=nfs-backup").await, "OK");
    let backups = world.get("/nodes/pve1/storage/nfs-backup/content?vmid=300").await;
    let archive = backups[0]["volid"].as_str().unwrap().to_owned();
    let restored = format!("vmid=301&restore=1&ostemplate={archive}&storage=local-lvm");
    assert_eq!(world.done("POST", "/nodes/pve1/lxc", &restored).await, "OK");
    assert_eq!(world.get("/nodes/pve1/lxc/301/config").await["hostname"], "neu");
    let moved = "volume=rootfs&storage=nfs-images&delete=1";
    let refused = world.call("POST", &format!("{ct}/move_volume"), moved).await;
    assert_eq!(refused.reason, "storage 'nfs-images' does not support content-type 'rootdir'");
    assert_eq!(world.done("POST", &format!("{ct}/migrate"), "target=pve2").await, "OK");
    assert_eq!(world.get("/nodes/pve2/lxc/300/status/current").await["status"], "stopped");
    assert_eq!(world.call("GET", &format!("{ct}/config"), "").await.status, 500);
    assert_eq!(world.done("DELETE", "/nodes/pve2/lxc/300?purge=1", "").await, "OK");
    let left = world.sim.with_state(|s| {
        s.volumes.iter().filter(|v| v.vmid == Some(300) && v.content == "rootdir").count()
    });
    assert_eq!(left, 0);

    let clone = world.done("POST", "/nodes/pve1/qemu/900/clone", "newid=310&name=kopie").await;
    assert_eq!(clone, "OK");
    let config = world.get("/nodes/pve1/qemu/310/config").await;
    assert_eq!(config["name"], "kopie");
    assert!(config.get("template").is_none());
    let busy = world.done("DELETE", "/nodes/pve1/qemu/900", "").await;
    assert!(busy.as_str().unwrap().contains("is still in use by linked cloned"), "{busy}");
}

#[tokio::test]
async fn privileges_filter_and_refuse() {
    let world = World::sample().await;
    for (who, path, status) in [
        ("readonly", "/nodes/pve1/status", 200),
        ("none", "/nodes/pve1/status", 403),
        ("none", "/nodes/pve1/qemu/100/config", 403),
        ("readonly", "/nodes/pve1/syslog", 403),
    ] {
        assert_eq!(world.call_as(who, "GET", path, "").await.status, status, "{who} {path}");
    }
    let refused = world.call_as("readonly", "POST", "/nodes/pve1/qemu/100/status/stop", "").await;
    assert_eq!(refused.reason, "Permission check failed (/vms/100, VM.PowerMgmt)");
    for path in ["/nodes/pve1/qemu", "/storage", "/cluster/tasks"] {
        assert_eq!(
            world.call_as("none", "GET", path, "").await.json()["data"],
            json!([]),
            "{path}"
        );
    }
    let lock = world.call("PUT", "/nodes/pve1/qemu/100/config", "lock=backup").await;
    assert_eq!(lock.reason, "only root can set 'lock' config");
    let bind = world.call("PUT", "/nodes/pve1/lxc/200/config", "mp0=%2Fetc%2Cmp%3D%2Fx").await;
    assert_eq!(bind.status, 403);
}

#[tokio::test]
async fn the_schema_is_served_to_everyone() {
    let world = World::sample().await;
    let answer = world.client.send("GET /pve-docs/api-viewer/apidoc.js HTTP/1.1", &[], b"").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/javascript"))
    );
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.starts_with("const apiSchema = [\n   {"));
    let end = text.find("\n]\n;\n").unwrap();
    let tree: Value = serde_json::from_str(&text["const apiSchema = ".len()..end + 2]).unwrap();
    let roots: Vec<&str> =
        tree.as_array().unwrap().iter().map(|n| n["path"].as_str().unwrap()).collect();
    for root in ["/cluster", "/nodes", "/storage", "/access", "/pools", "/version"] {
        assert!(roots.contains(&root), "{root}");
    }
    assert!(!text.contains("/nodes/{node}/ceph/osd"), "what is not here is not described");
}

#[tokio::test]
async fn uploads_are_stored() {
    let world = World::sample().await;
    let (id, secret) = world.sim.token("admin").unwrap();
    let body = "--x\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--x\r\nContent-Disposition: form-data; \
                name=\"filename\"; filename=\"neu.iso\"\r\n\r\nhello\r\n--x--\r\n";
    let headers = [
        ("Authorization".to_owned(), format!("PVEAPIToken={id}={secret}")),
        ("Content-Type".to_owned(), "multipart/form-data; boundary=x".to_owned()),
        ("Content-Length".to_owned(), body.len().to_string()),
    ];
    let line = "POST /api2/json/nodes/pve1/storage/nfs-images/upload HTTP/1.1";
    let answer = world.client.send(line, &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.reason);
    world.sim.advance(Duration::from_secs(5));
    let size = world.sim.with_state(|s| s.volume("pve1", "nfs-images:iso/neu.iso").map(|v| v.size));
    assert_eq!(size, Some(5));
}

#[tokio::test]
async fn large_estates_have_their_guests() {
    let world = World::new(Estate::large(1000, 5)).await;
    let rows = world.get("/cluster/resources?type=vm").await;
    assert_eq!(rows.as_array().unwrap().len(), 1000);
    assert_eq!(world.get("/nodes").await.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn dropping_it_stops_it() {
    let world = World::sample().await;
    let addr = world.sim.addr();
    drop(world.sim);
    let mut refused = false;
    for _ in 0..200 {
        if tokio::net::TcpStream::connect(addr).await.is_err() {
            refused = true;
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(refused);
}

#[tokio::test]
async fn connections_are_kept_until_something_fails() {
    let world = World::sample().await;
    let (id, secret) = world.sim.token("admin").unwrap();
    let request = |path: &str| {
        let head = format!("GET /api2/json{path} HTTP/1.1\r\nHost: x\r\n");
        format!("{head}Authorization: PVEAPIToken={id}={secret}\r\n\r\n")
    };
    let many =
        [request("/version"), request("/nodes"), request("/nope"), request("/version")].concat();
    let text = String::from_utf8_lossy(&world.client.raw(many.as_bytes()).await).into_owned();
    assert_eq!(
        text.matches("HTTP/1.1 ").count(),
        3,
        "the refused one ended the connection: {text}"
    );
    assert_eq!(world.sim.requests().len(), 3);
}

#[tokio::test]
async fn a_number_is_taken_at_once() {
    let world = World::sample().await;
    assert_eq!(world.get("/cluster/nextid").await, "124");
    let first = world.call("POST", "/nodes/pve1/qemu", "vmid=124&name=a").await;
    assert_eq!(first.status, 200);
    assert_eq!(world.get("/cluster/nextid").await, "125");
    let second = world.call("POST", "/nodes/pve1/qemu", "vmid=124&name=b").await;
    assert_eq!(second.reason, "unable to create VM 124 - VM 124 already exists on node 'pve1'");
    assert_eq!(world.get("/nodes/pve1/qemu/124/config").await["lock"], "create");
    world.sim.advance(Duration::from_secs(5));
    assert_eq!(world.get("/nodes/pve1/qemu/124/config").await["name"], "a");
    let body = "vmid=125&ostemplate=local:vztmpl/no.tar.zst&rootfs=local-lvm:1";
    let failed = world.done("POST", "/nodes/pve1/lxc", body).await;
    assert!(failed.as_str().unwrap().contains("does not exist"));
    assert_eq!(
        world.get("/cluster/nextid").await,
        "125",
        "what could not be made leaves its number"
    );
}

#[tokio::test]
async fn tests_can_change_the_estate() {
    let world = World::sample().await;
    world.sim.with_state(|s| {
        s.nodes.get_mut("pve3").unwrap().online = false;
        s.storages.get_mut("nfs-backup").unwrap().space[0].1.offline = true;
        s.access.users.get_mut("audit@pve").unwrap().tokens.get_mut("read").unwrap().expire = 1;
        s.as_release_8();
    });
    assert_eq!(world.call("GET", "/nodes/pve3/status", "").await.status, 595);
    let rows = world.get("/cluster/resources").await;
    let row = |id: &str| rows.as_array().unwrap().iter().find(|r| r["id"] == id).unwrap().clone();
    assert_eq!(row("qemu/103")["status"], "unknown");
    assert_eq!(row("storage/pve1/nfs-backup")["status"], "unknown");
    assert_eq!(row("node/pve3")["status"], "offline");
    let content = world.call("GET", "/nodes/pve1/storage/nfs-backup/content", "").await;
    assert_eq!(content.reason, "storage 'nfs-backup' is not online");
    assert_eq!(world.call_as("readonly", "GET", "/version", "").await.status, 401);
    assert_eq!(world.get("/version").await["release"], "8.4");
    assert_eq!(world.get("/access/roles/PVEVMAdmin").await["VM.Monitor"], 1);
}

#[tokio::test]
async fn a_snapshot_holds_neither_unused_disks_nor_the_description() {
    let world = World::sample().await;
    let snapshot = world.get("/nodes/pve1/qemu/118/snapshot/vor-upgrade/config").await;
    assert!(snapshot.get("unused0").is_none(), "{snapshot}");
    let path = "/nodes/pve1/qemu/118";
    world.call("PUT", &format!("{path}/config"), "description=neu&onboot=0").await;
    world.done("POST", &format!("{path}/snapshot/vor-upgrade/rollback"), "").await;
    let config = world.get(&format!("{path}/config")).await;
    assert_eq!(config["unused0"], "local-lvm:vm-118-disk-2", "{config}");
    assert_eq!(config["description"], "neu", "{config}");
    assert_eq!(config["onboot"], 1, "{config}");
    // No snapshot holds the unused disk, so it can be deleted.
    world.done("POST", &format!("{path}/config"), "delete=unused0").await;
    assert!(world.get(&format!("{path}/config")).await.get("unused0").is_none());
}

#[tokio::test]
async fn the_defaults_of_a_backup_have_the_storages_retention() {
    let world = World::sample().await;
    for (query, want) in [
        ("", "keep-all=1"),
        ("?storage=nfs-backup", "keep-daily=7,keep-weekly=4"),
        ("?storage=pbs-main", "keep-all=1"),
    ] {
        let defaults = world.get(&format!("/nodes/pve1/vzdump/defaults{query}")).await;
        assert_eq!(defaults["prune-backups"], want, "{query}: {defaults}");
    }
}
