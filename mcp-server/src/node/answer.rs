//! Reads what comes back from the guard, and says what it means when it is not
//! what was hoped for.

use pve_guard::protocol::{self, MAX_LINE, Refused, Reply, Verb};
use serde_json::Value;

use super::{
    guard::Event,
    link::{Exit, Failure, Step},
    ssh::NOT_FORCED,
};
use crate::{Code, Error, Result};

/// Most of standard error, and of what is no reply, that is kept for explaining.
const KEPT: usize = 4096;

/// How hearing ended.
pub enum Heard {
    /// The far side ended, or the link broke.
    End(Result<Exit, Failure>),
    /// The link's thread is gone.
    Gone,
    /// The caller cancelled, and the guard did not answer to that in time.
    Cancelled,
}

/// The answer to one request, as it comes in.
pub struct Answer<'a> {
    node: &'a str,
    verb: &'a Verb,
    line: Vec<u8>,
    replies: u64,
    last: Option<Reply>,
    stderr: Vec<u8>,
    /// The first line that is no reply, or that came after the last one.
    junk: Option<Vec<u8>>,
}

impl<'a> Answer<'a> {
    /// Nothing heard yet.
    pub fn new(node: &'a str, verb: &'a Verb) -> Self {
        let (line, stderr) = (Vec::new(), Vec::new());
        Self { node, verb, line, replies: 0, last: None, stderr, junk: None }
    }

    /// Takes a piece of the guard's standard output.
    pub fn stdout(&mut self, mut bytes: &[u8], on_event: &mut dyn FnMut(Event<'_>)) {
        while self.junk.is_none() {
            let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                self.line.extend_from_slice(bytes);
                if self.line.len() > MAX_LINE {
                    self.junk = Some(std::mem::take(&mut self.line));
                }
                return;
            };
            let (head, rest) = bytes.split_at(end);
            self.line.extend_from_slice(head);
            bytes = rest.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            match Reply::parse(&line) {
                Ok(_) | Err(_) if self.last.is_some() => self.junk = Some(line),
                Ok(reply) => self.reply(reply, on_event),
                Err(_) => self.junk = Some(line),
            }
        }
    }

    fn reply(&mut self, reply: Reply, on_event: &mut dyn FnMut(Event<'_>)) {
        self.replies += 1;
        match reply {
            Reply::Stdout(bytes) => on_event(Event::Stdout(&bytes)),
            Reply::Stderr(bytes) => on_event(Event::Stderr(&bytes)),
            Reply::Progress(progress) => on_event(Event::Progress(&progress)),
            last @ (Reply::Done(_) | Reply::Refused(_)) => self.last = Some(last),
        }
    }

    /// Takes a piece of standard error. The guard writes none; what comes is
    /// from the shell, sudo or the loader before it.
    pub fn stderr(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.stderr.len()).min(bytes.len());
        self.stderr.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    /// What it comes to. The last line is the only truth about the end.
    pub fn conclude(self, heard: Heard) -> Result<Value> {
        if self.junk.is_none() {
            match self.last {
                Some(Reply::Done(answer)) => return Ok(answer),
                Some(Reply::Refused(refusal)) => return Err(refused(self.node, &refusal)),
                _ => {}
            }
        }
        match &heard {
            Heard::End(Err(failure)) if !failure.sent => return Err(failure.error.clone()),
            Heard::End(Ok(exit)) if self.replies == 0 => {
                let junk = self.junk.as_deref().map(text).unwrap_or_default();
                let found = explain(&text(&self.stderr), &junk, exit, self.verb.changes());
                if let Some(error) = found {
                    return Err(error);
                }
            }
            _ => {}
        }
        let why = match &heard {
            Heard::End(Err(failure)) => failure.error.message.clone(),
            Heard::Cancelled => "it was cancelled and has not ended in time".to_owned(),
            _ if self.junk.is_some() => "a line of its answer cannot be read".to_owned(),
            _ => "its answer ended without a last line".to_owned(),
        };
        Err(if self.verb.changes() { self.unknown(&why) } else { self.lost(&heard, &why) })
    }

    fn unknown(&self, why: &str) -> Error {
        let verb = self.verb.name().as_str();
        let look = match self.verb {
            Verb::PctExec(exec) => format!(
                "it ends when the connection does; look into container {} for what it did \
                 before sending it again",
                exec.vmid
            ),
            Verb::UpgradeStart { .. } => "ask upgrade-status whether it began".to_owned(),
            Verb::KernelPin { .. } | Verb::KernelUnpin { .. } => {
                "ask kernel-list what is pinned now".to_owned()
            }
            _ => "ask again".to_owned(),
        };
        Error::new(Code::OutcomeUnknown, format!("{verb} on {} was sent, but {why}", self.node))
            .hint(look)
            .with("step", Step::Guard.as_str())
    }

    fn lost(&self, heard: &Heard, why: &str) -> Error {
        let message = format!("{} on {}: {why}", self.verb.name().as_str(), self.node);
        match heard {
            Heard::Cancelled => Error::new(Code::Cancelled, message),
            _ => Step::Guard.failed(message).hint("nothing was changed; try again"),
        }
    }
}

/// A refusal of the guard as an error of ours.
#[must_use]
pub fn refused(node: &str, refusal: &Refused) -> Error {
    use protocol::Code as G;
    let step = match refusal.code {
        G::VerbDenied | G::VmidDenied | G::Policy | G::Limit | G::Busy => Step::Policy,
        G::Argument | G::NotFound | G::NotRunning | G::PlanChanged | G::Preflight => Step::Program,
        _ => Step::Guard,
    };
    let hint = match refusal.code {
        _ if !refusal.hint.is_empty() => refusal.hint.as_str(),
        G::VerbDenied | G::VmidDenied | G::Policy | G::Limit => {
            "the owner of the node can allow it in /etc/pve-guard/policy.toml; \
             `pve-guard policy check` says what that file means"
        }
        G::BadRequest | G::ProtocolUnsupported => {
            "install the package that `proxmox-mcp ssh-guard` writes"
        }
        G::Busy => "wait until what is running has ended",
        _ => "",
    };
    Error::new(Code::GuardRefused, format!("pve-guard on {node}: {}", clean(&refusal.message)))
        .hint(clean(hint))
        .with("guard_code", refusal.code.as_str())
        .with("step", step.as_str())
        .with("node", node)
}

/// What sudo says when it surely has not run the command.
const SUDO_REFUSES: &[&str] = &[
    "a password is required",
    "a terminal is required",
    "no tty present",
    "must have a tty",
    "not allowed to",
    "may not run",
    "not in the sudoers",
    "no valid sudoers sources",
    "must be owned by uid 0",
    "effective uid is not 0",
    "account validation failure",
];

/// What stood in the way, when no line of the guard was heard at all. `None`
/// when that cannot be told; with `surely`, also when the guard could have
/// run nevertheless.
fn explain(stderr: &str, junk: &str, exit: &Exit, surely: bool) -> Option<Error> {
    const ACCOUNT: &str = "run what `proxmox-mcp ssh-account` prints on the node again";
    let find = |wanted: &dyn Fn(&str) -> bool| stderr.lines().find(|l| wanted(l)).map(clean);
    let missing = |l: &str| l.contains("not found") || l.contains("No such file");
    let by_sudo = |l: &str| l.starts_with("sudo: ");
    if let Some(said) = find(&|l| missing(l) && by_sudo(l) && l.contains("/pve-guard")) {
        return Some(
            Step::Guard
                .failed(format!("pve-guard is not installed on the node: {said}"))
                .hint("run `proxmox-mcp ssh-guard` and follow its steps"),
        );
    }
    // The shell's own words from here: nothing of ours has run.
    if let Some(said) = find(&|l| missing(l) && !by_sudo(l) && l.contains("sudo: ")) {
        return Some(
            Step::Sudo
                .failed(format!("sudo is not installed on the node: {said}"))
                .hint("apt install sudo"),
        );
    }
    if NOT_FORCED.strip_prefix("echo ") == Some(junk.trim_end()) {
        return Some(
            Step::ForcedCommand
                .failed("the key is not bound to the guard, but can run anything")
                .hint(ACCOUNT),
        );
    }
    let refused = |l: &str| SUDO_REFUSES.iter().any(|words| l.contains(words));
    let other = |l: &str| !surely && by_sudo(l) && !l.contains("unable to resolve host");
    if let Some(said) = find(&|l| refused(l) || other(l)).filter(|_| exit.status != 0) {
        return Some(
            Step::Sudo.failed(format!("sudo does not run the guard: {said}")).hint(ACCOUNT),
        );
    }
    let said = junk.lines().next().map(clean).unwrap_or_default();
    if !surely && !said.is_empty() && !said.starts_with('{') {
        return Some(
            Step::ForcedCommand
                .failed(format!("something else than the guard answered: {said:?}"))
                .hint(format!(
                    "the key's line in authorized_keys must force the guard, and the account's \
                     shell must print nothing; {ACCOUNT}"
                )),
        );
    }
    None
}

/// Text that came over the wire, for one line of ours.
fn clean(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(300).collect::<String>().trim().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..KEPT).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(status: i32) -> Heard {
        Heard::End(Ok(Exit { status, signal: None }))
    }

    fn broken(sent: bool) -> Heard {
        Heard::End(Err(Failure { error: Step::Reach.failed("gone"), sent }))
    }

    /// What `stdout` and `stderr` of the far side come to for one verb.
    fn comes_to(verb: &Verb, stdout: &str, stderr: &str, heard: Heard) -> Result<Value> {
        let node = "pve1";
        let mut answer = Answer::new(node, verb);
        // Cut into pieces that end within lines.
        for piece in stdout.as_bytes().chunks(7) {
            answer.stdout(piece, &mut |_| {});
        }
        answer.stderr(stderr.as_bytes());
        answer.conclude(heard)
    }

    fn pin() -> Verb {
        Verb::KernelPin { version: "6.14.8-2-pve".into(), next_boot: false }
    }

    #[test]
    fn what_stood_in_the_way_is_named_with_its_step() {
        let cases = [
            (
                &*format!("{}\n", NOT_FORCED.replacen("echo ", "", 1)),
                "",
                0,
                "forced command",
                "ssh-account",
            ),
            ("", "sh: 1: sudo: not found\n", 127, "sudo", "apt install sudo"),
            ("", "sudo: a password is required\n", 1, "sudo", "ssh-account"),
            ("", "sudo: /usr/sbin/pve-guard: command not found\n", 1, "guard", "ssh-guard"),
            (
                "",
                "sudo: unable to resolve host vm: Name or service not known\n\
                 Sorry, user x is not allowed to execute '/usr/sbin/pve-guard' as root on vm.\n",
                1,
                "sudo",
                "ssh-account",
            ),
            ("", "sudo: /etc/sudo.conf is world writable\n", 1, "sudo", "ssh-account"),
            ("Welcome to node 7\nbye\n", "", 0, "forced command", "print nothing"),
            ("This account is currently not available.\n", "", 1, "forced command", ""),
            ("", "", 0, "guard", "try again"),
            ("", "sudo: unable to resolve host vm: no\n", 255, "guard", "try again"),
            // The guard's first line, cut: it is the guard, and has gone.
            ("{\"done\":{\"ver", "", 0, "guard", "try again"),
            ("{\"newer\":1}\n", "", 0, "guard", "try again"),
        ];
        for (stdout, stderr, status, step, hint) in cases {
            let error = comes_to(&Verb::Hello, stdout, stderr, exit(status)).unwrap_err();
            assert_eq!(error.code, Code::SshFailed, "{stderr}{stdout}: {error}");
            assert_eq!(error.ssh_step().map(Step::as_str), Some(step), "{stderr}{stdout}");
            assert!(error.hint.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_change_whose_end_was_not_seen_is_never_said_to_have_failed() {
        let cases = [
            ("", "", exit(0)),
            ("", "", exit(137)),
            ("", "sudo: unable to send audit message\n", exit(1)),
            ("hello from a profile\n", "", exit(0)),
            ("{\"done\":{\"pinned\"", "", exit(0)),
            ("{\"stdout\":\"aGk=\"}\n", "", exit(0)),
            ("{\"stdout\":\"aGk=\"}\n", "sudo: a password is required\n", exit(1)),
            ("{\"done\":{}}\n{\"done\":{}}\n", "", exit(0)),
            ("{\"done\":{}}\nrest\n", "", exit(0)),
            ("{\"done\":{},\"done\":{}}\n", "", exit(0)),
            ("", "", broken(true)),
            ("", "", Heard::Gone),
            ("", "", Heard::Cancelled),
        ];
        for (stdout, stderr, heard) in cases {
            let error = comes_to(&pin(), stdout, stderr, heard).unwrap_err();
            assert_eq!(error.code, Code::OutcomeUnknown, "{stdout}{stderr}: {error}");
            assert!(error.hint.contains("kernel-list"), "{error}");
        }
    }

    #[test]
    fn a_change_that_surely_was_not_made_is_said_to_have_failed() {
        let unsent = comes_to(&pin(), "", "", broken(false)).unwrap_err();
        assert_eq!(unsent.ssh_step(), Some(Step::Reach));
        let denied = comes_to(&pin(), "", "sudo: a password is required\n", exit(1)).unwrap_err();
        assert_eq!(denied.ssh_step(), Some(Step::Sudo));
    }

    #[test]
    fn the_last_line_is_the_only_truth() {
        let line = "{\"done\":{\"a\":1}}\n";
        // Whatever the exit status says, and whatever broke after it.
        for heard in [exit(0), exit(255), broken(true), Heard::Gone, Heard::Cancelled] {
            assert_eq!(comes_to(&pin(), line, "noise", heard).unwrap()["a"], 1);
        }
        let line = "{\"refused\":{\"code\":\"verb_denied\",\"message\":\"no\\nway\"}}\n";
        let error = comes_to(&pin(), line, "", exit(0)).unwrap_err();
        assert_eq!(error.code, Code::GuardRefused);
        assert_eq!(error.details["guard_code"], "verb_denied");
        assert_eq!(error.ssh_step(), Some(Step::Policy));
        assert_eq!(error.message, "pve-guard on pve1: no way");
        assert!(error.hint.contains("policy.toml"), "{error}");
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let node = "pve1";
        let mut answer = Answer::new(node, &Verb::Hello);
        for _ in 0..64 {
            answer.stdout(&[b'x'; 65_536], &mut |_| {});
        }
        assert!(answer.line.len() <= MAX_LINE + 65_536);
        assert!(answer.conclude(exit(0)).is_err());
    }
}
