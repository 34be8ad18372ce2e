//! Whether there is room for an upgrade.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::node;
use crate::protocol::Problem;

/// Least free space on / in bytes.
const ROOT_FREE: u64 = 1024 * 1024 * 1024;
/// Kernel images that must fit where the node boots from.
const IMAGES: u64 = 2;
const ESP_LIST: &str = "/etc/kernel/proxmox-boot-uuids";

/// What there is too little of. `wanted` is what the transaction needs on /.
pub(super) fn problems(wanted: u64) -> io::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let least = ROOT_FREE.max(wanted);
    let free = free_on(&node::at("/"))?;
    if free < least {
        problems.push(problem("/", free, least));
    }
    let least = IMAGES * largest_image();
    let boot = node::at("/boot");
    if is_mount(&boot) {
        let free = free_on(&boot)?;
        if free < least {
            problems.push(problem("/boot", free, least));
        }
    }
    for uuid in esps() {
        let device = node::at(&format!("/dev/disk/by-uuid/{uuid}"));
        // One that is not there or is not FAT32 cannot be judged; the boot
        // tool says so itself.
        if let Ok(Some(free)) = free_on_fat32(&device)
            && free < least
        {
            problems.push(problem(&format!("EFI partition {uuid}"), free, least));
        }
    }
    Ok(problems)
}

fn problem(place: &str, free: u64, least: u64) -> Problem {
    Problem {
        kind: "space".into(),
        message: format!("{place} has {} MiB free and needs {} MiB", free >> 20, least >> 20),
        hint: "make room first; nothing was downloaded".into(),
    }
}

fn free_on(path: &Path) -> io::Result<u64> {
    let stat = statvfs(path)?;
    Ok(stat.blocks_available() * stat.fragment_size())
}

fn is_mount(path: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    path.parent().is_some_and(|parent| device(path).is_some() && device(path) != device(parent))
}

/// Bytes of the largest kernel with its initial RAM disk.
fn largest_image() -> u64 {
    let size = |name: String| fs::metadata(node::at(&name)).map_or(0, |metadata| metadata.len());
    crate::kernels::installed()
        .unwrap_or_default()
        .iter()
        .map(|release| {
            size(format!("/boot/vmlinuz-{release}")) + size(format!("/boot/initrd.img-{release}"))
        })
        .max()
        .unwrap_or(0)
}

/// The EFI partitions that proxmox-boot-tool fills.
fn esps() -> Vec<String> {
    let text = fs::read_to_string(node::at(ESP_LIST)).unwrap_or_default();
    text.lines()
        .map(str::trim)
        .filter(|uuid| {
            !uuid.is_empty() && uuid.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
        .map(str::to_owned)
        .collect()
}

/// Free bytes by the file system's own count. The partition is not mounted
/// between the runs of the boot tool, so there is nobody else to ask.
fn free_on_fat32(device: &Path) -> io::Result<Option<u64>> {
    let mut file = File::open(device)?;
    let mut boot = [0; 512];
    file.read_exact(&mut boot)?;
    let sector = u64::from(u16_at(&boot, 11));
    let per_cluster = u64::from(boot[13]);
    let info_sector = u64::from(u16_at(&boot, 48));
    let is_fat32 = boot.get(82..87) == Some(b"FAT32".as_slice());
    if !is_fat32 || !(512..=4096).contains(&sector) || per_cluster == 0 || info_sector == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(info_sector * sector))?;
    let mut info = [0; 512];
    file.read_exact(&mut info)?;
    let marked = u32_at(&info, 0) == 0x4161_5252 && u32_at(&info, 484) == 0x6141_7272;
    let clusters = u32_at(&info, 488);
    Ok((marked && clusters != u32::MAX).then(|| u64::from(clusters) * per_cluster * sector))
}

fn u16_at(bytes: &[u8; 512], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8; 512], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_space_of_an_unmounted_esp_is_read() {
        let mut image = vec![0_u8; 4096];
        image[11..13].copy_from_slice(&512_u16.to_le_bytes());
        image[13] = 8;
        image[48..50].copy_from_slice(&1_u16.to_le_bytes());
        image[82..90].copy_from_slice(b"FAT32   ");
        image[512..516].copy_from_slice(&0x4161_5252_u32.to_le_bytes());
        image[512 + 484..512 + 488].copy_from_slice(&0x6141_7272_u32.to_le_bytes());
        image[512 + 488..512 + 492].copy_from_slice(&1000_u32.to_le_bytes());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("esp");
        fs::write(&path, &image).unwrap();
        assert_eq!(free_on_fat32(&path).unwrap(), Some(1000 * 8 * 512));
        image[82..90].copy_from_slice(b"FAT16   ");
        fs::write(&path, &image).unwrap();
        assert_eq!(free_on_fat32(&path).unwrap(), None);
    }
}
