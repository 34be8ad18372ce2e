//! The upgrade itself: a transient unit of systemd that runs this same binary,
//! so that neither a cut connection nor a restart of sshd touches it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{SigSet, Signal};

use super::record::{End, Record};
use super::{LISTS, agree, options, plan, wait_until_free};
use crate::cli::UPGRADE_UNIT;
use crate::client::{Client, say};
use crate::node::{self, program};
use crate::policy::Policy;
use crate::process::Job;
use crate::protocol::{Code, Refused, UpgradeStarted};
use crate::{kernels, lock, sys};

/// Name of the unit; there is one, so two upgrades cannot run at once.
pub(crate) const UNIT: &str = "pve-guard-upgrade.service";
const TIMEOUT_S: u64 = 60;
/// How often the output of apt-get is taken to the journal.
const GLANCE: Duration = Duration::from_millis(200);
/// The first systemd that has `--expand-environment`.
const EXPAND_SINCE: u32 = 254;

/// Starts the unit for this plan.
///
/// # Errors
/// `internal`: systemd did not start it.
pub(crate) fn start(agreed: &str, client: &mut Client) -> Result<UpgradeStarted, Refused> {
    // What an earlier run left: a failed unit keeps its name, a good one stays
    // active. Neither is an error when there was none.
    for verb in ["reset-failed", "stop"] {
        Job::kept(program::SYSTEMCTL, &[verb, UNIT], TIMEOUT_S).detached().run(client)?;
    }
    let unit = format!("--unit={UNIT}");
    let mut args = vec![
        unit.as_str(),
        "--quiet",
        "--description=pve-guard: upgrade of the packages of this node",
        "--service-type=exec",
        "--property=RemainAfterExit=yes",
        "--property=KillMode=process",
        "--property=TimeoutStopSec=300",
    ];
    if systemd_version(client)? >= EXPAND_SINCE {
        args.push("--expand-environment=no");
    }
    let guard = node::at(program::GUARD).display().to_string();
    args.extend(["--", &guard, UPGRADE_UNIT, agreed]);
    let ended = Job::kept(program::SYSTEMD_RUN, &args, TIMEOUT_S).detached().run(client)?;
    if !ended.well() {
        return Err(Refused::new(
            Code::Internal,
            format!("systemd-run {}: {}", ended.how(), kernels::last_line(&ended)),
        ));
    }
    match super::status::show(client)?.invocation_id {
        Some(invocation_id) => Ok(UpgradeStarted { unit: UNIT.into(), invocation_id }),
        None => Err(Refused::new(Code::Internal, "systemd started the unit and does not know it")
            .hint("ask with upgrade-status")),
    }
}

fn systemd_version(client: &mut Client) -> Result<u32, Refused> {
    let ended =
        Job::kept(program::SYSTEMCTL, &["show", "--property=Version", "--value"], TIMEOUT_S)
            .run(client)?;
    let digits: String = ended.stdout.text().chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse().unwrap_or(0))
}

/// What the unit does; says its exit status.
pub(crate) fn run(agreed: &str) -> u8 {
    let Ok(invocation_id) = std::env::var("INVOCATION_ID") else {
        say("pve-guard: this is for the unit of an upgrade alone");
        return 2;
    };
    // An upgrade is not left half done for the end of the unit.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGHUP);
    if let Err(error) = signals.thread_block() {
        say(&format!("pve-guard: {error}"));
        return 3;
    }
    let mut record = Record {
        invocation_id,
        plan: agreed.to_owned(),
        boot_id: node::boot_id().unwrap_or_default(),
        started: now(),
        end: None,
    };
    if let Err(error) = record.write() {
        say(&format!("pve-guard: {}: {error}", node::STATE_DIR));
        return 3;
    }
    let end = upgrade(agreed).unwrap_or_else(|refused| End {
        finished: now(),
        result: refused.code.as_str().into(),
        exit_code: None,
        message: refused.message,
        kept_conffiles: Vec::new(),
    });
    say(&format!("pve-guard: {}: {}", end.result, end.message));
    let status = u8::from(end.result != "success");
    record.end = Some(End { finished: now(), ..end });
    match record.write() {
        Ok(()) => status,
        Err(error) => {
            say(&format!("pve-guard: {}: {error}", node::STATE_DIR));
            3
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn upgrade(agreed: &str) -> Result<End, Refused> {
    let internal =
        |what: &str, error: io::Error| Refused::new(Code::Internal, format!("{what}: {error}"));
    let _held = lock::hold(lock::NODE_CHANGE).map_err(|error| internal("lock file", error))?;
    let policy = Policy::load()?;
    let mut client = Client::default();
    wait_until_free(policy.upgrade.lock_wait_s, &mut |who| {
        who.into_iter().for_each(say);
        true
    })?;
    let lists = copy_lists().map_err(|error| internal("copy of the package lists", error))?;
    agree(&plan(Some(&lists), &mut client)?, agreed)?;
    let (exit_code, said) = apt_get(&lists, policy.upgrade.lock_wait_s)
        .map_err(|error| internal(program::APT_GET, error))?;
    // Only a copy; the next run makes its own.
    let _ = fs::remove_dir_all(&lists);
    let well = exit_code == Some(0);
    Ok(End {
        finished: now(),
        result: if well { "success" } else { "exit-code" }.into(),
        exit_code,
        message: if well { "the upgrade is done".into() } else { fault(&said) },
        kept_conffiles: kept_conffiles(&said),
    })
}

/// A copy that nobody else renews, so that what is done is what was looked at.
fn copy_lists() -> io::Result<PathBuf> {
    let copy = node::private_dir(node::STATE_DIR)?.join("lists");
    match fs::remove_dir_all(&copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::DirBuilder::new().mode(0o755).create(&copy)?;
    for entry in fs::read_dir(node::at(LISTS))? {
        let entry = entry?;
        // What a list links to may be renewed in its place, so it is read through.
        if fs::metadata(entry.path())?.is_file() && entry.file_name() != "lock" {
            fs::copy(entry.path(), copy.join(entry.file_name()))?;
        }
    }
    fs::create_dir(copy.join("partial"))?;
    Ok(copy)
}

/// Runs the upgrade; says its exit code and all it said.
///
/// Its output goes to a file and from there to the journal: were it a pipe to
/// this process, the end of this process would end dpkg in the middle.
fn apt_get(lists: &Path, lock_wait_s: u64) -> io::Result<(Option<i32>, String)> {
    let path = node::at(node::STATE_DIR).join("upgrade.log");
    let mut log =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&path)?;
    log.flush()?;
    let log = OpenOptions::new().append(true).open(&path)?;
    let mut args = options(Some(lists));
    for option in [
        "Dpkg::Options::=--force-confdef".to_owned(),
        "Dpkg::Options::=--force-confold".to_owned(),
        "Dpkg::Use-Pty=false".to_owned(),
        format!("DPkg::Lock::Timeout={lock_wait_s}"),
    ] {
        args.extend(["-o".to_owned(), option]);
    }
    args.extend(["-y".to_owned(), "dist-upgrade".to_owned()]);
    let mut command = Command::new(node::at(program::APT_GET));
    command
        .args(args)
        .current_dir("/")
        .env_clear()
        .envs([
            ("PATH", node::PATH),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "dumb"),
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("DEBIAN_PRIORITY", "critical"),
            ("UCF_FORCE_CONFFOLD", "1"),
            ("NEEDRESTART_MODE", "l"),
            ("NEEDRESTART_SUSPEND", "1"),
            ("APT_LISTCHANGES_FRONTEND", "none"),
            ("APT_LISTBUGS_FRONTEND", "none"),
        ])
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    let mut child = sys::unblock_signals(&mut command).spawn()?;
    let mut reader = File::open(&path)?;
    let mut said = Vec::new();
    loop {
        let status = child.try_wait()?;
        let seen = said.len();
        reader.read_to_end(&mut said)?;
        // A closed journal is no reason to stop.
        let _ = io::stdout().write_all(said.get(seen..).unwrap_or_default());
        if let Some(status) = status {
            return Ok((status.code(), String::from_utf8_lossy(&said).into_owned()));
        }
        std::thread::sleep(GLANCE);
    }
}

/// The first error that was said.
fn fault(said: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E: ") || line.starts_with("dpkg: error");
    let line = said.lines().find(is_error).or_else(|| said.lines().next_back());
    line.unwrap_or("apt-get failed and said nothing").to_owned()
}

/// Configuration files that dpkg or ucf left as they were.
fn kept_conffiles(said: &str) -> Vec<String> {
    let mut files: Vec<String> = said
        .lines()
        .filter_map(|line| {
            let rest = line.trim().strip_prefix("Configuration file '")?;
            rest.split_once('\'').map(|(file, _)| file.to_owned())
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_files_are_named_once() {
        let said = "Setting up tp (1.1) ...\n\nConfiguration file '/etc/tp.conf'\n \
                    ==> Modified (by you or by a script) since installation.\n\
                    Configuration file '/etc/tq.conf', does not exist on system.\n\
                    Configuration file '/etc/tp.conf'\n";
        assert_eq!(kept_conffiles(said), ["/etc/tp.conf", "/etc/tq.conf"]);
    }
}
