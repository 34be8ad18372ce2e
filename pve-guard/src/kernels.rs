//! The kernels of this node and which of them boots.

use std::cmp::Ordering;
use std::fs;
use std::io;

use crate::client::Client;
use crate::debian;
use crate::node::{self, program};
use crate::process::{Ended, Job};
use crate::protocol::{Code, KernelChange, Kernels, Refused};

/// Where proxmox-boot-tool keeps the list of EFI partitions that it fills. If
/// there is none, the node boots by grub from its own /boot.
const ESP_LIST: &str = "/etc/kernel/proxmox-boot-uuids";
const GRUB_PIN: &str = "/etc/default/grub.d/proxmox-kernel-pin.cfg";
const GRUB_MENU: &str = "/boot/grub/grub.cfg";
/// update-grub looks at every disk.
const TOOL_TIMEOUT_S: u64 = 300;

/// What is pinned, as proxmox-boot-tool says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    pub(crate) pinned: Option<String>,
    pub(crate) next_boot: Option<String>,
}

impl Pins {
    /// What the next boot takes, if it is pinned: the one-time pin wins.
    pub(crate) fn effective(&self) -> Option<&String> {
        self.next_boot.as_ref().or(self.pinned.as_ref())
    }
}

/// Releases of the installed kernels, oldest first.
pub(crate) fn installed() -> io::Result<Vec<String>> {
    let mut releases: Vec<String> = fs::read_dir(node::at("/boot"))?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned))
        .filter(|release| is_release(release))
        .collect();
    releases.sort_by(|a, b| debian::compare(a, b));
    Ok(releases)
}

/// Digits first, then what the kernel's makers put into releases; no copies
/// that a person or dpkg has left.
fn is_release(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+~_-".contains(c))
        && ![".old", ".bak", ".orig", ".new", ".tmp"].iter().any(|end| text.ends_with(end))
        && !text.contains(".dpkg-")
}

/// The newest of these, with those that Proxmox made before all others.
pub(crate) fn newest<'a>(releases: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    releases.into_iter().max_by(|a, b| {
        let own = |release: &str| release.ends_with("-pve");
        own(a).cmp(&own(b)).then_with(|| debian::compare(a, b))
    })
}

/// The release that a package brings: `proxmox-kernel-6.8.12-9-pve-signed`
/// brings `6.8.12-9-pve`. Packages that only depend on one bring none.
pub(crate) fn release_of_package(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("proxmox-kernel-").or_else(|| name.strip_prefix("pve-kernel-"))?;
    let release = rest.strip_suffix("-signed").unwrap_or(rest);
    (release.ends_with("-pve") && is_release(release)).then_some(release)
}

/// The kernel now and after `coming` were installed.
pub(crate) fn change(coming: &[String]) -> io::Result<KernelChange> {
    let now = installed().unwrap_or_default();
    Ok(KernelChange {
        running: node::kernel()?,
        newest: newest(&now).cloned(),
        after: newest(now.iter().chain(coming)).cloned(),
    })
}

/// Whether a boot would bring a newer kernel than the one that runs.
pub(crate) fn reboot_needed(change: &KernelChange) -> bool {
    change
        .after
        .as_ref()
        .is_some_and(|after| debian::compare(after, &change.running) == Ordering::Greater)
}

/// Runs `proxmox-boot-tool` with these arguments; never half.
pub(crate) fn boot_tool(args: &[&str], client: &mut Client) -> Result<Ended, Refused> {
    Job::kept(program::BOOT_TOOL, args, TOOL_TIMEOUT_S).detached().run(client)
}

/// Asks proxmox-boot-tool what is pinned.
pub(crate) fn pins(client: &mut Client) -> Result<Pins, Refused> {
    let ended = boot_tool(&["kernel", "list"], client)?;
    if !ended.well() {
        return Err(Refused::new(
            Code::Internal,
            format!("proxmox-boot-tool kernel list {}: {}", ended.how(), last_line(&ended)),
        ));
    }
    Ok(parse_list(&ended.stdout.text()))
}

/// Reads the two sections that name a pin. The text before each colon is that
/// of the tool.
fn parse_list(text: &str) -> Pins {
    let section = |title: &str| {
        let mut lines = text.lines().map(str::trim).skip_while(|line| *line != title).skip(1);
        lines.next().filter(|line| !line.is_empty() && *line != "None.").map(str::to_owned)
    };
    Pins { pinned: section("Pinned kernel:"), next_boot: section("Kernel pinned on next-boot:") }
}

/// What the three kernel verbs answer.
pub(crate) fn answer(pins: Pins) -> Result<Kernels, Refused> {
    let internal = |error: io::Error| Refused::new(Code::Internal, error.to_string());
    let installed = installed().map_err(internal)?;
    Ok(Kernels {
        newest: newest(&installed).cloned(),
        installed,
        pinned: pins.pinned,
        next_boot: pins.next_boot,
        running: node::kernel().map_err(internal)?,
    })
}

/// Changes the pins with `args`, makes that take effect and looks whether it
/// has. On failure the pins are put back as they were.
pub(crate) fn change_pins(
    args: &[&str],
    wanted: &Pins,
    before: &Pins,
    client: &mut Client,
) -> Result<Kernels, Refused> {
    let changed = apply(args, client).and_then(|()| verify(wanted, client));
    let Err(fault) = changed else {
        return answer(wanted.clone());
    };
    let restored = restore(before, client).and_then(|()| verify(before, client));
    Err(match restored {
        Ok(()) => fault.hint("the pins are as they were before"),
        Err(worse) => fault.hint(format!(
            "the pins could NOT be put back ({}); look at `proxmox-boot-tool kernel list` \
             before the node is restarted",
            worse.message
        )),
    })
}

fn apply(args: &[&str], client: &mut Client) -> Result<(), Refused> {
    must_succeed(args, client)?;
    if !node::at(ESP_LIST).exists() {
        return Ok(());
    }
    // There is no terminal that it could ask on, so nothing has reached the
    // EFI partitions yet.
    let refreshed = must_succeed(&["refresh"], client)?;
    let said = format!("{}\n{}", refreshed.stdout.text(), refreshed.stderr.text());
    match refresh_fault(&said) {
        None => Ok(()),
        Some(line) => Err(Refused::new(
            Code::Internal,
            format!("proxmox-boot-tool refresh did not fill the EFI partitions: {line}"),
        )),
    }
}

/// refresh ends with status 0 also where it has skipped every partition.
fn refresh_fault(said: &str) -> Option<&str> {
    let mut lines = said.lines().map(str::trim);
    let missing = |line: &&str| line.starts_with("No ") && line.ends_with("found - skipping");
    let skipped = |line: &&str| line.ends_with("skipping") || line.ends_with("skipping.");
    let filled = said.contains("Copying and configuring kernels on");
    lines.clone().find(missing).or_else(|| lines.find(skipped).filter(|_| !filled))
}

fn must_succeed(args: &[&str], client: &mut Client) -> Result<Ended, Refused> {
    let ended = boot_tool(args, client)?;
    if ended.well() {
        return Ok(ended);
    }
    Err(Refused::new(
        Code::Internal,
        format!("proxmox-boot-tool {} {}: {}", args.join(" "), ended.how(), last_line(&ended)),
    ))
}

/// Looks whether these pins are what will boot.
fn verify(wanted: &Pins, client: &mut Client) -> Result<(), Refused> {
    let wrong = |what: String| Err(Refused::new(Code::Internal, what));
    let now = pins(client)?;
    if now != *wanted {
        return wrong(format!("proxmox-boot-tool shows other pins: {now:?}"));
    }
    if node::at(ESP_LIST).exists() {
        return Ok(());
    }
    let grub_pin = fs::read_to_string(node::at(GRUB_PIN)).unwrap_or_default();
    match wanted.effective() {
        None if grub_pin.contains("GRUB_DEFAULT=") => {
            wrong(format!("{GRUB_PIN} still chooses a kernel"))
        }
        None => Ok(()),
        Some(release) if !names_release(&grub_pin, release) => {
            wrong(format!("{GRUB_PIN} does not choose {release}"))
        }
        Some(release) => match fs::read_to_string(node::at(GRUB_MENU)) {
            Ok(menu) if !names_release(&menu, release) => {
                wrong(format!("{GRUB_MENU} has no entry for {release}"))
            }
            _ => Ok(()),
        },
    }
}

/// Whether the text holds this release, and not only a longer one.
fn names_release(text: &str, release: &str) -> bool {
    let part_of_number = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || c == '.');
    text.match_indices(release).any(|(at, found)| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|tail| tail.chars().next());
        !part_of_number(before) && !part_of_number(after)
    })
}

fn restore(before: &Pins, client: &mut Client) -> Result<(), Refused> {
    let mut steps: Vec<Vec<&str>> = vec![vec!["kernel", "unpin"]];
    if let Some(release) = &before.pinned {
        steps.push(vec!["kernel", "pin", release]);
    }
    if let Some(release) = &before.next_boot {
        steps.push(vec!["kernel", "pin", release, "--next-boot"]);
    }
    if node::at(ESP_LIST).exists() {
        steps.push(vec!["refresh"]);
    }
    // Whatever fails on the way, all of it is tried.
    let results: Vec<_> = steps.iter().map(|step| must_succeed(step, client)).collect();
    results.into_iter().try_for_each(|result| result.map(|_| ()))
}

/// The last thing that a program said, for a message.
pub(crate) fn last_line(ended: &Ended) -> String {
    let said = format!("{}\n{}", ended.stdout.text(), ended.stderr.text());
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_the_list_is_told_apart() {
        let plain = "Manually selected kernels:\nNone.\n\nAutomatically selected kernels:\n\
                     6.8.12-9-pve\n6.8.12-10-pve\n";
        assert_eq!(parse_list(plain), Pins::default());
        let pinned = format!("{plain}\nPinned kernel:\n6.8.12-9-pve\n");
        assert_eq!(
            parse_list(&pinned),
            Pins { pinned: Some("6.8.12-9-pve".into()), next_boot: None }
        );
        let both = format!("{pinned}\nKernel pinned on next-boot:\n6.8.12-10-pve\n");
        assert_eq!(parse_list(&both).effective().unwrap(), "6.8.12-10-pve");
    }

    #[test]
    fn packages_name_their_kernel() {
        for (name, release) in [
            ("proxmox-kernel-6.8.12-9-pve-signed", Some("6.8.12-9-pve")),
            ("proxmox-kernel-7.0.2-6-pve", Some("7.0.2-6-pve")),
            ("pve-kernel-5.15.158-2-pve", Some("5.15.158-2-pve")),
            ("proxmox-kernel-6.8", None),
            ("proxmox-kernel-helper", None),
            ("proxmox-default-kernel", None),
        ] {
            assert_eq!(release_of_package(name), release, "{name}");
        }
    }

    #[test]
    fn kernels_are_compared_by_version() {
        let change = |running: &str, after: &str| KernelChange {
            running: running.into(),
            newest: None,
            after: Some(after.into()),
        };
        assert!(reboot_needed(&change("7.0.2-6-pve", "7.0.6-2-pve")));
        assert!(reboot_needed(&change("6.8.12-9-pve", "6.8.12-10-pve")));
        assert!(!reboot_needed(&change("6.8.12-10-pve", "6.8.12-9-pve")));
        assert!(!reboot_needed(&change("7.0.6-2-pve", "7.0.6-2-pve")));
        let releases = ["6.8.12-9-pve", "6.8.12-10-pve", "6.12.0-amd64"].map(String::from);
        assert_eq!(newest(&releases).unwrap(), "6.8.12-10-pve");
    }

    #[test]
    fn a_refresh_that_filled_nothing_has_failed() {
        let filled = "Copying and configuring kernels on /dev/disk/by-uuid/1111-AAAA\n";
        let stale = "WARN: /dev/disk/by-uuid/2222-BBBB does not exist - clean 'x'! - skipping\n";
        assert_eq!(refresh_fault(filled), None);
        assert_eq!(refresh_fault(&format!("{stale}{filled}")), None);
        assert!(refresh_fault(stale).is_some());
        assert!(
            refresh_fault("Hook script 'zz-proxmox-boot' not found or not executable, skipping.\n")
                .is_some()
        );
        let without =
            format!("{filled}No initrd-image /boot/initrd.img-7.0.2-6-pve found - skipping\n");
        assert!(refresh_fault(&without).is_some());
        assert_eq!(refresh_fault("Running hook script 'zz-proxmox-boot'..\n"), None);
    }

    #[test]
    fn a_longer_release_is_another_one() {
        assert!(names_release("gnulinux-6.8.12-1-pve-advanced-x", "6.8.12-1-pve"));
        assert!(!names_release("gnulinux-16.8.12-1-pve-advanced", "6.8.12-1-pve"));
    }

    #[test]
    fn leftover_images_are_no_kernels() {
        for name in ["6.8.12-9-pve.old", "6.8.12-9-pve.dpkg-tmp", "", "-h", "6 8", "x"] {
            assert!(!is_release(name), "{name}");
        }
    }
}
