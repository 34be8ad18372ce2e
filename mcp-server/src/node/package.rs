//! The guard's Debian package, carried inside a build that was given one.

use sha2::{Digest, Sha256};

/// A `.deb` with the guard.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// File name, for example `pve-guard_0.1.0_amd64.deb`.
    pub name: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

/// The package inside this binary; see `build.rs`.
#[cfg(guard_package)]
pub const PACKAGE: Option<Package> = Some(Package {
    name: env!("GUARD_PACKAGE_NAME"),
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/pve-guard.deb")),
});

/// This build was given none; see `build.rs`.
#[cfg(not(guard_package))]
pub const PACKAGE: Option<Package> = None;

impl Package {
    /// SHA-256 in lower-case hexadecimal, as `sha256sum` prints it.
    #[must_use]
    pub fn sha256(&self) -> String {
        Sha256::digest(self.bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
