//! The script that makes the account on a node, and undoes it.

use std::path::Path;

use super::key_file;
use crate::{Code, Error, Result, config::Config};

const SCRIPT: &str = include_str!("account.sh");
/// The sudo rule, as the guard's package documents it.
const SUDOERS: &str = include_str!("../../../packaging/deb/sudoers");

/// What the script does when it is run without an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Makes the account; safe to repeat.
    Make,
    /// Takes everything away that it made.
    Remove,
}

/// The script for this machine's key and address. `name` is the account;
/// without one it is that of the configuration.
///
/// # Errors
/// `config` when the key or the address is not there yet, `invalid_argument`
/// for a name that is no account's.
pub fn script(config: &Config, name: Option<&str>, action: Action) -> Result<String> {
    let name = name.unwrap_or(&config.ssh.user);
    check_name(name)?;
    let from = config.ssh.allowed_ip.as_deref().ok_or_else(|| {
        Error::new(Code::Config, "PROXMOX_SSH_ALLOWED_IP is not set")
            .hint("run `proxmox-mcp ssh-setup --append-env`, which finds it out")
    })?;
    let key = public_key(&config.ssh.key)?;
    // Nothing that goes between the script's single quotes can end them.
    if [from, key.as_str()].iter().any(|value| value.contains(['\'', '"', '\\', '\n', '$', '`'])) {
        return Err(Error::new(Code::Config, "the key or the address holds a quote"));
    }
    let rule = match name {
        "proxmox-mcp" => "pve-guard".to_owned(),
        other => format!("pve-guard-{other}"),
    };
    let action = match action {
        Action::Make => "make",
        Action::Remove => "--remove",
    };
    let mut script = SCRIPT.to_owned();
    let values = [
        // First, as it names the account.
        ("SUDOERS", SUDOERS.trim_end()),
        ("ACCOUNT", name),
        ("FROM", from),
        ("KEY", &key),
        ("RULE", &rule),
        ("ACTION", action),
    ];
    for (place, value) in values {
        script = script.replace(&format!("@{place}@"), value);
    }
    Ok(script)
}

fn public_key(path: &Path) -> Result<String> {
    key_file::PrivateKey::read(path)?.public(path)
}

/// The names that `useradd` takes everywhere, and that sudoers reads as a user.
fn check_name(name: &str) -> Result<()> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if first && rest && name.len() <= 32 && name != "root" {
        return Ok(());
    }
    Err(Error::argument(format!("{name:?} cannot be the account's name"))
        .hint("use lower-case letters, digits and -, beginning with a letter"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::config::Dirs;

    fn config(folder: &Path) -> Config {
        let dirs = Dirs { config: folder.to_owned(), state: folder.to_owned() };
        let mut config = Config::minimal(dirs);
        config.ssh.allowed_ip = Some("192.0.2.10".into());
        key_file::make(&config.ssh.key).unwrap();
        config
    }

    #[test]
    fn the_script_says_who_from_where_and_what() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let text = script(&config, None, Action::Make).unwrap();
        let key = public_key(&config.ssh.key).unwrap();
        assert!(text.contains("account='proxmox-mcp'\nfrom='192.0.2.10'\n"), "{text}");
        assert!(text.contains(&format!("key='{key}'\n")), "{text}");
        assert!(text.contains("rule='/etc/sudoers.d/pve-guard'\n"), "{text}");
        assert!(text.contains("${1:-make}"), "{text}");
        assert!(text.contains("\nproxmox-mcp ALL=(root) NOPASSWD: /usr/sbin/pve-guard \"\"\n"));
        assert_eq!(text.matches('@').count(), text.matches("\"$@\"").count(), "{text}");
        let undo = script(&config, Some("other"), Action::Remove).unwrap();
        assert!(undo.contains("${1:---remove}") && undo.contains("pve-guard-other"), "{undo}");
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        for name in ["", "root", "-rf", "a b", "a'b", "A", "x;id", "a\nb", "*", "ALL", "1a"] {
            let error = script(&config, Some(name), Action::Make).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument, "{name:?}");
        }
        let mut lacking = config.clone();
        lacking.ssh.allowed_ip = None;
        assert!(script(&lacking, None, Action::Make).unwrap_err().hint.contains("ssh-setup"));
        lacking = config;
        lacking.ssh.key = folder.path().join("nothing");
        assert!(script(&lacking, None, Action::Make).unwrap_err().hint.contains("ssh-setup"));
    }
}
