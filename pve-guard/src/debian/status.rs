//! `/var/lib/dpkg/status`.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::node;

const FILE: &str = "/var/lib/dpkg/status";

/// A package that dpkg knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The three words of `Status`: what is wanted, faults, state.
    pub(crate) status: String,
    /// dpkg itself refuses to remove it.
    pub(crate) essential: bool,
}

impl Package {
    pub(crate) fn is_installed(&self) -> bool {
        self.status.ends_with(" installed")
    }

    /// Whether an installation was begun and not brought to its end.
    pub(crate) fn is_half_done(&self) -> bool {
        let mut words = self.status.split(' ').skip(1);
        let (fault, state) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        fault != "ok" || !matches!(state, "installed" | "not-installed" | "config-files")
    }
}

/// All packages, in the order of the file.
pub(crate) fn read_status() -> io::Result<Vec<Package>> {
    Ok(fs::read_to_string(node::at(FILE))?.split("\n\n").filter_map(stanza).collect())
}

fn stanza(text: &str) -> Option<Package> {
    let mut package = Package::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "Package" => package.name = value.to_owned(),
            "Version" => package.version = value.to_owned(),
            "Status" => package.status = value.to_owned(),
            "Essential" | "Protected" => package.essential |= value == "yes",
            _ => {}
        }
    }
    (!package.name.is_empty()).then_some(package)
}

/// The installed version of one package. The file is not read into memory as
/// a whole, since `hello` has to stay small.
pub(crate) fn installed_version(name: &str) -> io::Result<Option<String>> {
    let mut file = File::open(node::at(FILE))?;
    let head = format!("\nPackage: {name}\n");
    // The first stanza has no line feed before it.
    let mut window = b"\n".to_vec();
    let mut window_start: u64 = 0;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        if let Some(at) = memchr::memmem::find(&window, head.as_bytes()) {
            // The window's first byte is not in the file: minus that, plus the line feed.
            file.seek(SeekFrom::Start(window_start + at as u64))?;
            let mut text = Vec::new();
            file.take(64 * 1024).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let package = text.split("\n\n").next().and_then(stanza);
            return Ok(package.filter(Package::is_installed).map(|package| package.version));
        }
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(None);
        }
        let keep = window.len().min(head.len());
        let dropped = window.len() - keep;
        window.drain(..dropped);
        window_start += dropped as u64;
        window.extend_from_slice(chunk.get(..length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_done_packages_are_seen() {
        for (status, half) in [
            ("install ok installed", false),
            ("hold ok installed", false),
            ("deinstall ok config-files", false),
            ("unknown ok not-installed", false),
            ("install ok half-configured", true),
            ("install ok unpacked", true),
            ("install ok triggers-pending", true),
            ("install reinstreq half-installed", true),
            ("install reinstreq installed", true),
        ] {
            let package = Package { status: status.into(), ..Package::default() };
            assert_eq!(package.is_half_done(), half, "{status}");
        }
    }
}
