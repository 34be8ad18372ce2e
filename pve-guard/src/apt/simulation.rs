//! What `apt-get dist-upgrade` would do, from what its simulation says.

use std::cmp::Ordering;
use std::path::Path;

use crate::client::Client;
use crate::debian;
use crate::kernels::last_line;
use crate::node::{self, program};
use crate::process::{Ended, Job};
use crate::protocol::{Change, Code, Refused, Removal};

const TIMEOUT_S: u64 = 180;

/// One transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simulation {
    pub(super) install: Vec<Change>,
    pub(super) upgrade: Vec<Change>,
    pub(super) downgrade: Vec<Change>,
    pub(super) remove: Vec<Removal>,
    pub(super) kept_back: Vec<String>,
    pub(super) download_bytes: Option<u64>,
    pub(super) disk_bytes: Option<i64>,
}

/// Asks apt-get twice: for the packages and versions, and for the sizes.
pub(super) fn run(lists: Option<&Path>, client: &mut Client) -> Result<Simulation, Refused> {
    let said = apt_get(lists, &["--simulate", "dist-upgrade"], client)?;
    let mut simulation = Simulation::parse(&said.stdout.text());
    let said = apt_get(lists, &["--print-uris", "-y", "dist-upgrade"], client)?;
    let text = said.stdout.text();
    simulation.download_bytes = Some(text.lines().filter_map(download).sum());
    simulation.disk_bytes = text.lines().find_map(disk).or(Some(0));
    Ok(simulation)
}

fn apt_get(lists: Option<&Path>, args: &[&str], client: &mut Client) -> Result<Ended, Refused> {
    let mut job = Job::kept(program::APT_GET, &[], TIMEOUT_S);
    job.args = super::options(lists);
    // Nothing is changed, so nobody is kept out.
    job.args.extend(["-o".into(), "Debug::NoLocking=1".into()]);
    job.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    let ended = job.run(client)?;
    if ended.well() {
        return Ok(ended);
    }
    let said = ended.stderr.text();
    let first = said.lines().find(|line| line.starts_with("E: ")).map(str::to_owned);
    Err(Refused::new(
        Code::Preflight,
        format!(
            "apt-get {} {}: {}",
            args.join(" "),
            ended.how(),
            first.unwrap_or_else(|| last_line(&ended))
        ),
    ))
}

impl Simulation {
    fn parse(text: &str) -> Self {
        let mut simulation = Self::default();
        let mut in_kept_back = false;
        for line in text.lines() {
            if line.starts_with("  ") {
                if in_kept_back {
                    let names = line.split_ascii_whitespace().map(str::to_owned);
                    simulation.kept_back.extend(names);
                }
                continue;
            }
            in_kept_back = line.contains("have been kept back:")
                || line.contains("have been deferred due to phasing:");
            if let Some(change) = line.strip_prefix("Inst ").and_then(parse_change) {
                simulation.add(change);
            } else if let Some(removal) = line
                .strip_prefix("Remv ")
                .or_else(|| line.strip_prefix("Purg "))
                .and_then(parse_removal)
            {
                simulation.remove.push(removal);
            }
        }
        simulation.install.sort();
        simulation.upgrade.sort();
        simulation.downgrade.sort();
        simulation.remove.sort();
        simulation.kept_back.sort();
        simulation
    }

    fn add(&mut self, change: Change) {
        match &change.from {
            None => self.install.push(change),
            Some(from) if debian::compare(from, &change.to) == Ordering::Greater => {
                self.downgrade.push(change);
            }
            Some(_) => self.upgrade.push(change),
        }
    }

    /// Everything that comes or changes.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.install.iter().chain(&self.upgrade).chain(&self.downgrade)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes().next().is_none() && self.remove.is_empty()
    }

    /// SHA-256 of the transaction: the same packages in the same versions from
    /// the same places give the same value, and nothing else does.
    pub(super) fn digest(&self) -> String {
        let mut lines: Vec<String> = self
            .changes()
            .map(|change| {
                format!(
                    "inst\t{}\t{}\t{}\t{}\t{}\n",
                    change.name,
                    change.arch,
                    change.from.as_deref().unwrap_or("-"),
                    change.to,
                    change.origin
                )
            })
            .chain(
                self.remove.iter().map(|gone| format!("remv\t{}\t{}\n", gone.name, gone.version)),
            )
            .collect();
        lines.sort();
        node::sha256(lines.concat().as_bytes())
    }
}

/// `name [from] (to origin [arch])`, with more in brackets behind it.
fn parse_change(rest: &str) -> Option<Change> {
    let (name, rest) = rest.split_once(' ')?;
    let (from, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (from, rest) = rest.split_once("] ")?;
            (Some(from.to_owned()), rest)
        }
        None => (None, rest),
    };
    let (inner, _) = rest.strip_prefix('(')?.split_once("])")?;
    let (before, arch) = inner.rsplit_once('[')?;
    let (to, origin) = before.trim().split_once(' ').unwrap_or((before.trim(), ""));
    Some(Change {
        name: name.to_owned(),
        arch: arch.to_owned(),
        from,
        to: to.to_owned(),
        origin: origin.to_owned(),
    })
}

/// `name [version]`, with more in brackets behind it.
fn parse_removal(rest: &str) -> Option<Removal> {
    let (name, rest) = rest.split_once(' ')?;
    let (version, _) = rest.strip_prefix('[')?.split_once(']')?;
    Some(Removal { name: name.to_owned(), version: version.to_owned() })
}

/// `'uri' file size hash`
fn download(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// `After this operation, 102 kB of additional disk space will be used.`
fn disk(line: &str) -> Option<i64> {
    let rest = line.strip_prefix("After this operation, ")?;
    let mut words = rest.split(' ');
    let number: f64 = words.next()?.replace(',', "").parse().ok()?;
    let unit = match words.next()? {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    let sign = if rest.contains("will be freed") { -1.0 } else { 1.0 };
    #[allow(clippy::cast_possible_truncation)]
    Some((sign * number * unit).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Reading package lists...
Building dependency tree...
Calculating upgrade...
The following packages have been kept back:
  held-one held-two
The following NEW packages will be installed:
  tnew
The following packages will be upgraded:
  libc6 tp
2 upgraded, 1 newly installed, 1 to remove and 2 not upgraded.
Remv old [0.9] [tp:amd64 ]
Inst tnew (1.0 Test:1/stable [all])
Inst libc6 [2.41-12] (2.41-12+deb13u1 Debian:13.3/stable, Debian-Security:13/stable-security [amd64]) []
Inst tp [1.1] (1.0 Test:1/stable [all]) [x:amd64 ]
Conf tnew (1.0 Test:1/stable [all])
";

    #[test]
    fn a_simulation_is_read() {
        let simulation = Simulation::parse(SAID);
        assert_eq!(simulation.install[0].name, "tnew");
        assert_eq!(simulation.install[0].from, None);
        let libc = &simulation.upgrade[0];
        assert_eq!((libc.from.as_deref(), libc.to.as_str()), (Some("2.41-12"), "2.41-12+deb13u1"));
        assert_eq!(libc.origin, "Debian:13.3/stable, Debian-Security:13/stable-security");
        assert_eq!(libc.arch, "amd64");
        assert_eq!(simulation.downgrade[0].name, "tp");
        assert_eq!(simulation.remove[0], Removal { name: "old".into(), version: "0.9".into() });
        assert_eq!(simulation.kept_back, ["held-one", "held-two"]);
    }

    #[test]
    fn the_digest_is_that_of_the_transaction() {
        let digest = |text: &str| Simulation::parse(text).digest();
        let mut lines: Vec<&str> = SAID.lines().collect();
        lines.reverse();
        assert_eq!(digest(SAID), digest(&lines.join("\n")), "order does not matter");
        for (from, to) in [
            ("(1.0 Test:1/stable [all])", "(1.0.1 Test:1/stable [all])"),
            ("Test:1/stable", "Other:1/stable"),
            ("[2.41-12]", "[2.41-11]"),
            ("Remv old", "Remv older"),
        ] {
            assert_ne!(digest(SAID), digest(&SAID.replace(from, to)), "{from}");
        }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(download("'http://x/a.deb' a_1_all.deb 784 SHA256:00"), Some(784));
        assert_eq!(download("Reading package lists..."), None);
        for (line, bytes) in [
            ("After this operation, 102 kB of additional disk space will be used.", 102_000),
            ("After this operation, 1,204 MB disk space will be freed.", -1_204_000_000),
            ("After this operation, 0 B of additional disk space will be used.", 0),
        ] {
            assert_eq!(disk(line), Some(bytes), "{line}");
        }
    }
}
