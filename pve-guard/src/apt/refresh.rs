//! Fetching the package lists, and what stands in the way of that.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{LISTS, age_s, sources};
use crate::client::Client;
use crate::kernels::last_line;
use crate::node::{self, program};
use crate::process::{Ended, Job};
use crate::protocol::{Code, Problem, Refused};

const TIMEOUT_S: u64 = 600;
/// What the last attempt failed for, if it has failed.
const FAULT: &str = "refresh-fault.json";

/// Why lists could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Fault {
    /// Unix seconds.
    at: u64,
    message: String,
    hint: String,
}

/// Runs `apt-get update`. Any list that cannot be fetched is a fault, and so is
/// a repository that has become another release.
///
/// # Errors
/// `preflight`.
pub(crate) fn refresh(client: &mut Client) -> Result<(), Refused> {
    let mut job = Job::kept(program::APT_GET, &[], TIMEOUT_S);
    job.args = super::options(None);
    for option in ["APT::Update::Error-Mode=any", "Acquire::AllowReleaseInfoChange=false"] {
        job.args.extend(["-o".to_owned(), option.to_owned()]);
    }
    job.args.push("update".into());
    let before = releases();
    let ended = job.run(client)?;
    let path = node::at(node::STATE_DIR).join(FAULT);
    let fault = if ended.well() { changed(&before, &releases()) } else { Some(explain(&ended)) };
    let Some((message, hint)) = fault else {
        let _ = fs::remove_file(path);
        return Ok(());
    };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let fault = Fault { at, message: message.clone(), hint: hint.clone() };
    if node::private_dir(node::STATE_DIR).is_ok()
        && let Ok(text) = serde_json::to_string(&fault)
    {
        let _ = fs::write(path, text);
    }
    Err(Refused::new(Code::Preflight, message).hint(hint))
}

/// What the last attempt failed for, unless somebody has fetched lists or
/// changed the sources since.
pub(super) fn standing_fault() -> Option<Problem> {
    let text = fs::read_to_string(node::at(node::STATE_DIR).join(FAULT)).ok()?;
    let fault: Fault = serde_json::from_str(&text).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let age = now.saturating_sub(fault.at);
    let newer = |path: &str| age_s(path).is_some_and(|changed| changed + 1 < age);
    if newer(LISTS) || newer("/etc/apt/sources.list") || newer("/etc/apt/sources.list.d") {
        return None;
    }
    Some(Problem { kind: "repository".into(), message: fault.message, hint: fault.hint })
}

/// What each fetched repository calls itself: suite and code name. apt itself
/// lets a suite change without a word as long as the code name stays.
fn releases() -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(node::at(LISTS)) else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let place =
                name.strip_suffix("_InRelease").or_else(|| name.strip_suffix("_Release"))?;
            let text = fs::read_to_string(entry.path()).ok()?;
            let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
            let (suite, codename) = (field("Suite: "), field("Codename: "));
            let names: Vec<&str> = suite.into_iter().chain(codename).map(str::trim).collect();
            Some((place.to_owned(), names.join("/")))
        })
        .collect()
}

fn changed(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let (place, old, new) = before.iter().find_map(|(place, old)| {
        after.get(place).filter(|new| *new != old).map(|new| (place, old, new))
    })?;
    Some((
        format!("the repository {place} changed its 'Suite' value from '{old}' to '{new}'"),
        "if that is meant to be so, fetch the lists again; another release of Debian or Proxmox \
         is gone to by hand"
            .into(),
    ))
}

/// Seconds since package lists were fetched.
pub(super) fn lists_age_s() -> Option<u64> {
    let places =
        [LISTS, "/var/lib/apt/lists/partial", "/var/lib/apt/periodic/update-success-stamp"];
    places.iter().filter_map(|path| age_s(path)).min()
}

fn explain(ended: &Ended) -> (String, String) {
    let said = format!("{}\n{}", ended.stdout.text(), ended.stderr.text());
    let how = ended.how();
    if let Some(uri) = unauthorized(&said) {
        let file = sources::read().ok().and_then(|all| file_of(&all, &uri));
        let file = file.map_or_else(|| "/etc/apt".to_owned(), |file| format!("({file})"));
        return (
            format!(
                "apt-get update {how}: {uri} {file} answered 401 Unauthorized: it is for nodes with a subscription"
            ),
            "switch that entry off (Enabled: no, or a # before the line) and use the \
             no-subscription repository, or give the node its subscription key"
                .into(),
        );
    }
    if let Some(line) = said.lines().find(|line| line.contains("changed its '")) {
        return (
            format!("apt-get update {how}: {}", line.trim()),
            "a repository has become another release; going there is done by hand".into(),
        );
    }
    let error = said.lines().find(|line| line.starts_with("E: ")).map(str::to_owned);
    (
        format!("apt-get update {how}: {}", error.unwrap_or_else(|| last_line(ended))),
        "run apt-get update on the node to see all of it".into(),
    )
}

/// The address that answered 401, from `E: Failed to fetch URI  401  Unauthorized`
/// or from the two lines `Err:1 URI suite InRelease`, `  401  Unauthorized`.
fn unauthorized(said: &str) -> Option<String> {
    let is_401 = |line: &str| line.contains("401") && line.contains("Unauthorized");
    let mut before = "";
    for line in said.lines() {
        if is_401(line) {
            let place = [line, before].into_iter().find(|line| line.contains("://"))?;
            let word = place.split_ascii_whitespace().find(|word| word.contains("://"))?;
            return Some(word.to_owned());
        }
        before = line;
    }
    None
}

fn file_of(all: &[sources::Source], uri: &str) -> Option<String> {
    let source = all.iter().find(|source| uri.starts_with(source.uri.trim_end_matches('/')))?;
    Some(source.file.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_suite_is_seen_and_a_new_repository_is_none() {
        let map = |rows: &[(&str, &str)]| {
            rows.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let before = map(&[("a", "stable/trixie"), ("gone", "x")]);
        assert_eq!(changed(&before, &map(&[("a", "stable/trixie"), ("new", "y")])), None);
        let (message, _) = changed(&before, &map(&[("a", "oldstable/trixie")])).unwrap();
        assert!(message.contains("'stable/trixie' to 'oldstable/trixie'"), "{message}");
    }

    #[test]
    fn the_repository_without_subscription_is_named() {
        let one = "E: Failed to fetch https://enterprise.proxmox.com/debian/pve/dists/trixie/InRelease  401  Unauthorized [IP: 192.0.2.1 443]\n";
        let two = "Err:4 https://enterprise.proxmox.com/debian/pve trixie InRelease\n  401  Unauthorized [IP: 192.0.2.1 443]\n";
        for said in [one, two] {
            let uri = unauthorized(said).unwrap();
            assert!(uri.starts_with("https://enterprise.proxmox.com/debian/pve"), "{uri}");
        }
        assert_eq!(unauthorized("E: Failed to fetch http://x  404  Not Found\n"), None);
    }
}
