//! Files of the configuration directory that this room writes.

use std::{fs, io::Write, path::Path};

use crate::{Code, Error, Result};

/// Checks that nobody but the owner can change what is trusted.
///
/// # Errors
/// `config` when group or others may write.
#[cfg(unix)]
pub fn only_owner_writes(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(found) if found.mode() & 0o022 != 0 => Err(Error::new(
            Code::Config,
            format!("{} can be changed by others than its owner", path.display()),
        )
        .hint(format!("chmod go-w {}", path.display()))),
        _ => Ok(()),
    }
}

/// Checks that nobody but the owner can change what is trusted.
///
/// # Errors
/// None on this system.
#[cfg(not(unix))]
pub fn only_owner_writes(_path: &Path) -> Result<()> {
    Ok(())
}

/// Writes a file that its owner alone can read, whole or not at all.
///
/// # Errors
/// `config` with the system's reason.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let fault = |e: std::io::Error| {
        Error::new(Code::Config, format!("{} cannot be written: {e}", path.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder).map_err(fault)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = folder.join(name);
    // A leftover of a run that was cut would keep its mode.
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fault(e)),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh).map_err(fault)?;
    file.write_all(text.as_bytes()).map_err(fault)?;
    file.sync_all().map_err(fault)?;
    fs::rename(&fresh, path).map_err(fault)
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_written_file_is_private_and_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssh/known_hosts");
        write_private(&path, "one\n").unwrap();
        write_private(&path, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(only_owner_writes(&path).is_err());
    }
}
