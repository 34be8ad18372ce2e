//! Upgrades of the node's packages, through apt-get alone.

mod locks;
mod preflight;
mod refresh;
mod services;
mod simulation;
mod sources;
mod space;

pub(crate) mod record;
pub(crate) mod status;
pub(crate) mod unit;

use std::path::Path;

use crate::client::Client;
use crate::kernels;
use crate::node;
use crate::protocol::{Code, Plan, Refused};

pub(crate) use locks::wait_until_free;
pub(crate) use refresh::refresh;

/// Where apt keeps the package lists.
const LISTS: &str = "/var/lib/apt/lists";

/// Works out what an upgrade would do, with the system's package lists or a
/// copy of them, and what speaks against it.
///
/// # Errors
/// `preflight`: the sources are those of another or of several releases, or
/// apt-get cannot find a way.
pub(crate) fn plan(lists: Option<&Path>, client: &mut Client) -> Result<Plan, Refused> {
    sources::check()?;
    let simulation = simulation::run(lists, client)?;
    let problems = preflight::problems(&simulation, client)?;
    let coming: Vec<String> = simulation
        .install
        .iter()
        .chain(&simulation.upgrade)
        .filter_map(|change| kernels::release_of_package(&change.name))
        .map(str::to_owned)
        .collect();
    let kernel = kernels::change(&coming)
        .map_err(|error| Refused::new(Code::Internal, format!("kernels: {error}")))?;
    Ok(Plan {
        plan: simulation.digest(),
        reboot_needed: kernels::reboot_needed(&kernel),
        proxmox_ve_stays: preflight::proxmox_ve_stays(&simulation),
        lists_age_s: refresh::lists_age_s(),
        kernel,
        problems,
        services: services::of(simulation.upgrade.iter().chain(&simulation.downgrade)),
        install: simulation.install,
        upgrade: simulation.upgrade,
        downgrade: simulation.downgrade,
        remove: simulation.remove,
        kept_back: simulation.kept_back,
        download_bytes: simulation.download_bytes,
        disk_bytes: simulation.disk_bytes,
    })
}

/// Checks that a plan is still what was agreed to, and that nothing speaks
/// against it.
///
/// # Errors
/// `plan_changed`, `preflight`.
pub(crate) fn agree(plan: &Plan, agreed: &str) -> Result<(), Refused> {
    if plan.plan != agreed {
        return Err(Refused::new(
            Code::PlanChanged,
            "what would be upgraded is no longer what was agreed to",
        )
        .hint("look at it again with upgrade-simulate"));
    }
    let Some(first) = plan.problems.first() else { return Ok(()) };
    let all: Vec<&str> = plan.problems.iter().map(|problem| problem.message.as_str()).collect();
    Err(Refused::new(Code::Preflight, all.join("; ")).hint(first.hint.clone()))
}

/// Options of every run of apt-get, in front of its command.
fn options(lists: Option<&Path>) -> Vec<String> {
    let mut options: Vec<String> = vec!["-q".into()];
    let mut set = |option: String| options.extend(["-o".to_owned(), option]);
    set("APT::Get::AutomaticRemove=false".into());
    set("APT::Get::AllowUnauthenticated=false".into());
    set("APT::Get::Show-User-Simulation-Note=false".into());
    if let Some(lists) = lists {
        set(format!("Dir::State::lists={}", lists.display()));
        // No index of other lists is taken for one of these.
        set("Dir::Cache::pkgcache=".into());
        set("Dir::Cache::srcpkgcache=".into());
    }
    options
}

/// Milliseconds do not matter here: seconds since the file's last change.
fn age_s(path: &str) -> Option<u64> {
    let changed = std::fs::metadata(node::at(path)).ok()?.modified().ok()?;
    changed.elapsed().ok().map(|age| age.as_secs())
}
