//! A node's power, with what has to be known before.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    insight::estate::GuestStatus,
    pve::{NodeName, Params, loose},
    render::{Answer, units},
    safety::Method,
    tools::{
        Ctx,
        change::Asked,
        outcome::{operation, told},
    },
};

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    Reboot,
    Shutdown,
}

impl Command {
    const fn as_str(self) -> &'static str {
        match self {
            Command::Reboot => "reboot",
            Command::Shutdown => "shutdown",
        }
    }
}

/// Arguments of `pve_node_power`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Power {
    node: Option<NodeName>,
    command: Command,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_node_power`
pub async fn power(ctx: Ctx<'_>, args: Power) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let command = args.command.as_str();
    let preflight = Preflight::of(ctx, &node).await?;
    if preflight.offline {
        return Err(Error::new(Code::Conflict, format!("node {node} is not online"))
            .hint("pve_node_wake starts a node that is set up for wake on LAN"));
    }
    let params = Params::new().with("command", command);
    let path = ["nodes", &node, "status"];
    let done = ctx.submit(operation(Method::Post, &path, params)?, &args.asked).await?;
    let answer =
        told(done, Value::Null, async { Value::Null }, format!("{command} of {node}")).await;
    let answer = answer.with("preflight", preflight.to_json());
    Ok(match (args.command, preflight.is_local) {
        (Command::Shutdown, _) => answer.with("note", "it stays off until someone turns it on, or pve_node_wake where that is set up"),
        (Command::Reboot, true) => answer.with("note", "this server speaks through this node: calls fail until it is back, or go to another host of PROXMOX_HOST"),
        (Command::Reboot, false) => answer,
    }
    .untrusted(&["preflight"]))
}

/// What is known of a node before it goes down.
#[derive(Debug, Default)]
struct Preflight {
    offline: bool,
    is_local: bool,
    running: Vec<Value>,
    ha: Vec<String>,
    quorum: Option<(usize, usize)>,
    tasks: Vec<String>,
    replication: Vec<Value>,
    unknown: Vec<String>,
}

impl Preflight {
    async fn of(ctx: Ctx<'_>, node: &str) -> Result<Self> {
        let mut found = Self::default();
        let active = Params::new().with("source", "active");
        let paths = [["nodes", node, "tasks"], ["nodes", node, "replication"]];
        let [tasks, replication] = &paths;
        let (status, ha, tasks, replication, guests) = futures::join!(
            ctx.fresh(&["cluster", "status"], Params::new()),
            ctx.fresh(&["cluster", "ha", "status", "current"], Params::new()),
            ctx.fresh(tasks, active),
            ctx.fresh(replication, Params::new()),
            ctx.guests(),
        );
        let status = status?;
        found.cluster(node, &status);
        let name = node.to_owned();
        let mut unknown =
            |what: &str, error: &Error| found.unknown.push(format!("{what}: {}", error.message));
        match &ha {
            Ok(rows) => found.ha = ha_services(rows, node),
            Err(error) => unknown("HA", error),
        }
        match &tasks {
            Ok(rows) => found.tasks = running_tasks(rows),
            Err(error) => unknown("running tasks", error),
        }
        match &replication {
            Ok(rows) => found.replication = late_replication(rows),
            Err(error) => unknown("replication", error),
        }
        let guests = match guests {
            Ok(guests) => guests,
            Err(error) => {
                unknown("guests", &error);
                return Ok(found);
            }
        };
        let here = guests
            .iter()
            .filter(|g| *g.node == *name && g.status == GuestStatus::Running && !g.template);
        let reads = here.map(|g| async move {
            let config = ctx.get_below(g, &["config"], Params::new()).await;
            let onboot = config.ok().map(|c| loose::flag(&c, "onboot"));
            json!({"vmid": g.vmid, "name": g.name, "starts_at_boot": onboot})
        });
        found.running = futures::future::join_all(reads).await;
        Ok(found)
    }

    fn cluster(&mut self, node: &str, rows: &Value) {
        let nodes: Vec<&Value> =
            loose::rows(rows).iter().filter(|r| loose::str(r, "type") == Some("node")).collect();
        let online = nodes.iter().filter(|n| loose::flag(n, "online")).count();
        for row in &nodes {
            let local = loose::flag(row, "local");
            if loose::str(row, "name") == Some(node) || (node == "localhost" && local) {
                self.is_local = local;
                self.offline = !loose::flag(row, "online");
            }
        }
        let clustered = loose::rows(rows).iter().any(|r| loose::str(r, "type") == Some("cluster"));
        if clustered {
            self.quorum = Some((online.saturating_sub(1), nodes.len()));
        }
    }

    /// Whether a cluster is without a majority while the node is down. Votes are
    /// taken as one a node; an external vote can only help.
    fn loses_quorum(&self) -> bool {
        self.quorum.is_some_and(|(left, all)| left * 2 <= all)
    }

    fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.loses_quorum()
            && let Some((left, all)) = self.quorum
        {
            found.push(format!("{left} of {all} nodes are left: the cluster loses its quorum, nothing can be changed or started until a majority is back (counted as one vote a node, without a QDevice)"));
        }
        if !self.tasks.is_empty() {
            found.push(format!("{} tasks are running and would be broken off", self.tasks.len()));
        }
        if !self.ha.is_empty() {
            found.push(format!("{} HA services are here: what becomes of them is up to the cluster's shutdown policy", self.ha.len()));
        }
        if !self.replication.is_empty() {
            found.push(format!("{} replication jobs fail or are behind", self.replication.len()));
        }
        let lost = self
            .running
            .iter()
            .filter(|g| g.get("starts_at_boot") == Some(&Value::Bool(false)))
            .count();
        if lost > 0 {
            found.push(format!("{lost} running guests do not start by themselves afterwards"));
        }
        found
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "warnings": self.warnings(),
            "running_guests": self.running,
            "ha_services": self.ha,
            "running_tasks": self.tasks,
            "replication_not_well": self.replication,
            "quorum_after": self.quorum.map(|(left, all)| json!({"nodes_left": left, "nodes": all, "quorate": !self.loses_quorum()})),
            "connected_to_it": self.is_local,
        });
        if let (Value::Object(map), false) = (&mut value, self.unknown.is_empty()) {
            map.insert("not_known".into(), self.unknown.clone().into());
        }
        value
    }
}

fn ha_services(rows: &Value, node: &str) -> Vec<String> {
    loose::rows(rows)
        .iter()
        .filter(|r| loose::str(r, "type") == Some("service") && loose::str(r, "node") == Some(node))
        .filter_map(|r| {
            let sid = loose::text(r, "sid")?;
            Some(format!("{sid} {}", loose::text(r, "state").unwrap_or_default()))
        })
        .collect()
}

fn running_tasks(rows: &Value) -> Vec<String> {
    loose::rows(rows)
        .iter()
        .filter(|t| {
            loose::int(t, "endtime").is_none()
                && loose::str(t, "status").is_none_or(|s| s == "RUNNING" || s == "running")
        })
        .map(|t| {
            let part = |key: &str| loose::text(t, key).unwrap_or_default();
            format!("{} {} by {}", part("type"), part("id"), part("user"))
        })
        .collect()
}

fn late_replication(rows: &Value) -> Vec<Value> {
    let now = units::now();
    loose::rows(rows)
        .iter()
        .filter(|j| {
            let late = loose::int(j, "next_sync").is_some_and(|next| next > 0 && next < now);
            loose::int(j, "fail_count").is_some_and(|n| n > 0) || late
        })
        .map(|j| json!({"id": loose::text(j, "id"), "fail_count": loose::int(j, "fail_count"), "error": loose::text(j, "error"), "last_sync": loose::int(j, "last_sync").filter(|t| *t > 0).map(units::time)}))
        .collect()
}

/// Arguments of `pve_node_wake`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Wake {
    node: NodeName,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_node_wake`
pub async fn wake(ctx: Ctx<'_>, args: Wake) -> Result<Answer> {
    let node = ctx.node(args.node.as_str()).await?;
    let status = ctx.fresh(&["cluster", "status"], Params::new()).await?;
    let row = loose::rows(&status).iter().find(|r| loose::str(r, "name") == Some(&node));
    if row.is_some_and(|r| loose::flag(r, "local")) || node == "localhost" {
        return Err(Error::new(
            Code::Conflict,
            format!("{node} is the node that would have to send the packet"),
        )
        .hint("a node cannot wake itself"));
    }
    if row.is_some_and(|r| loose::flag(r, "online")) {
        return Ok(Answer::new(json!({"status": "no_change", "node": node}))
            .heading(format!("{node} is online already")));
    }
    let path = ["nodes", &node, "wakeonlan"];
    let done = ctx.submit(operation(Method::Post, &path, Params::new())?, &args.asked).await?;
    let answer = told(done, Value::Null, async { Value::Null }, format!("wake {node}")).await;
    Ok(answer.with(
        "note",
        "the packet is sent; whether the node starts shows pve_list_nodes in some minutes",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(online: usize, all: usize) -> Value {
        let mut rows = vec![json!({"type": "cluster", "name": "c", "quorate": 1})];
        rows.extend((0..all).map(|n| json!({"type": "node", "name": format!("n{n}"), "online": u8::from(n < online), "local": u8::from(n == 0)})));
        Value::Array(rows)
    }

    #[test]
    fn quorum_after_one_more_node_is_gone() {
        for (online, all, lost) in [
            (3, 3, false),
            (2, 3, true),
            (2, 2, true),
            (4, 4, false),
            (3, 4, true),
            (5, 5, false),
            (3, 5, true),
        ] {
            let mut found = Preflight::default();
            found.cluster("n0", &nodes(online, all));
            assert_eq!(found.loses_quorum(), lost, "{online} of {all}");
        }
        let mut alone = Preflight::default();
        alone.cluster("pve", &json!([{"type": "node", "name": "pve", "online": 1, "local": 1}]));
        assert!(!alone.loses_quorum());
        assert!(alone.is_local);
    }

    #[test]
    fn tasks_that_still_run() {
        let rows = json!([
            {"type": "vzdump", "id": "100", "user": "root@pam", "starttime": 5},
            {"type": "qmstart", "id": "101", "user": "root@pam", "starttime": 5, "endtime": 6, "status": "OK"},
        ]);
        assert_eq!(running_tasks(&rows), ["vzdump 100 by root@pam"]);
    }
}
