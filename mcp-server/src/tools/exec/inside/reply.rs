//! What a script answers: a word first, then what it is about.

use super::Ran;
use crate::{Code, Error, Result, pve::Vmid, safety::deed::Place};

/// What an error says of a guest that cannot run our scripts.
pub(super) const NO_TOOLS: &str = "no-tools";

/// The answer of a script.
#[derive(Debug)]
pub(in crate::tools::exec) enum Reply {
    /// It did it: what stands on its first line, and what follows.
    Done(String, Vec<u8>),
    /// The path leads elsewhere, and nothing was done.
    Leads(String),
    /// It could not, for a reason that has a word.
    Failed(String, String),
}

impl Reply {
    /// Reads the output of a script that has ended.
    pub(super) fn read(name: &str, place: &Place, windows: bool, ran: &Ran) -> Result<Self> {
        let out = &ran.stdout.bytes;
        let (head, body) = match out.iter().position(|b| *b == b'\n') {
            Some(at) => (out.get(..at).unwrap_or_default(), out.get(at + 1..).unwrap_or_default()),
            None => (out.as_slice(), &[][..]),
        };
        let head = String::from_utf8_lossy(head).into_owned();
        if let Some(rest) = head.strip_prefix("E ") {
            let (word, _) = rest.split_once(' ').unwrap_or((rest, ""));
            // The detail may have line feeds of its own.
            let detail = out.get("E  ".len() + word.len()..).unwrap_or_default();
            return Ok(Self::Failed(
                word.to_owned(),
                String::from_utf8_lossy(detail).trim().to_owned(),
            ));
        }
        if head == "LINK" {
            return String::from_utf8(body.to_vec()).map(Self::Leads).map_err(|_| not_text(place));
        }
        if head == "OK" || head.starts_with("OK ") {
            let rest = head.strip_prefix("OK ").unwrap_or_default().to_owned();
            return Ok(Self::Done(rest, body.to_vec()));
        }
        let said = ran.stderr.bytes.iter().chain(out).copied().take(300).collect::<Vec<_>>();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let how = match (ran.exit_code, ran.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit code".to_owned(),
        };
        let error = Error::new(
            Code::Conflict,
            format!("{name} in guest {} ended with {how}: {said}", place.vmid),
        )
        .with("reason", NO_TOOLS);
        if windows {
            return Err(error.hint("the guest needs Windows PowerShell 5.1, which may run more than its restricted language"));
        }
        Err(match ran.exit_code {
            Some(126 | 127 | 255) => {
                error.hint("the guest needs /bin/sh and the usual small tools")
            }
            _ => error.hint("look at the guest: pve_ct_exec or pve_vm_exec shows more"),
        })
    }

    /// The real path that a script found.
    pub fn path(self, place: &Place, path: &str) -> Result<String> {
        match self {
            Self::Done(_, body) => String::from_utf8(body).map_err(|_| not_text(place)),
            other => Err(found(other, place.vmid, path)),
        }
    }
}

fn not_text(place: &Place) -> Error {
    Error::new(
        Code::Conflict,
        format!("in guest {} the path leads to a name that is not UTF-8", place.vmid),
    )
    .hint("take pve_ct_exec or pve_vm_exec for such names")
}

/// Why a script could not do what it should, as an error.
pub(in crate::tools::exec) fn found(reply: Reply, vmid: Vmid, path: &str) -> Error {
    let (word, detail) = match reply {
        Reply::Failed(word, detail) => (word, detail),
        Reply::Leads(to) => ("moved".to_owned(), to),
        Reply::Done(..) => ("other".to_owned(), "the answer makes no sense".to_owned()),
    };
    let with =
        |text: &str| if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") };
    let (code, why, hint) = match word.as_str() {
        "missing" => (Code::NotFound, "there is no such file or directory".to_owned(), ""),
        "dangling" => (Code::NotFound, "it is a symbolic link that leads nowhere".to_owned(), ""),
        "no-directory" => {
            (Code::NotFound, "its directory does not exist".to_owned(), "`create_dirs` makes it")
        }
        "directory" => (
            Code::InvalidArgument,
            "it is a directory".to_owned(),
            "pve_guest_file_list shows what is in it",
        ),
        "not-directory" => (
            Code::InvalidArgument,
            "it is, or stands below, something that is no directory".to_owned(),
            "pve_guest_file_read reads files",
        ),
        "special" => (
            Code::InvalidArgument,
            "it is a pipe, a socket or a device, not a file".to_owned(),
            "only regular files are read and written",
        ),
        "link" => (
            Code::InvalidArgument,
            with("it is a symbolic link"),
            "give the path that it leads to, or set `follow`",
        ),
        "denied" => (
            Code::Conflict,
            with("the guest does not allow it"),
            "look at its permissions and attributes",
        ),
        "read-only" => (
            Code::Conflict,
            with("its file system is read-only"),
            "nothing was changed; look at how it is mounted, and at the kernel's log for errors",
        ),
        "full" => (
            Code::Conflict,
            with("its file system is full"),
            "the file is as it was; free space or enlarge the disk first",
        ),
        "name" => (Code::InvalidArgument, with("its name is too long"), "take a shorter name"),
        "owner" => (
            Code::InvalidArgument,
            with("the owner is not known in the guest"),
            "the file is as it was",
        ),
        "changed" => (
            Code::DigestChanged,
            if detail.is_empty() {
                "it changed meanwhile, or is not there".to_owned()
            } else {
                format!("it has SHA-256 {detail} now")
            },
            "the file is as it was: read it again and look at the difference",
        ),
        "torn" => (
            Code::Conflict,
            "the content did not arrive whole".to_owned(),
            "the file is as it was; send it again",
        ),
        "moved" => (Code::Conflict, with("its directory is another one now"), "call again"),
        "tools" => (
            Code::Conflict,
            with("a program that this needs is missing in the guest"),
            "install it, or take pve_ct_exec or pve_vm_exec",
        ),
        _ => (Code::Conflict, with("the guest could not do it"), "look at the guest"),
    };
    let mut error = Error::new(code, format!("{path:?} in guest {vmid}: {why}")).with("path", path);
    error = error.with("reason", word);
    if hint.is_empty() { error } else { error.hint(hint) }
}
