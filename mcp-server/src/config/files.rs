//! Reading small files of the configuration, and who else may.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use super::Warning;
use crate::{Code, Error, Result};

/// No file of the configuration is larger; `/dev/zero` would have no end.
const LIMIT: u64 = 1 << 20;

/// Reads a file whole; `None` when there is none. Its mode is looked at on the way.
///
/// # Errors
/// `config` when it cannot be read, is too large, or everybody may write it.
pub(super) fn read(path: &Path, warnings: &mut Vec<Warning>) -> Result<Option<Vec<u8>>> {
    let fail = |e: &std::io::Error| {
        Error::new(Code::Config, format!("{} cannot be read: {e}", path.display()))
            .hint("make it a file that the user of this server can read")
            .with("file", path.display().to_string())
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(fail(&e)),
    };
    // Of the open file, so that what is checked is what is read.
    let meta = file.metadata().map_err(|e| fail(&e))?;
    judge(path, &meta, warnings)?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| fail(&e))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Error::new(Code::Config, format!("{} is over 1 MiB", path.display()))
            .hint("name another file"));
    }
    Ok(Some(bytes))
}

/// Looks at the mode of a directory or file that is not read here; what is absent passes.
///
/// # Errors
/// `config` when everybody may write it.
pub(super) fn check(path: &Path, warnings: &mut Vec<Warning>) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) => judge(path, &meta, warnings),
        Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn judge(path: &Path, meta: &std::fs::Metadata, warnings: &mut Vec<Warning>) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (shown, mode) = (path.display(), meta.mode() & 0o7777);
    let want = if meta.is_dir() { "700" } else { "600" };
    if mode & 0o002 != 0 {
        return Err(Error::new(
            Code::Config,
            format!("everybody may write {shown} (mode {mode:04o})"),
        )
        .hint(format!("look whether it is still yours, then run: chmod {want} {shown}"))
        .with("file", shown.to_string()));
    }
    if mode & 0o077 != 0 {
        let who = if mode & 0o020 != 0 { "others may write" } else { "others may read" };
        warnings.push(
            Warning::new(format!("{who} {shown} (mode {mode:04o})"))
                .hint(format!("run: chmod {want} {shown}")),
        );
    }
    let own = nix::unistd::geteuid().as_raw();
    if meta.uid() != own && meta.uid() != 0 && own != 0 {
        warnings.push(
            Warning::new(format!("{shown} belongs to another user (uid {})", meta.uid()))
                .hint(format!("run: chown \"$(id -u)\" {shown}")),
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn judge(_: &Path, _: &std::fs::Metadata, _: &mut Vec<Warning>) -> Result<()> {
    Ok(())
}
