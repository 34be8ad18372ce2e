//! The QEMU guest agent: what it tells, and a few commands that it runs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Route;
use super::guests::{find, link_local};
use super::qga;
use super::shell::Machine;
use super::windows;
use super::windows_files::Disk;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::params;
use crate::api::propstring;
use crate::state::guest::{Agent, Guest, Kind};

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/nodes/{node}/qemu/{vmid}/agent", command),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/ping", ping),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/info", info),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-osinfo", os),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-host-name", host_name),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-time", time),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-timezone", timezone),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-users", users),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-vcpus", vcpus),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/get-fsinfo", file_systems),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", interfaces),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/fsfreeze-status", freeze_status),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/fsfreeze-freeze", freeze),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/fsfreeze-thaw", thaw),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/fstrim", trim),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/exec", exec),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/exec-status", exec_status),
    ("GET", "/nodes/{node}/qemu/{vmid}/agent/file-read", file_read),
    ("POST", "/nodes/{node}/qemu/{vmid}/agent/file-write", file_write),
];

/// A program takes this long at least, milliseconds.
const EXEC_MS: i64 = 150;
/// file-read stops here.
const MAX_READ: usize = 16 << 20;

/// The guest and its agent, if one is configured, the guest runs, and it answers.
fn agent<'a>(c: &'a Call<'_>) -> Result<(&'a Guest, &'a Agent), Failure> {
    let guest = find(c.state, &c.node(), c.vmid(), Kind::Qemu)?;
    let configured =
        guest.config.get("agent").is_some_and(|a| a.starts_with('1') || a.contains("enabled=1"));
    if !configured {
        return Err(Failure::died("No QEMU guest agent configured"));
    }
    if !guest.running() {
        return Err(Failure::died(format!("VM {} is not running", guest.vmid)));
    }
    let stuck = guest.run.as_ref().is_some_and(|r| r.agent_stuck);
    let answers = guest.agent.as_ref().filter(|_| !stuck);
    Ok((guest, answers.ok_or_else(|| Failure::died("QEMU guest agent is not running"))?))
}

fn result(value: Value) -> Answer {
    Ok(json!({"result": value}).into())
}

/// Commands that work while the file systems are frozen.
const WHILE_FROZEN: [&str; 4] =
    ["guest-ping", "guest-info", "guest-fsfreeze-status", "guest-fsfreeze-thaw"];

/// Why a command is switched off, in the agent's own words.
fn off(agent: &Agent, command: &str) -> Option<String> {
    if agent.off.iter().any(|name| name == command) {
        return Some(format!("Command {command} has been disabled"));
    }
    let stopped = agent.frozen && !WHILE_FROZEN.contains(&command);
    stopped.then(|| format!("Command {command} has been disabled: the agent is in frozen state"))
}

/// A command of the agent whose own error is an answer like any other: the
/// real agent's where there is one, else the value.
fn says(c: &Call<'_>, command: &str, value: impl FnOnce(&Guest, &Agent) -> Value) -> Answer {
    let (guest, agent) = agent(c)?;
    if let Some(socket) = &agent.socket {
        let said = qga::run(socket, guest.vmid, command, &json!({}))?;
        return result(said.unwrap_or_else(|error| json!({"error": error})));
    }
    result(match off(agent, command) {
        Some(desc) => json!({"error": {"class": "CommandNotFound", "desc": desc}}),
        None => value(guest, agent),
    })
}

/// Fails where a command is switched off.
fn demand(agent: &Agent, command: &str) -> Result<(), Failure> {
    off(agent, command).map_or(Ok(()), |desc| Err(Failure::died(format!("Agent error: {desc}"))))
}

fn ping(c: &mut Call<'_>) -> Answer {
    says(c, "guest-ping", |_, _| json!({}))
}

fn freeze_status(c: &mut Call<'_>) -> Answer {
    says(c, "guest-fsfreeze-status", |_, agent| {
        json!(if agent.frozen { "frozen" } else { "thawed" })
    })
}

fn freeze(c: &mut Call<'_>) -> Answer {
    frozen(c, true)
}

fn thaw(c: &mut Call<'_>) -> Answer {
    frozen(c, false)
}

fn frozen(c: &mut Call<'_>, on: bool) -> Answer {
    let command = if on { "guest-fsfreeze-freeze" } else { "guest-fsfreeze-thaw" };
    let answer = says(c, command, |_, _| json!(1))?;
    let vmid = c.vmid();
    if let Some(agent) = c.state.guests.get_mut(&vmid).and_then(|g| g.agent.as_mut())
        && off(agent, command).is_none()
    {
        agent.frozen = on;
    }
    Ok(answer)
}

fn trim(c: &mut Call<'_>) -> Answer {
    says(c, "guest-fstrim", |_, _| json!({"paths": []}))
}

/// The old call with the command as a parameter.
fn command(c: &mut Call<'_>) -> Answer {
    match c.need("command").as_str() {
        "ping" => ping(c),
        "get-osinfo" => os(c),
        "get-fsinfo" => file_systems(c),
        "get-host-name" => host_name(c),
        "get-time" => time(c),
        "get-users" => users(c),
        "get-vcpus" => vcpus(c),
        "get-timezone" => timezone(c),
        "info" => info(c),
        "network-get-interfaces" => interfaces(c),
        "fsfreeze-status" => freeze_status(c),
        "fsfreeze-freeze" => freeze(c),
        "fsfreeze-thaw" => thaw(c),
        "fstrim" => trim(c),
        other => {
            agent(c)?;
            let text =
                format!("VM {} qga command 'guest-{other}' failed - unsupported command", c.vmid());
            Err(Failure::died(text))
        }
    }
}

fn info(c: &mut Call<'_>) -> Answer {
    const COMMANDS: [&str; 13] = [
        "guest-ping",
        "guest-info",
        "guest-exec",
        "guest-exec-status",
        "guest-file-open",
        "guest-file-read",
        "guest-file-write",
        "guest-get-osinfo",
        "guest-get-fsinfo",
        "guest-network-get-interfaces",
        "guest-fsfreeze-freeze",
        "guest-fsfreeze-thaw",
        "guest-fsfreeze-status",
    ];
    says(c, "guest-info", |_, agent| {
        let row = |name: &&str| json!({"name": name, "enabled": off(agent, name).is_none(), "success-response": true});
        let commands: Vec<Value> = COMMANDS.iter().map(row).collect();
        json!({"version": "10.0.13", "supported_commands": commands})
    })
}

fn os(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-osinfo", |_, agent| {
        let id = if agent.windows { "mswindows" } else { "debian" };
        let name = if agent.windows { "Microsoft Windows" } else { "Debian GNU/Linux" };
        let number = |w: &&str| w.bytes().all(|b| b.is_ascii_digit());
        let version = agent.os.split_whitespace().find(number).unwrap_or("1");
        json!({"id": id, "name": name, "pretty-name": agent.os, "version-id": version,
            "machine": "x86_64", "kernel-release": agent.kernel,
            "kernel-version": "#1 SMP PREEMPT_DYNAMIC"})
    })
}

fn host_name(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-host-name", |guest, _| json!({"host-name": guest.name()}))
}

fn time(c: &mut Call<'_>) -> Answer {
    let now = c.now_ms * 1_000_000;
    says(c, "guest-get-time", |_, _| json!(now))
}

fn timezone(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-timezone", |_, _| json!({"offset": 0, "zone": "UTC"}))
}

fn users(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-users", |_, _| json!([]))
}

fn vcpus(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-vcpus", |guest, _| {
        let row = |n: u64| json!({"logical-id": n, "online": true, "can-offline": n > 0});
        (0..guest.cpus(1)).map(row).collect()
    })
}

fn file_systems(c: &mut Call<'_>) -> Answer {
    says(c, "guest-get-fsinfo", |_, agent| {
        let kind = if agent.windows { "NTFS" } else { "ext4" };
        let rows = agent.filesystems.iter().map(|(mount, device, total, used)| {
            json!({"mountpoint": mount, "name": device, "type": kind,
                "total-bytes": total, "used-bytes": used, "disk": []})
        });
        rows.collect()
    })
}

fn interfaces(c: &mut Call<'_>) -> Answer {
    let now = c.now();
    says(c, "guest-network-get-interfaces", |guest, agent| links(guest, agent, now))
}

fn links(guest: &Guest, agent: &Agent, now: i64) -> Value {
    let counters = |bytes: u64| {
        json!({"rx-bytes": bytes, "tx-bytes": bytes, "rx-packets": bytes / 900, "tx-packets": bytes / 900,
        "rx-errs": 0, "tx-errs": 0, "rx-dropped": 0, "tx-dropped": 0})
    };
    let address = |text: &str| {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "24"));
        let kind = if ip.contains(':') { "ipv6" } else { "ipv4" };
        json!({"ip-address": ip, "ip-address-type": kind, "prefix": prefix.parse::<u8>().unwrap_or(24)})
    };
    let mut rows = vec![
        json!({"name": "lo", "hardware-address": "00:00:00:00:00:00", "statistics": counters(0),
        "ip-addresses": [address("127.0.0.1/8"), address("::1/128")]}),
    ];
    let live = guest.live(now).unwrap_or_default();
    for (n, (_, nic)) in guest.nics().iter().enumerate() {
        let mac = Guest::mac(nic).unwrap_or_default().to_lowercase();
        // Cloud-init has set what it was given; the rest came by DHCP or by hand.
        let told = guest.config.get(&format!("ipconfig{n}")).unwrap_or_default();
        let mut addresses: Vec<Value> = ["ip", "ip6"]
            .into_iter()
            .filter_map(|key| propstring::get(told, key).filter(|ip| ip.contains('/')))
            .map(|ip| address(&ip))
            .collect();
        if n == 0 && addresses.is_empty() {
            addresses.extend(agent.addresses.iter().map(|a| address(a)));
        }
        addresses.push(address(&format!("{}/64", link_local(&mac))));
        let name = if agent.windows { format!("Ethernet {n}") } else { format!("ens{}", 18 + n) };
        rows.push(json!({"name": name, "hardware-address": mac, "ip-addresses": addresses,
            "statistics": counters(if n == 0 { live.net_in } else { 0 })}));
    }
    Value::Array(rows)
}

/// Bytes come back as one character each.
pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

fn exec(c: &mut Call<'_>) -> Answer {
    let vmid = c.vmid();
    let argv = match c.params.get("command") {
        Some(Value::Array(items)) => items.iter().map(params::text).collect(),
        Some(value) => vec![params::text(value)],
        None => Vec::new(),
    };
    let input = c.text("input-data").unwrap_or_default();
    let wide = |text: &str| text.chars().any(|ch| u32::from(ch) > 0xFF);
    if wide(&input) {
        return Err(Failure::died(
            "Wide character in subroutine entry at /usr/share/perl5/PVE/QemuServer/Agent.pm line 135.",
        ));
    }
    let input: Vec<u8> = input.chars().filter_map(|ch| u8::try_from(u32::from(ch)).ok()).collect();
    let (guest, agent) = agent(c)?;
    if argv.iter().any(|a| wide(a)) {
        // The agent recovers from such a request only with a new start of the guest.
        if let Some(run) = c.state.guests.get_mut(&vmid).and_then(|g| g.run.as_mut()) {
            run.agent_stuck = true;
        }
        return Err(Failure::died(format!(
            "VM {vmid} qga command 'guest-exec' failed - got timeout"
        )));
    }
    if let Some(socket) = &agent.socket {
        return qga::start(socket, vmid, &argv, &input);
    }
    demand(agent, "guest-exec")?;
    let mut machine = Machine { guest, agent: agent.clone() };
    let ran = match machine.agent.windows {
        true => windows::run(guest, &mut machine.agent, &argv, &input),
        false => machine.run(&argv, &input),
    };
    let Some(ran) = ran else {
        return Err(Failure::proxy(596, "Broken pipe"));
    };
    let (files, win) = (machine.agent.files, machine.agent.win);
    if let Some(guest) = c.state.guests.get_mut(&vmid) {
        if let Some(agent) = guest.agent.as_mut() {
            agent.files = files;
            agent.win = win;
        }
        if ran.down {
            guest.stop();
        }
    }
    let pid = 150 + 2 * u32::try_from(c.state.agent_runs.len()).unwrap_or(0);
    let mut status = serde_json::Map::new();
    match ran.signal {
        Some(signal) => status.insert("signal".to_owned(), json!(signal)),
        None => status.insert("exitcode".to_owned(), json!(ran.code)),
    };
    for (bytes, data, truncated) in
        [(ran.out, "out-data", "out-truncated"), (ran.err, "err-data", "err-truncated")]
    {
        if !bytes.is_empty() {
            status.insert(data.to_owned(), json!(latin1(&bytes)));
            status.insert(truncated.to_owned(), json!(0));
        }
    }
    status.insert("_done".to_owned(), json!(c.now_ms + EXEC_MS + ran.seconds * 1000));
    c.state.agent_runs.insert((vmid, pid), Value::Object(status));
    Ok(json!({"pid": pid}).into())
}

fn exec_status(c: &mut Call<'_>) -> Answer {
    let (_, agent) = agent(c)?;
    if let Some(socket) = &agent.socket {
        let pid = c.int("pid").and_then(|p| u32::try_from(p).ok()).unwrap_or(0);
        return qga::status_by(socket, c.vmid(), pid);
    }
    demand(agent, "guest-exec-status")?;
    let pid = c.int("pid").and_then(|p| u32::try_from(p).ok()).unwrap_or(0);
    let gone = || Failure::died("Agent error: PID ld does not exist");
    let key = (c.vmid(), pid);
    let status = c.state.agent_runs.get(&key).ok_or_else(gone)?;
    let due = status.get("_done").and_then(Value::as_i64).unwrap_or(0);
    if due > c.now_ms {
        return Ok(json!({"exited": 0}).into());
    }
    let mut status = status.clone();
    if let Value::Object(map) = &mut status {
        map.remove("_done");
        map.insert("exited".to_owned(), json!(1));
    }
    Ok(status.into())
}

fn file_read(c: &mut Call<'_>) -> Answer {
    let path = c.need("file");
    let (_, agent) = agent(c)?;
    demand(agent, "guest-file-open")?;
    let size = |name: &str| c.int(name).and_then(|n| usize::try_from(n).ok());
    let count = size("count").unwrap_or(MAX_READ).min(MAX_READ);
    let from = size("offset").unwrap_or(0);
    if let Some(socket) = &agent.socket {
        let (bytes, more) = qga::read_by(socket, c.vmid(), &path, from, count)?;
        return Ok(content_of(c, &bytes, more).into());
    }
    let mut windows = agent.windows.then(|| agent.clone());
    let found = match &mut windows {
        Some(agent) => Disk::of(agent).open(&path).cloned(),
        None => agent.files.get(&path).cloned(),
    };
    let Some(bytes) = found else {
        let why = match agent.windows {
            true => "The system cannot find the file specified.",
            false => "No such file or directory",
        };
        let text = format!("Agent error: failed to open file '{path}' (mode: 'r'): {why}");
        return Err(Failure::died(text));
    };
    let rest = bytes.get(from..).unwrap_or(&[]);
    let part = rest.get(..count).unwrap_or(rest);
    Ok(content_of(c, part, part.len() < rest.len()).into())
}

/// The answer of file-read.
fn content_of(c: &Call<'_>, bytes: &[u8], more: bool) -> Value {
    let content =
        if c.switch("decode") == Some(false) { STANDARD.encode(bytes) } else { latin1(bytes) };
    let mut reply = json!({"content": content, "bytes-read": bytes.len()});
    if more && let Value::Object(map) = &mut reply {
        map.insert("truncated".to_owned(), json!(1));
    }
    reply
}

fn file_write(c: &mut Call<'_>) -> Answer {
    let (path, content, vmid) = (c.need("file"), c.need("content"), c.vmid());
    let encode = c.switch("encode") != Some(false);
    let socket = {
        let (_, agent) = agent(c)?;
        demand(agent, "guest-file-write")?;
        agent.socket.clone()
    };
    let bytes = if encode {
        let narrow: Option<Vec<u8>> =
            content.chars().map(|ch| u8::try_from(u32::from(ch)).ok()).collect();
        let text = "Wide character in subroutine entry at /usr/share/perl5/PVE/API2/Qemu/Agent.pm line 624.";
        narrow.ok_or_else(|| Failure::died(text))?
    } else {
        STANDARD.decode(&content).map_err(|_| Failure::died("Agent error: Invalid base64 data"))?
    };
    if let Some(socket) = socket {
        return qga::write_by(&socket, vmid, &path, &bytes);
    }
    if let Some(agent) = c.state.guests.get_mut(&vmid).and_then(|g| g.agent.as_mut()) {
        if agent.windows {
            let put = Disk::of(agent).put(&path, bytes);
            return put
                .map_or_else(|why| Err(Failure::died(format!("Agent error: {why}"))), |()| done());
        }
        agent.files.insert(path, bytes);
    }
    done()
}
