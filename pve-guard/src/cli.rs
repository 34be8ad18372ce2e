//! How the process starts: hardened, and with hardly any arguments.

use std::process::ExitCode;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};

use crate::client::say;
use crate::policy::Policy;
use crate::{apt, caller, serve, sys};

/// The argument of the unit that upgrades; sudo's rule permits no argument,
/// and one that came through sudo is refused again here.
pub(crate) const UPGRADE_UNIT: &str = "--upgrade-unit";

const HELP: &str = "\
pve-guard: root helper of proxmox-mcp on a Proxmox VE node

Without arguments it reads one request as a JSON line from standard input.
As root, from a shell:
  pve-guard policy check    check /etc/pve-guard/policy.toml and say what it means
  pve-guard --version
  pve-guard --help
See pve-guard(8).";

/// Runs the guard: what `main` does.
#[must_use]
pub fn run() -> ExitCode {
    let Ok(()) = harden() else {
        say("pve-guard: cannot make its own process safe");
        return ExitCode::from(3);
    };
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap_or("?")).collect();
    let status = match args.as_slice() {
        _ if !caller::is_root() => {
            say("pve-guard: only root can run this");
            3
        }
        [] => serve::serve(),
        _ if caller::by_sudo() => usage(),
        ["policy", "check"] => check_policy(),
        ["--version"] => print(&format!("pve-guard {}", env!("CARGO_PKG_VERSION"))),
        ["--help"] => print(HELP),
        [UPGRADE_UNIT, plan] => apt::unit::run(plan),
        _ => usage(),
    };
    ExitCode::from(status)
}

/// Makes nothing that was inherited matter, but for standard input, output
/// and error.
fn harden() -> std::io::Result<()> {
    sys::close_inherited()?;
    sys::default_signals(&[
        Signal::SIGCHLD,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ])?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    umask(Mode::from_bits_truncate(0o022));
    std::env::set_current_dir("/")
}

fn usage() -> u8 {
    say(serve::USAGE);
    2
}

fn print(text: &str) -> u8 {
    use std::io::Write as _;
    // A closed standard output is no fault.
    let _ = writeln!(std::io::stdout(), "{text}");
    0
}

fn check_policy() -> u8 {
    match Policy::load() {
        Ok(policy) => print(policy.meaning().trim_end()),
        Err(refused) => {
            say(&refused.message);
            1
        }
    }
}
