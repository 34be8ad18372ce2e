//! The way to Proxmox, and who we are there.

use serde_json::{Map, Value, json};

use super::privileges;
use crate::{
    Error, Result,
    config::Mode,
    pve::loose,
    render::{Answer, units},
    safety::Flag,
    tools::{Ctx, args::None as NoArgs},
};

/// Clocks further apart than this are told, in seconds.
const CLOCK_SKEW: i64 = 30;

/// `pve_check_connection`
pub async fn check(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let steps = steps(ctx).await;
    let failed = steps.iter().filter(|s| !loose::flag(s, "ok")).count();
    let heading = if failed == 0 {
        "every step is well".to_owned()
    } else {
        format!("{failed} of {} steps need a look", steps.len())
    };
    Ok(Answer::new(json!({"ok": failed == 0, "steps": steps})).heading(heading))
}

/// Each step of the way to Proxmox, in order.
pub async fn steps(ctx: Ctx<'_>) -> Vec<Value> {
    let mut steps = Vec::new();
    ctx.app.pve.forget();
    let release;
    match ctx.get(&["version"]).await {
        Ok(version) => {
            release = loose::text(&version, "version").unwrap_or_default();
            steps.push(tls(ctx));
            steps.push(good("token", "the API token was accepted"));
            steps.push(good("version", &format!("Proxmox VE {release}")));
        }
        Err(error) => {
            steps.push(bad("connection", &error));
            return steps;
        }
    }
    match ctx.get(&["access", "permissions"]).await {
        Ok(permissions) => {
            steps.extend(privileges::steps(&permissions, &release, ctx.app.config.mode));
        }
        Err(error) => steps.push(bad("privileges", &error)),
    }
    match ctx.get(&["nodes"]).await {
        Ok(nodes) => {
            let rows = loose::rows(&nodes);
            let offline: Vec<String> = rows
                .iter()
                .filter(|n| loose::str(n, "status") != Some("online"))
                .filter_map(|n| loose::text(n, "node"))
                .collect();
            steps.push(if offline.is_empty() {
                good("nodes", &format!("{} online", rows.len()))
            } else {
                json!({
                    "step": "nodes", "ok": false,
                    "detail": format!("offline: {}", offline.join(", ")),
                    "hint": "pve_cluster_status shows quorum; the node itself has to be looked at",
                })
            });
            if let Some(node) = rows
                .iter()
                .find(|n| loose::str(n, "status") == Some("online"))
                .and_then(|n| loose::text(n, "node"))
            {
                steps.extend(clock(ctx, &node).await);
            }
        }
        Err(error) => steps.push(bad("nodes", &error)),
    }
    steps
}

/// How the node that answered was told from another.
fn tls(ctx: Ctx<'_>) -> Value {
    let tls = &ctx.app.config.tls;
    let host = ctx.app.pve.host().map(|h| format!("{}:{}", h.host, h.port)).unwrap_or_default();
    let how = if !tls.fingerprints.is_empty() {
        "its certificate is the pinned one"
    } else if tls.ca_file.is_some() {
        "its certificate is of the CA in PROXMOX_TLS_CA_FILE"
    } else if tls.insecure {
        return json!({
            "step": "connection", "ok": false,
            "detail": format!("{host} answered, but nothing proves who it is (PROXMOX_TLS_INSECURE)"),
            "hint": "`proxmox-mcp fingerprint` prints the line that pins its certificate",
        });
    } else {
        "its certificate is trusted by this system"
    };
    good("connection", &format!("{host} answered; {how}"))
}

fn good(step: &str, detail: &str) -> Value {
    json!({"step": step, "ok": true, "detail": detail})
}

fn bad(step: &str, error: &Error) -> Value {
    json!({
        "step": step, "ok": false, "code": error.code.as_str(),
        "detail": error.message, "hint": error.hint,
    })
}

async fn clock(ctx: Ctx<'_>, node: &str) -> Option<Value> {
    let time = ctx.get(&["nodes", node, "time"]).await.ok()?;
    let skew = loose::int(&time, "time")? - units::now();
    Some(if skew.abs() <= CLOCK_SKEW {
        good("clock", &format!("within {CLOCK_SKEW} s of node {node}"))
    } else {
        json!({
            "step": "clock", "ok": false,
            "detail": format!("the clock of node {node} is {} s {} this machine's",
                skew.abs(), if skew > 0 { "ahead of" } else { "behind" }),
            "hint": "set both by NTP: ages and schedules are judged by this machine's clock",
        })
    })
}

/// `pve_whoami`
pub async fn whoami(ctx: Ctx<'_>, _: NoArgs) -> Result<Answer> {
    let config = &ctx.app.config;
    let id = config.token.as_ref().map(|t| t.id.clone()).unwrap_or_default();
    let user = id.split('!').next().unwrap_or_default().to_owned();
    let mut out = Map::new();
    out.insert("token_id".into(), id.clone().into());
    out.insert("user".into(), user.clone().into());
    let mut missing = Vec::new();
    match ctx.get(&["access", "permissions"]).await {
        Ok(permissions) => {
            let paths: Map<String, Value> = permissions
                .as_object()
                .into_iter()
                .flatten()
                .map(|(path, p)| {
                    let mut names: Vec<&str> =
                        p.as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
                    names.sort_unstable();
                    (path.clone(), names.join(",").into())
                })
                .collect();
            if paths.is_empty() {
                missing.push("this token has no privileges at all".to_owned());
            }
            out.insert("privileges".into(), collapse(paths));
        }
        Err(e) => missing.push(format!("privileges: {}", e.message)),
    }
    if let Some(name) = id.split('!').nth(1) {
        match ctx.get(&["access", "users", &user, "token", name]).await {
            Ok(token) => {
                out.insert("privilege_separation".into(), loose::flag(&token, "privsep").into());
                let expire = loose::int(&token, "expire").filter(|e| *e > 0).map(units::time);
                out.insert("expires".into(), expire.unwrap_or_else(|| "never".to_owned()).into());
            }
            Err(e) => missing.push(format!("token: {}", e.message)),
        }
    }
    out.insert("limits".into(), limits(ctx));
    if !missing.is_empty() {
        out.insert("partial".into(), true.into());
        out.insert("missing".into(), missing.into());
    }
    Ok(Answer::new(out).heading(format!("connected as {id}")))
}

/// Paths with the same privileges are named once.
fn collapse(paths: Map<String, Value>) -> Value {
    let mut groups: Vec<(Value, Vec<String>)> = Vec::new();
    for (path, privileges) in paths {
        match groups.iter_mut().find(|(p, _)| *p == privileges) {
            Some((_, list)) => list.push(path),
            None => groups.push((privileges, vec![path])),
        }
    }
    let rows = groups.into_iter().map(|(privileges, mut paths)| {
        paths.sort();
        json!({"paths": paths, "privileges": privileges})
    });
    rows.collect()
}

/// What this server itself allows, whatever the token could do.
fn limits(ctx: Ctx<'_>) -> Value {
    let config = &ctx.app.config;
    let flags: Vec<&str> = config.flags.iter().map(Flag::category).collect();
    let mut out = json!({
        "mode": if config.mode == Mode::Write { "write" } else { "read-only" },
        "exec": config.exec,
        "critical_flags_on": flags,
    });
    if let Value::Object(map) = &mut out {
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value.filter(|v| !v.is_empty()) {
                map.insert(key.to_owned(), value.into());
            }
        };
        put("allowed_vmids", config.allowed_vmids.as_ref().map(ToString::to_string));
        put("denied_vmids", Some(config.denied_vmids.to_string()));
        let hides = config.read_allowed_only.then(|| "allowed".to_owned());
        put("read_vmids", hides);
        put("self_vmids", Some(config.self_vmids.to_string()));
        let nodes = config.allowed_nodes.as_ref();
        put(
            "allowed_nodes",
            nodes.map(|n| n.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
        );
        put("toolsets", config.toolsets.as_ref().map(|t| t.join(",")));
    }
    out
}
