//! The whole way to the guard, step by step, for `check`.

use pve_guard::protocol::{Hello, VERSION};

use super::{Guard, Step, key_file::PrivateKey, target};
use crate::{Error, config::Config, pve::NodeName};

/// How one step of the way went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckStep {
    /// The step, for example `host key`; with several nodes the node's name
    /// stands before it.
    pub name: String,
    /// Whether it is well.
    pub ok: bool,
    /// What was found, or what is wrong.
    pub detail: String,
    /// What to do; empty when it is well.
    pub hint: String,
}

/// Goes the way to every node's guard up to `hello`. Steps behind the one that
/// fails are left out.
pub async fn check(config: &Config) -> Vec<CheckStep> {
    let key = PrivateKey::read(&config.ssh.key);
    let detail = format!("{} is private", config.ssh.key.display());
    let mut steps = vec![step("ssh key", key.map(|_| detail))];
    if steps.iter().any(|step| !step.ok) {
        return steps;
    }
    let guard = Guard::new(config);
    for node in nodes(config) {
        let prefix = node.as_ref().map(|node| format!("{node} ")).unwrap_or_default();
        for (at, found) in way(config, &guard, node.as_ref()).await {
            steps.push(step(&format!("{prefix}{}", at.as_str()), found));
        }
    }
    steps
}

/// The nodes that have an SSH address of their own, and the API's first host
/// when none of them is it.
fn nodes(config: &Config) -> Vec<Option<NodeName>> {
    let named = config.ssh.nodes.iter().map(|(node, _)| Some(node.clone()));
    let main = target::main_address(config).filter(|_| config.ssh.host_key.is_some());
    let apart = main.filter(|main| !config.ssh.nodes.iter().any(|(_, address)| address == main));
    apart.map(|_| None).into_iter().chain(named).collect()
}

type Found = Result<String, Error>;

async fn way(config: &Config, guard: &Guard, node: Option<&NodeName>) -> Vec<(Step, Found)> {
    let target = match target::of_node(config, node) {
        Ok(target) => target,
        Err(error) => return vec![(Step::HostKey, Err(error))],
    };
    let (failed, hello) = match guard.hello(node).await {
        Ok(hello) => (None, Some(hello)),
        Err(error) => (Some((error.ssh_step().unwrap_or(Step::Guard), error)), None),
    };
    let well = |at: Step| match at {
        Step::Reach => target.place(),
        Step::KeyExchange => "SSH answers".to_owned(),
        Step::HostKey => {
            let shown: Vec<_> = target
                .pins
                .keys
                .iter()
                .map(|k| format!("{} {}", k.kind(), k.fingerprint()))
                .collect();
            format!("pinned: {}", shown.join(" or "))
        }
        Step::Login => format!("as {} with {}", target.user, target.key.display()),
        Step::ForcedCommand => "the key runs the guard and nothing else".to_owned(),
        Step::Sudo => "runs the guard as root".to_owned(),
        Step::Guard | Step::Policy | Step::Program => "answers".to_owned(),
    };
    let before = |at: &Step| failed.as_ref().is_none_or(|(step, _)| at < step);
    let mut steps: Vec<(Step, Found)> = Step::ALL
        .into_iter()
        .filter(|at| *at < Step::Guard || (*at == Step::Guard && hello.is_none()))
        .filter(before)
        .map(|at| (at, Ok(well(at))))
        .collect();
    if let Some(hello) = hello {
        steps.extend(answered(&hello));
    }
    steps.extend(failed.map(|(step, error)| (step, Err(error))));
    steps
}

/// What `hello` says about the last three steps.
fn answered(hello: &Hello) -> Vec<(Step, Found)> {
    let Hello { version, node, verbs, kernel, .. } = hello;
    let policy = if verbs.is_empty() {
        Err(Error::argument("it allows no verb")
            .hint("look into /etc/pve-guard/policy.toml on the node: pve-guard policy check"))
    } else {
        Ok(format!("allows {}", verbs.join(", ")))
    };
    let program = match &hello.pve_manager {
        Some(manager) => Ok(format!("pve-manager {manager}, kernel {kernel}")),
        None => Err(Error::argument("pve-manager is not installed there")
            .hint("the guard belongs on a Proxmox VE node")),
    };
    vec![
        (Step::Guard, Ok(format!("pve-guard {version} on {node}, protocol {VERSION}"))),
        (Step::Policy, policy),
        (Step::Program, program),
    ]
}

fn step(name: &str, found: Found) -> CheckStep {
    let (ok, detail, hint) = match found {
        Ok(detail) => (true, detail, String::new()),
        Err(error) => (false, error.message, error.hint),
    };
    CheckStep { name: name.to_owned(), ok, detail, hint }
}
