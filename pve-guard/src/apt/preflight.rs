//! What speaks against an upgrade.

use std::fs;

use super::simulation::Simulation;
use super::{refresh, space};
use crate::client::Client;
use crate::debian::{self, Package};
use crate::kernels;
use crate::node;
use crate::protocol::{Code, Problem, Refused};

/// Packages without which a node is none, or is not reached any more. Those
/// that Debian marks as essential or protected count too.
const VITAL: [&str; 22] = [
    "apt",
    "corosync",
    "dpkg",
    "ifupdown2",
    "libpve-access-control",
    "libpve-common-perl",
    "libpve-guest-common-perl",
    "libpve-http-server-perl",
    "libpve-storage-perl",
    "lxc-pve",
    "openssh-server",
    "proxmox-default-kernel",
    "proxmox-ve",
    "pve-cluster",
    "pve-container",
    "pve-guard",
    "pve-ha-manager",
    "pve-manager",
    "pve-qemu-kvm",
    "qemu-server",
    "sudo",
    "systemd-sysv",
];
/// Room for what dpkg unpacks before it puts it in place.
const MARGIN: u64 = 256 * 1024 * 1024;
/// dpkg's journal of a run that was cut off.
const DPKG_UPDATES: &str = "/var/lib/dpkg/updates";

/// Everything that speaks against this transaction; empty when nothing does.
pub(super) fn problems(
    simulation: &Simulation,
    client: &mut Client,
) -> Result<Vec<Problem>, Refused> {
    let internal = |error: std::io::Error| Refused::new(Code::Internal, error.to_string());
    let packages = debian::read_status().map_err(internal)?;
    let mut problems = Vec::new();
    problems.extend(refresh::standing_fault());
    problems.extend(half_done(&packages));
    problems.extend(vital_removed(simulation, &packages, &kept_kernels(client)));
    problems.extend(downgraded(simulation));
    problems.extend(space::problems(wanted_bytes(simulation)).map_err(internal)?);
    if simulation.is_empty() {
        problems.push(Problem {
            kind: "nothing".into(),
            message: "there is nothing to upgrade".into(),
            hint: "the package lists may be old; fetch them first".into(),
        });
    }
    Ok(problems)
}

/// Whether `proxmox-ve` is installed and not among what goes.
pub(super) fn proxmox_ve_stays(simulation: &Simulation) -> bool {
    let installed = debian::installed_version("proxmox-ve").ok().flatten().is_some();
    installed && !simulation.remove.iter().any(|gone| gone.name == "proxmox-ve")
}

fn half_done(packages: &[Package]) -> Option<Problem> {
    let mut names: Vec<&str> = packages
        .iter()
        .filter(|package| package.is_half_done())
        .map(|package| package.name.as_str())
        .collect();
    let cut_off = fs::read_dir(node::at(DPKG_UPDATES)).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())
            })
        })
    });
    if cut_off {
        names.push("a run of dpkg that was cut off");
    }
    (!names.is_empty()).then(|| Problem {
        kind: "half_configured".into(),
        message: format!("not wholly installed: {}", names.join(", ")),
        hint: "on the node: dpkg --configure -a".into(),
    })
}

/// Kernels that must stay: the running one, those pinned, and the newest two.
fn kept_kernels(client: &mut Client) -> Vec<String> {
    let mut kept: Vec<String> = node::kernel().into_iter().collect();
    // A node without the boot tool has no pins.
    if let Ok(pins) = kernels::pins(client) {
        kept.extend(pins.pinned.into_iter().chain(pins.next_boot));
    }
    let installed = kernels::installed().unwrap_or_default();
    kept.extend(installed.into_iter().rev().filter(|r| r.ends_with("-pve")).take(2));
    kept
}

fn vital_removed(
    simulation: &Simulation,
    packages: &[Package],
    kept_kernels: &[String],
) -> Option<Problem> {
    let essential = |name: &str| packages.iter().any(|p| p.name == name && p.essential);
    let kernel = |name: &str| {
        kernels::release_of_package(name).is_some_and(|r| kept_kernels.iter().any(|kept| kept == r))
    };
    let vital: Vec<&str> = simulation
        .remove
        .iter()
        .map(|gone| gone.name.split(':').next().unwrap_or_default())
        .filter(|name| VITAL.contains(name) || essential(name) || kernel(name))
        .collect();
    (!vital.is_empty()).then(|| {
        let all: Vec<&str> = simulation.remove.iter().map(|gone| gone.name.as_str()).collect();
        Problem {
            kind: "vital_removed".into(),
            message: format!("{} would be removed (of: {})", vital.join(", "), all.join(", ")),
            hint: "a repository is missing or wrong; compare the package sources with Proxmox's \
                   documentation"
                .into(),
        }
    })
}

fn downgraded(simulation: &Simulation) -> Option<Problem> {
    let all: Vec<String> = simulation
        .downgrade
        .iter()
        .map(|c| format!("{} {} -> {}", c.name, c.from.as_deref().unwrap_or_default(), c.to))
        .collect();
    (!all.is_empty()).then(|| Problem {
        kind: "downgrade".into(),
        message: format!("an older version would come: {}", all.join(", ")),
        hint: "look at the pins in /etc/apt/preferences.d".into(),
    })
}

fn wanted_bytes(simulation: &Simulation) -> u64 {
    let disk = u64::try_from(simulation.disk_bytes.unwrap_or(0)).unwrap_or(0);
    simulation.download_bytes.unwrap_or(0).saturating_add(disk).saturating_add(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Removal;

    #[test]
    fn vital_packages_and_kernels_in_use_stay() {
        let packages = [Package {
            name: "bash".into(),
            status: "install ok installed".into(),
            essential: true,
            ..Package::default()
        }];
        let kept = ["6.8.12-9-pve".to_owned()];
        for (name, refused) in [
            ("proxmox-ve", true),
            ("pve-manager", true),
            ("bash", true),
            ("bash:amd64", true),
            ("proxmox-kernel-6.8.12-9-pve-signed", true),
            ("proxmox-kernel-6.8.12-8-pve-signed", false),
            ("libold1", false),
        ] {
            let simulation = Simulation {
                remove: vec![Removal { name: name.into(), version: "1".into() }],
                ..Simulation::default()
            };
            let problem = vital_removed(&simulation, &packages, &kept);
            assert_eq!(problem.is_some(), refused, "{name}");
        }
    }
}
