//! The services of packages that get another version: dpkg restarts them.

use std::collections::BTreeSet;
use std::fs;

use crate::node;
use crate::protocol::Change;

const INFO: &str = "/var/lib/dpkg/info";
const UNITS: [&str; 2] = ["/usr/lib/systemd/system/", "/lib/systemd/system/"];

/// Units of services that the installed versions of these packages bring,
/// without those that are started once for each instance.
pub(super) fn of<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for change in changes {
        let names = [change.name.clone(), format!("{}:{}", change.name, change.arch)];
        for name in names {
            // A package of one architecture has one of the two.
            let path = node::at(&format!("{INFO}/{name}.list"));
            found.extend(units(&fs::read_to_string(path).unwrap_or_default()));
        }
    }
    found.into_iter().collect()
}

fn units(list: &str) -> impl Iterator<Item = String> + '_ {
    list.lines().filter_map(|line| {
        let name = UNITS.iter().find_map(|folder| line.strip_prefix(folder))?;
        let plain = name.ends_with(".service") && !name.contains(['/', '@']);
        plain.then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_in_what_dpkg_installed() {
        let list = "/.\n/usr/lib/systemd/system\n/usr/lib/systemd/system/pveproxy.service\n\
            /lib/systemd/system/ssh.service\n/usr/lib/systemd/system/ssh@.service\n\
            /usr/lib/systemd/system/x.timer\n/usr/lib/systemd/system/x.service.d/y.conf\n\
            /usr/share/doc/a.service\n";
        assert_eq!(units(list).collect::<Vec<_>>(), ["pveproxy.service", "ssh.service"]);
    }
}
