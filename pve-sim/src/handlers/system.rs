//! Changes of a node's system: services, packages, power.

use serde_json::{Value, json};

use super::Route;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::{Request, params, perform};

pub(crate) const ROUTES: &[Route] = &[
    ("POST", "/nodes/{node}/services/{service}/start", |c| service(c, "start")),
    ("POST", "/nodes/{node}/services/{service}/stop", |c| service(c, "stop")),
    ("POST", "/nodes/{node}/services/{service}/restart", |c| service(c, "restart")),
    ("POST", "/nodes/{node}/services/{service}/reload", |c| service(c, "reload")),
    ("POST", "/nodes/{node}/apt/update", apt_update),
    ("POST", "/nodes/{node}/apt/repositories", set_repository),
    ("PUT", "/nodes/{node}/apt/repositories", add_repository),
    ("GET", "/nodes/{node}/apt/changelog", changelog),
    ("POST", "/nodes/{node}/status", power),
    ("POST", "/nodes/{node}/wakeonlan", wake),
    ("POST", "/nodes/{node}/execute", execute),
];

/// Services that the API refuses to stop.
const ESSENTIAL: [&str; 4] = ["pvedaemon", "pveproxy", "pve-cluster", "pvestatd"];

fn service(c: &mut Call<'_>, what: &'static str) -> Answer {
    let (node, name) = (c.node(), c.need("service"));
    c.spawn(&format!("srv{what}"), &name.clone(), 300, move |state, _| {
        if what == "stop" && ESSENTIAL.contains(&name.as_str()) {
            return Err(format!(
                "invalid service cmd '{name} stop': refusing to stop essential service!"
            ));
        }
        let service = state.nodes.get_mut(&node).and_then(|n| n.services.get_mut(&name));
        let Some(service) = service else {
            return Err(format!("command 'systemctl {what} {name}' failed: exit code 5"));
        };
        let (run, active) =
            if what == "stop" { ("dead", "inactive") } else { ("running", "active") };
        service.insert("state".to_owned(), json!(run));
        service.insert("active-state".to_owned(), json!(active));
        Ok(Vec::new())
    })
}

/// The enabled repositories of a node: their URIs.
fn sources(repositories: &Value) -> Vec<String> {
    let list =
        |v: &Value, name: &str| v.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for file in list(repositories, "files") {
        let enabled = |r: &Value| r.get("Enabled").is_none_or(|e| *e == 1);
        for repository in list(&file, "repositories").into_iter().filter(enabled) {
            all.extend(
                list(&repository, "URIs").iter().filter_map(Value::as_str).map(str::to_owned),
            );
        }
    }
    all
}

fn apt_update(c: &mut Call<'_>) -> Answer {
    let sources =
        c.state.nodes.get(&c.node()).map(|n| sources(&n.repositories)).unwrap_or_default();
    // A local folder that is not there, as in the recordings.
    if sources.iter().any(|s| s.starts_with("file:")) {
        return c.spawn("aptupdate", "", 1200, |_, _| {
            Err("command 'apt-get update' failed: exit code 100".to_owned())
        });
    }
    let mut lines = vec!["starting apt-get update".to_owned()];
    lines.extend(sources.iter().map(|s| format!("Hit: {s}")));
    c.spawn("aptupdate", "", 1200, move |_, _| Ok(lines))
}

/// Switches a repository of a file on or off.
fn set_repository(c: &mut Call<'_>) -> Answer {
    let (node, path) = (c.node(), c.need("path"));
    let index = c.int("index").and_then(|i| usize::try_from(i).ok()).unwrap_or(0);
    let enabled = c.switch("enabled");
    let given = c.text("digest");
    let Some(node) = c.state.nodes.get_mut(&node) else { return done() };
    check_digest(&node.repositories, given.as_deref())?;
    let files = node.repositories.get_mut("files").and_then(Value::as_array_mut);
    let file = files.and_then(|f| f.iter_mut().find(|f| f.get("path").is_some_and(|p| *p == path)));
    let repository = file
        .and_then(|f| f.get_mut("repositories"))
        .and_then(Value::as_array_mut)
        .and_then(|r| r.get_mut(index))
        .and_then(Value::as_object_mut);
    let Some(repository) = repository else {
        return Err(Failure::died(format!("invalid file or index - {path} {index}")));
    };
    if let Some(enabled) = enabled {
        repository.insert("Enabled".to_owned(), json!(u8::from(enabled)));
    }
    touch(&mut node.repositories);
    done()
}

fn check_digest(repositories: &Value, given: Option<&str>) -> Result<(), Failure> {
    let own = repositories.get("digest").and_then(Value::as_str);
    match given {
        Some(given) if own != Some(given) => Err(Failure::died(
            "detected modified configuration - files changed by other user? Try again.",
        )),
        _ => Ok(()),
    }
}

/// Gives a changed repository configuration a new digest.
fn touch(repositories: &mut Value) {
    let files = repositories.get("files").cloned().unwrap_or_default();
    let half = crate::state::config::digest_of(&files);
    if let Some(map) = repositories.as_object_mut() {
        map.insert("digest".to_owned(), json!(format!("{half}{}", half.get(..24).unwrap_or(""))));
    }
}

fn add_repository(c: &mut Call<'_>) -> Answer {
    let (node, handle, given) = (c.node(), c.need("handle"), c.text("digest"));
    let Some(node) = c.state.nodes.get_mut(&node) else { return done() };
    check_digest(&node.repositories, given.as_deref())?;
    let known = node.repositories.get_mut("standard-repos").and_then(Value::as_array_mut);
    let entry =
        known.and_then(|k| k.iter_mut().find(|r| r.get("handle").is_some_and(|h| *h == handle)));
    let Some(entry) = entry.and_then(Value::as_object_mut) else {
        return Err(Failure::died(format!("unknown repository handle '{handle}'")));
    };
    entry.insert("status".to_owned(), json!(1));
    touch(&mut node.repositories);
    done()
}

fn changelog(c: &mut Call<'_>) -> Answer {
    let name = c.need("name");
    let text = format!(
        "E: Failed to fetch changelog:/{name}.changelog  Changelog unavailable for {name}\nRC: 100"
    );
    Ok(Value::String(text).into())
}

fn power(c: &mut Call<'_>) -> Answer {
    let (name, command, now) = (c.node(), c.need("command"), c.now());
    // The guests go down with it; those that start on boot come up again.
    let back = command == "reboot";
    for guest in c.state.guests.values_mut().filter(|g| g.node == name) {
        let again = back && guest.config.on("onboot") && guest.running();
        guest.stop();
        if again {
            guest.start(now, 2000 + guest.vmid);
        }
    }
    if let Some(node) = c.state.nodes.get_mut(&name) {
        node.boot = now;
        node.online = back || name == c.state.local;
    }
    done()
}

fn wake(c: &mut Call<'_>) -> Answer {
    let name = c.node();
    if name == c.state.local {
        return Err(Failure::died(format!("'{name}' is local node, cannot wake my self!")));
    }
    if let Some(node) = c.state.nodes.get_mut(&name) {
        node.online = true;
    }
    Ok(Value::String("BC:24:11:00:00:01".to_owned()).into())
}

/// Several calls in one, for root alone.
fn execute(c: &mut Call<'_>) -> Answer {
    let text = c.need("commands");
    let fail = |text: String| Failure::parameter("commands", format!("invalid format - {text}\n"));
    let commands: Vec<Value> = serde_json::from_str(&text).map_err(|_| {
        fail(format!(
            "commands param did not contain valid JSON: 'null' expected, at character offset 0 (before \"{text}\") \
             at /usr/share/perl5/PVE/API2/Nodes.pm line 99."
        ))
    })?;
    let get = |command: &Value, name: &str| command.get(name).map(params::text).unwrap_or_default();
    for (n, command) in commands.iter().enumerate() {
        if !["GET", "POST", "PUT", "DELETE"].contains(&get(command, "method").as_str()) {
            let why = format!("[{n}].method: value does not match the regex pattern");
            let text =
                "commands is not a valid array of commands: 400 Parameter verification failed.";
            return Err(fail(format!("{text}\n{why}")));
        }
    }
    let node = c.node();
    let mut rows = Vec::new();
    for command in &commands {
        let path = format!("nodes/{node}/{}", get(command, "path"));
        let args = command.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
        let method = get(command, "method");
        let full = format!("/{path}");
        let request = Request { method: &method, path: &full, data: args, upload: None };
        let result = perform(c.state, c.login, request, c.now_ms);
        rows.push(match result {
            Ok(reply) => json!({"status": 200, "data": reply.data}),
            Err(f) if f.status == 501 => json!({"status": 500, "message": format!("no handler for '{path}'\n")}),
            Err(f) if !f.errors.is_empty() => {
                json!({"status": f.status.to_string(), "message": format!("{}\n", f.message), "errors": f.errors})
            }
            Err(f) => json!({"status": f.status, "message": format!("{}\n", f.message)}),
        });
    }
    Ok(Value::Array(rows).into())
}
