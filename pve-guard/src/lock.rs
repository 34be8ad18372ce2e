//! Lock files: how many commands run at once, and who holds a lock of dpkg.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, fcntl};

use crate::node;

/// Held by what changes the node's packages or what it boots.
pub(crate) const NODE_CHANGE: &str = "node-change";

/// A lock that lasts as long as this value, and no longer than the process.
pub(crate) struct Held(#[allow(dead_code)] Flock<File>);

/// Takes the named lock, unless somebody has it.
pub(crate) fn try_hold(name: &str) -> io::Result<Option<Held>> {
    match Flock::lock(open(name)?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(Held(lock))),
        Err((_, Errno::EAGAIN)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// Takes the named lock and waits for it.
pub(crate) fn hold(name: &str) -> io::Result<Held> {
    Flock::lock(open(name)?, FlockArg::LockExclusive).map(Held).map_err(|(_, errno)| errno.into())
}

/// Takes one of `count` places, unless all are taken.
pub(crate) fn try_place(count: u32) -> io::Result<Option<Held>> {
    for place in 0..count {
        if let Some(held) = try_hold(&format!("command-{place}"))? {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

fn open(name: &str) -> io::Result<File> {
    let dir = node::private_dir(node::RUN_DIR)?;
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join(format!("{name}.lock")))
}

/// Who holds a record lock (as dpkg and apt take them) on this file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: i32,
    pub(crate) name: String,
}

/// Asks, takes nothing. `None` when nobody holds it, or there is no such file.
pub(crate) fn record_holder(path: &Path) -> io::Result<Option<Holder>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut asked = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut asked))?;
    if asked.l_type == libc::F_UNLCK as libc::c_short {
        return Ok(None);
    }
    let name = std::fs::read_to_string(format!("/proc/{}/comm", asked.l_pid))
        .map_or_else(|_| "unknown".to_owned(), |comm| comm.trim().to_owned());
    Ok(Some(Holder { pid: asked.l_pid, name }))
}
