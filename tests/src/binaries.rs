//! Where the binaries under test are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root")
}

/// The path of a binary of the workspace, built from the present source: by
/// `scripts/test` before the tests (`E2E_BIN_DIR`), else here.
///
/// # Panics
/// When it does not build.
pub fn built(name: &str) -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = DIR.get_or_init(|| match std::env::var_os("E2E_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => build(),
    });
    let path = dir.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is not there", path.display());
    path
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--workspace", "--bins", "--message-format=json"])
        .current_dir(repository())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "the workspace does not build");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .and_then(|path| path.parent().map(Path::to_owned))
        .expect("cargo names an executable")
}
