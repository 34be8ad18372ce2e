//! A node's DNS, hosts file and time zone.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Error, Result,
    pve::{NodeName, Params, loose},
    render::Answer,
    safety::Method,
    tools::{
        Ctx,
        across::{members, same_digest, unchanged},
        change::Asked,
        outcome::{operation, told},
    },
};

/// Arguments of `pve_dns_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Dns {
    node: Option<NodeName>,
    search: Option<String>,
    servers: Option<Vec<String>>,
    #[serde(flatten)]
    asked: Asked,
}

const SERVERS: [&str; 3] = ["dns1", "dns2", "dns3"];

fn dns_of(value: &Value) -> Value {
    let servers: Vec<String> = SERVERS.iter().filter_map(|k| loose::text(value, k)).collect();
    json!({"search": loose::text(value, "search"), "servers": servers})
}

/// `pve_dns_set`
pub async fn dns(ctx: Ctx<'_>, args: Dns) -> Result<Answer> {
    if args.search.is_none() && args.servers.is_none() {
        return Err(Error::argument("nothing to change: give `search` or `servers`"));
    }
    if let Some(servers) = &args.servers {
        if servers.is_empty() || servers.len() > SERVERS.len() {
            return Err(Error::argument("argument `servers` takes one to three addresses")
                .with("argument", "servers"));
        }
        if let Some(odd) = servers.iter().find(|s| s.parse::<IpAddr>().is_err()) {
            return Err(Error::argument(format!("argument `servers` holds no address: {odd:?}"))
                .with("argument", "servers"));
        }
    }
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let path = ["nodes", &node, "dns"];
    let now = ctx.fresh(&path, Params::new()).await?;
    let before = dns_of(&now);
    // The call replaces all of it: what is not named goes with it again.
    let search = args.search.or_else(|| loose::text(&now, "search")).ok_or_else(|| {
        Error::argument("the node has no search domain: give `search`").with("argument", "search")
    })?;
    let servers = args
        .servers
        .unwrap_or_else(|| SERVERS.iter().filter_map(|k| loose::text(&now, k)).collect());
    if before == json!({"search": search, "servers": servers}) {
        return Ok(unchanged(before));
    }
    let mut params = Params::new().with("search", &search);
    for (name, server) in SERVERS.iter().zip(&servers) {
        params = params.with(name, server);
    }
    let done = ctx.submit(operation(Method::Put, &path, params)?, &args.asked).await?;
    let after =
        async { ctx.fresh(&path, Params::new()).await.map_or(Value::Null, |now| dns_of(&now)) };
    Ok(told(done, before, after, format!("DNS of {node}")).await)
}

/// Arguments of `pve_hosts_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Hosts {
    node: Option<NodeName>,
    data: String,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_hosts_set`
pub async fn hosts(ctx: Ctx<'_>, args: Hosts) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    for (n, line) in args.data.lines().enumerate() {
        let text = line.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        let Some(address) = words.next() else { continue };
        if address.parse::<IpAddr>().is_err() || words.next().is_none() {
            return Err(Error::argument(format!(
                "line {} of `data` is no address with a name: {line:?}",
                n + 1
            ))
            .hint("a line is an address and its names, as `192.0.2.7 pve1.example.org pve1`")
            .with("argument", "data"));
        }
    }
    let path = ["nodes", &node, "hosts"];
    let now = ctx.fresh(&path, Params::new()).await?;
    let old = loose::text(&now, "data").unwrap_or_default();
    let (removed, added) = difference(&old, &args.data);
    if removed.is_empty() && added.is_empty() {
        return Ok(unchanged(json!({"lines": old.lines().count()})));
    }
    let what = format!("/etc/hosts of {node}");
    let digest = same_digest(args.digest, loose::text(&now, "digest"), &what, "pve_node_settings")?;
    let own = |lines: &[String]| lines.iter().any(|l| names(l).any(|n| n == node));
    let moved = own(&removed) || own(&added);
    let data = if args.data.ends_with('\n') { args.data } else { format!("{}\n", args.data) };
    let params = Params::new().with("data", data).with_some("digest", digest);
    let done = ctx.submit(operation(Method::Post, &path, params)?, &args.asked).await?;
    let answer =
        told(done, json!({"removed": removed}), async { json!({"added": added}) }, what).await;
    let answer = if moved {
        answer.with(
            "may_cut",
            vec![format!("the line of {node} itself changes: the cluster finds the node by it")],
        )
    } else {
        answer
    };
    Ok(answer
        .with("changes", json!({"removed": removed, "added": added}))
        .untrusted(&["before", "after", "changes"]))
}

/// The names on a line of a hosts file.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split_whitespace().skip(1)
}

/// Lines that go and lines that come; blanks at the end say nothing.
fn difference(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
    let lines =
        |text: &str| -> Vec<String> { text.lines().map(|l| l.trim_end().to_owned()).collect() };
    let (old, new) = (lines(old), lines(new));
    let without = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|l| !l.is_empty() && !b.contains(l)).cloned().collect()
    };
    (without(&old, &new), without(&new, &old))
}

/// Arguments of `pve_time_zone_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TimeZone {
    node: Option<NodeName>,
    /// As `Europe/Berlin`.
    time_zone: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_time_zone_set`
pub async fn time_zone(ctx: Ctx<'_>, args: TimeZone) -> Result<Answer> {
    let zone = args.time_zone.trim();
    let form = !zone.is_empty()
        && zone
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+'));
    if !form {
        return Err(Error::argument(format!("argument `time_zone` cannot be {zone:?}"))
            .hint("a name of the time zone database, as Europe/Berlin or UTC")
            .with("argument", "time_zone"));
    }
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let path = ["nodes", &node, "time"];
    let now = ctx.fresh(&path, Params::new()).await?;
    let before = members(&now, &["time", "localtime"]);
    if loose::str(&now, "timezone") == Some(zone) {
        return Ok(unchanged(before));
    }
    let params = Params::new().with("timezone", zone);
    let done = ctx.submit(operation(Method::Put, &path, params)?, &args.asked).await?;
    let after = async {
        let now = ctx.fresh(&path, Params::new()).await;
        now.map_or(Value::Null, |now| members(&now, &["time", "localtime"]))
    };
    Ok(told(done, before, after, format!("time zone of {node}")).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_say_something_else_are_changes() {
        let old = "127.0.0.1 localhost\n10.0.0.1 pve1\n\n";
        let (removed, added) = difference(old, "127.0.0.1 localhost   \n10.0.0.2 pve1");
        assert_eq!(removed, ["10.0.0.1 pve1"]);
        assert_eq!(added, ["10.0.0.2 pve1"]);
        assert_eq!(difference(old, old), (vec![], vec![]));
        assert_eq!(
            names("10.0.0.1 pve1.example.org pve1 # old").collect::<Vec<_>>(),
            ["pve1.example.org", "pve1"]
        );
    }
}
