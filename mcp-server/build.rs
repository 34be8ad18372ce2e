//! Takes the guard's Debian package into the binary, when
//! `PROXMOX_MCP_GUARD_DEB` names one (`scripts/package` does).
#![allow(clippy::print_stdout, clippy::panic)]

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-env-changed=PROXMOX_MCP_GUARD_DEB");
    println!("cargo::rustc-check-cfg=cfg(guard_package)");
    let Some(package) = env::var_os("PROXMOX_MCP_GUARD_DEB").filter(|name| !name.is_empty()) else {
        return;
    };
    let package = Path::new(&package);
    println!("cargo::rerun-if-changed={}", package.display());
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    if let Err(error) = fs::copy(package, Path::new(&out).join("pve-guard.deb")) {
        panic!("PROXMOX_MCP_GUARD_DEB={}: {error}", package.display());
    }
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    println!("cargo::rustc-env=GUARD_PACKAGE_NAME={name}");
    println!("cargo::rustc-cfg=guard_package");
}
