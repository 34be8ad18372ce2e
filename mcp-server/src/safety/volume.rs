//! Whose guest's a volume is, from its id alone.

use crate::pve::Vmid;

/// The guests that own a volume, in the order of the name: two for a linked
/// clone (`base-9000-disk-0/vm-100-disk-0`: the base's and the child's), none
/// for an ISO image, a template, a size to allocate, or a name without owner.
#[must_use]
pub fn owners(volume: &str) -> Vec<Vmid> {
    let volume = volume.trim();
    // In an absolute path (`/dev/pve/vm-101-disk-0`) every part may name one.
    let rest = match volume.split_once(':') {
        Some((storage, rest)) if !storage.contains('/') => rest,
        _ => volume,
    };
    let mut owners = Vec::new();
    let mut parts = rest.split('/').peekable();
    while let Some(part) = parts.next() {
        let directory = Vmid::parse(part).ok().filter(|_| parts.peek().is_some());
        if let Some(vmid) = directory {
            // The directory owns, whatever its file is called.
            owners.push(vmid);
            parts.next();
        } else if let Some(vmid) = by_name(part) {
            owners.push(vmid);
        }
    }
    owners.dedup();
    owners
}

/// The guest whose disk a volume is: of a linked name the child.
#[must_use]
pub fn owner(volume: &str) -> Option<Vmid> {
    owners(volume).pop()
}

/// `vm-N-…`, `base-N-…`, `subvol-N-…`, `basevol-N-…`, `vzdump-KIND-N-…`.
fn by_name(name: &str) -> Option<Vmid> {
    let name = name.strip_prefix("snap_").unwrap_or(name);
    let rest =
        ["vm-", "base-", "subvol-", "basevol-", "vzdump-qemu-", "vzdump-lxc-", "vzdump-openvz-"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Vmid::parse(digits).ok()
}

/// Whether a volume is a place on the host rather than a volume of a storage:
/// an absolute path, or the host's own drive.
#[must_use]
pub fn on_host(volume: &str) -> bool {
    let volume = volume.trim();
    volume.starts_with('/') || volume == "cdrom"
}

/// Whether a value asks for a new volume of some size: `local-lvm:8`.
#[must_use]
pub fn allocates(volume: &str) -> bool {
    volume.split_once(':').is_some_and(|(_, size)| {
        !size.is_empty() && size.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_read_from_every_form() {
        for (volume, want) in [
            ("local-lvm:vm-101-disk-0", &[101][..]),
            ("local-lvm:vm-101-cloudinit", &[101]),
            ("local:9101/vm-9102-disk-5.raw", &[9101]),
            ("local:100/vm-100-disk-0.qcow2", &[100]),
            ("local-zfs:subvol-200-disk-0", &[200]),
            ("local-zfs:base-9000-disk-0/vm-100-disk-0", &[9000, 100]),
            ("local-zfs:basevol-9000-disk-0/subvol-200-disk-0", &[9000, 200]),
            ("local:9000/base-9000-disk-0.qcow2/100/vm-100-disk-0.qcow2", &[9000, 100]),
            ("local:backup/vzdump-lxc-200-2026_01_01-00_00_00.tar.zst", &[200]),
            ("local:backup/vzdump-qemu-101-2026_01_01-00_00_00.vma.zst", &[101]),
            ("local:backup/vzdump-openvz-102-2015_01_01.tar", &[102]),
            ("pbs:backup/vm/103/2026-01-01T00:00:00Z", &[103]),
            ("pbs:backup/ct/204/2026-01-01T00:00:00Z", &[204]),
            ("/dev/pve/vm-101-disk-0", &[101]),
            ("/var/lib/vz/images/101/vm-101-disk-0.raw", &[101]),
            ("local-lvm:snap_vm-101-disk-0_before", &[101]),
            ("local-lvm:vm-101-state-before", &[101]),
            ("local:iso/debian-13.iso", &[]),
            ("local:vztmpl/debian-13.tar.zst", &[]),
            ("local:import/vm-appliance.ova", &[]),
            ("local-lvm:8", &[]),
            ("local-lvm:100", &[]),
            ("none", &[]),
            ("cdrom", &[]),
            ("local:cloudinit", &[]),
            ("", &[]),
        ] {
            let got: Vec<u32> = owners(volume).into_iter().map(Vmid::get).collect();
            assert_eq!(got, want, "{volume}");
        }
    }

    #[test]
    fn host_places_and_sizes() {
        assert!(on_host("/dev/sda") && on_host(" /etc") && on_host("cdrom"));
        assert!(!on_host("local:iso/x.iso") && !on_host("none"));
        assert!(
            allocates("local-lvm:8")
                && allocates("a:0.5")
                && !allocates("a:vm-1-disk-0")
                && !allocates("a:")
        );
    }
}
