//! System calls that no safe wrapper exists for. All `unsafe` of the guard
//! stands in this file.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

/// Closes everything above standard error, whatever was inherited.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: called before the guard has opened anything, so no owner of a
    // descriptor in this process loses it.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    check(result).map(|_| ())
}

/// Gives these signals their default action, whatever was inherited.
pub(crate) fn default_signals(signals: &[Signal]) -> io::Result<()> {
    for &each in signals {
        // SAFETY: SIG_DFL installs no handler, so no code runs in a signal.
        unsafe { signal(each, SigHandler::SigDfl) }?;
    }
    Ok(())
}

/// Lets every signal reach what this command starts: it would inherit what is
/// blocked here.
pub(crate) fn unblock_signals(command: &mut Command) -> &mut Command {
    let unblock = || SigSet::empty().thread_set_mask().map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call, which
    // is allowed there, and allocates nothing.
    unsafe { command.pre_exec(unblock) }
}

/// Hands out a descriptor of the process, which stays that process's even
/// when its number is given to another.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and touches no memory of ours.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process of this descriptor.
pub(crate) fn pidfd_signal(pidfd: &OwnedFd, signal: Signal) -> io::Result<()> {
    let info: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: a null `siginfo` is allowed and means what kill(2) would send;
    // the other arguments are integers.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal as i32, info, 0)
    };
    check(result).map(|_| ())
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
