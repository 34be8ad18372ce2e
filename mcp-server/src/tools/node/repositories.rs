//! APT repositories of a node, in both file formats, and what is odd about them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Code, Error, Result,
    pve::{NodeName, Params, loose},
    render::{Answer, Page, Table},
    safety::Method,
    tools::{
        Ctx,
        across::same_digest,
        args::MaybeNode,
        change::Asked,
        outcome::{operation, told},
        validate,
    },
};

/// One repository of a file.
struct Repository<'v> {
    path: &'v str,
    index: usize,
    value: &'v Value,
}

impl Repository<'_> {
    fn words(&self, key: &str) -> Vec<String> {
        let list = self.value.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    }

    /// The places, without a login that may stand in them.
    fn uris(&self) -> Vec<String> {
        self.words("URIs").iter().map(|uri| without_login(uri)).collect()
    }

    fn enabled(&self) -> bool {
        // What does not say so is on.
        self.value.get("Enabled").is_none() || loose::flag(self.value, "Enabled")
    }

    fn is_enterprise(&self) -> bool {
        self.uris().iter().any(|u| u.contains("enterprise.proxmox.com"))
    }

    fn is_proxmox(&self) -> bool {
        self.words("Components").iter().any(|c| c.starts_with("pve"))
    }

    fn to_row(&self) -> Vec<Value> {
        vec![
            self.path.into(),
            self.index.into(),
            self.enabled().into(),
            self.words("Types").join(" ").into(),
            self.uris().join(" ").into(),
            self.words("Suites").join(" ").into(),
            self.words("Components").join(" ").into(),
            loose::text(self.value, "FileType").into(),
            loose::text(self.value, "Comment").map(|c| c.trim().to_owned()).into(),
        ]
    }
}

const COLUMNS: [&str; 9] =
    ["path", "index", "enabled", "types", "uris", "suites", "components", "format", "comment"];

fn without_login(uri: &str) -> String {
    match uri.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => uri.to_owned(),
    }
}

fn repositories(all: &Value) -> Vec<Repository<'_>> {
    let mut found = Vec::new();
    for file in loose::rows(all.get("files").unwrap_or(&Value::Null)) {
        let Some(path) = loose::str(file, "path") else { continue };
        let entries = loose::rows(file.get("repositories").unwrap_or(&Value::Null));
        found.extend(entries.iter().enumerate().map(|(index, value)| Repository {
            path,
            index,
            value,
        }));
    }
    found
}

/// `bookworm` of `bookworm-updates` and of `bookworm/updates`.
fn release(suite: &str) -> &str {
    suite.split(['-', '/']).next().unwrap_or(suite)
}

/// What an administrator should know of these repositories.
fn remarks(all: &Value, subscription: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for error in loose::rows(all.get("errors").unwrap_or(&Value::Null)) {
        found.push(format!(
            "{} cannot be read: {}",
            loose::text(error, "path").unwrap_or_default(),
            loose::text(error, "error").unwrap_or_default()
        ));
    }
    let entries = repositories(all);
    let on: Vec<&Repository<'_>> = entries.iter().filter(|r| r.enabled()).collect();
    let active = subscription.is_some_and(|s| loose::str(s, "status") == Some("active"));
    if on.iter().any(|r| r.is_enterprise()) && subscription.is_some() && !active {
        found.push(
            "the enterprise repository is on and there is no active subscription: refreshing fails"
                .to_owned(),
        );
    }
    if !on.iter().any(|r| r.is_proxmox()) {
        found.push(
            "no Proxmox VE repository is on: the node gets no updates of Proxmox VE".to_owned(),
        );
    }
    let component = |name: &str| on.iter().any(|r| r.words("Components").iter().any(|c| c == name));
    if component("pve-no-subscription") {
        found.push("the no-subscription repository is on: meant for testing".to_owned());
    }
    if component("pvetest") || component("pve-test") {
        found.push("the test repository is on: not for machines that matter".to_owned());
    }
    let mut releases: Vec<String> = Vec::new();
    for suite in on.iter().flat_map(|r| r.words("Suites")) {
        let name = release(&suite).to_owned();
        if !suite.ends_with('/') && !releases.contains(&name) {
            releases.push(name);
        }
    }
    if releases.len() > 1 {
        found.push(format!("suites of different releases are mixed: {}", releases.join(", ")));
    }
    for info in loose::rows(all.get("infos").unwrap_or(&Value::Null)) {
        if loose::str(info, "kind") == Some("warning")
            && let Some(message) = loose::text(info, "message")
        {
            let path = loose::text(info, "path").unwrap_or_default();
            found.push(format!("{path}: {message}"));
        }
    }
    found
}

/// The standard repositories: on, off (there, but disabled), or absent.
fn standard(all: &Value) -> Vec<Value> {
    loose::rows(all.get("standard-repos").unwrap_or(&Value::Null))
        .iter()
        .map(|r| {
            let state = match (loose::some(r, "status"), loose::flag(r, "status")) {
                (None, _) => "absent",
                (_, true) => "on",
                (_, false) => "off",
            };
            json!({"handle": loose::text(r, "handle"), "name": loose::text(r, "name"), "state": state})
        })
        .collect()
}

/// `pve_apt_repositories`
pub async fn list(ctx: Ctx<'_>, args: MaybeNode) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let all = ["nodes", &node, "apt", "repositories"];
    let subscription = ["nodes", &node, "subscription"];
    let (all, subscription) = futures::join!(ctx.get(&all), ctx.get(&subscription));
    let (all, subscription) = (all?, subscription.ok());
    let remarks = remarks(&all, subscription.as_deref());
    let table = Table::new(COLUMNS).fill(
        repositories(&all).into_iter(),
        Page { limit: usize::MAX, ..Page::new(None, None) },
        |r| r.to_row(),
    );
    Ok(table
        .into_answer(&format!("repositories of {node}, {} remarks", remarks.len()))
        .with("standard", standard(&all))
        .with("remarks", remarks)
        .with("subscription", subscription.and_then(|s| loose::text(&s, "status")))
        .with("digest", loose::text(&all, "digest"))
        .untrusted(&["rows", "remarks"]))
}

/// Arguments of `pve_apt_repository_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    node: Option<NodeName>,
    /// To add, as `no-subscription`.
    handle: Option<String>,
    /// To switch, with `index`.
    path: Option<String>,
    #[schemars(range(min = 0))]
    index: Option<usize>,
    enabled: Option<bool>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_apt_repository_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let node = ctx.node_or_only(args.node.as_ref()).await?;
    let segments = ["nodes", &node, "apt", "repositories"];
    let all = ctx.fresh(&segments, Params::new()).await?;
    let what = format!("the repositories of {node}");
    let digest =
        same_digest(args.digest, loose::text(&all, "digest"), &what, "pve_apt_repositories")?;
    match (args.handle, args.path, args.index, args.enabled) {
        (Some(handle), None, None, None | Some(true)) => {
            let known = standard(&all);
            let Some(now) = known.iter().find(|r| loose::str(r, "handle") == Some(&handle)) else {
                let names: Vec<&str> = known.iter().filter_map(|r| loose::str(r, "handle")).collect();
                let error = Error::new(Code::NotFound, format!("there is no standard repository {handle:?}"));
                return Err(match validate::nearest(&handle, names.iter().copied()) {
                    Some(near) => error.hint(format!("did you mean {near}?")),
                    None => error.hint(format!("there are: {}", names.join(", "))),
                });
            };
            if loose::str(now, "state") == Some("on") {
                return Ok(Answer::new(json!({"status": "no_change", "before": now}))
                    .heading(format!("{handle} is on already")));
            }
            let params = Params::new().with("handle", &handle).with_some("digest", digest);
            let done = ctx.submit(operation(Method::Put, &segments, params)?, &args.asked).await?;
            let after = async {
                let all = ctx.fresh(&segments, Params::new()).await;
                all.map_or(Value::Null, |all| {
                    standard(&all).into_iter().find(|r| loose::str(r, "handle") == Some(&handle)).unwrap_or(Value::Null)
                })
            };
            Ok(told(done, now.clone(), after, format!("repository {handle} of {node}")).await)
        }
        (None, Some(path), Some(index), Some(enabled)) => {
            let entries = repositories(&all);
            let Some(now) = entries.iter().find(|r| r.path == path && r.index == index) else {
                let mut files: Vec<&str> = entries.iter().map(|r| r.path).collect();
                files.dedup();
                return Err(Error::new(Code::NotFound, format!("there is no repository {index} in {path:?}"))
                    .hint(format!("files: {}", files.join(", "))));
            };
            let before = row(now);
            if now.enabled() == enabled {
                return Ok(Answer::new(json!({"status": "no_change", "before": before}))
                    .heading(format!("it is {} already", if enabled { "on" } else { "off" })));
            }
            let params = Params::new()
                .with("path", &path)
                .with("index", index)
                .with_bool("enabled", enabled)
                .with_some("digest", digest);
            let done = ctx.submit(operation(Method::Post, &segments, params)?, &args.asked).await?;
            let after = async {
                let all = ctx.fresh(&segments, Params::new()).await;
                all.map_or(Value::Null, |all| {
                    repositories(&all).iter().find(|r| r.path == path && r.index == index).map_or(Value::Null, row)
                })
            };
            Ok(told(done, before, after, format!("repository {index} in {path} of {node}")).await)
        }
        _ => Err(Error::argument("give `handle` to add a standard repository, or `path`, `index` and `enabled` to switch one")
            .hint("pve_apt_repositories lists both")),
    }
}

fn row(repository: &Repository<'_>) -> Value {
    COLUMNS
        .iter()
        .map(|c| (*c).to_owned())
        .zip(repository.to_row())
        .filter(|(_, v)| !v.is_null())
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(uri: &str, suite: &str, component: &str, enabled: Value) -> Value {
        json!({"Types": ["deb"], "URIs": [uri], "Suites": [suite], "Components": [component], "Enabled": enabled, "FileType": "sources"})
    }

    fn all(list: Vec<Value>) -> Value {
        json!({"files": [{"path": "/etc/apt/sources.list.d/a.sources", "repositories": list}], "errors": [], "infos": []})
    }

    #[test]
    fn what_is_odd_is_told() {
        let enterprise = |on: Value| {
            repository("https://enterprise.proxmox.com/debian/pve", "trixie", "pve-enterprise", on)
        };
        let debian =
            |suite: &str| repository("http://deb.debian.org/debian", suite, "main", json!(1));
        let free = repository(
            "http://download.proxmox.com/debian/pve",
            "trixie",
            "pve-no-subscription",
            json!(true),
        );
        let none = json!({"status": "notfound"});
        let paid = json!({"status": "active"});
        for (name, list, subscription, words) in [
            ("no subscription", vec![enterprise(json!(1))], &none, vec!["no active subscription"]),
            ("all well", vec![enterprise(json!(1)), debian("trixie-updates")], &paid, vec![]),
            (
                "off",
                vec![enterprise(json!(0)), debian("trixie")],
                &paid,
                vec!["no Proxmox VE repository"],
            ),
            (
                "mixed",
                vec![enterprise(json!(1)), debian("bookworm-security")],
                &paid,
                vec!["mixed: trixie, bookworm"],
            ),
            (
                "off ones do not mix",
                vec![enterprise(json!(1)), repository("http://x", "sid", "main", json!(0))],
                &paid,
                vec![],
            ),
            ("free", vec![free], &none, vec!["meant for testing"]),
        ] {
            let found = remarks(&all(list), Some(subscription));
            assert_eq!(found.len(), words.len(), "{name}: {found:?}");
            for word in words {
                assert!(found.iter().any(|f| f.contains(word)), "{name}: {found:?}");
            }
        }
        let broken = json!({"files": [], "errors": [{"path": "/etc/apt/sources.list", "error": "line 3: odd"}]});
        assert!(remarks(&broken, None)[0].contains("line 3: odd"));
    }

    #[test]
    fn logins_are_left_out() {
        for (given, want) in [
            ("https://user:pass@apt.example.org/debian", "https://apt.example.org/debian"),
            ("https://apt.example.org/a@b", "https://apt.example.org/a@b"),
            ("file:/mnt/repo", "file:/mnt/repo"),
        ] {
            assert_eq!(without_login(given), want);
        }
    }
}
