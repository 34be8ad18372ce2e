//! Changes of a node's system: services, packages, power.

use serde_json::{Value, json};

use super::Route;
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;

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

fn apt_update(c: &mut Call<'_>) -> Answer {
    let enabled = |c: &Call<'_>| -> usize {
        let files = c
            .state
            .nodes
            .get(&c.node())
            .and_then(|n| n.repositories.get("files"))
            .and_then(Value::as_array);
        files.map_or(0, |f| {
            f.iter()
                .filter_map(|f| f.get("repositories").and_then(Value::as_array))
                .map(Vec::len)
                .sum()
        })
    };
    let lines = vec!["starting apt-get update".to_owned(), format!("{} sources read", enabled(c))];
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
