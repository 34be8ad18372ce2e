//! From command line, environment and files to one [`Config`].

use std::{collections::BTreeMap, path::Path};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::{
    Config, Origin, Sources, Warning,
    dirs::{self, CONFIG_DIR},
    env_file::{self, BadLine, Entry},
    files, nearest_variable,
    table::VARIABLES,
    token,
    vars::{Draft, Variable, variable},
};
use crate::{Code, Error, Result, safety::Flag};

/// A configuration and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// What should be mended.
    pub warnings: Vec<Warning>,
    /// Where each variable and each flag came from; those that nobody set are absent.
    pub origin: BTreeMap<&'static str, Origin>,
    /// What was written for each variable that was set; `(set)` for a secret.
    pub written: BTreeMap<&'static str, String>,
}

/// Reads everything. A function of `sources` and the files that they name.
///
/// # Errors
/// `config`, with variable, file, line and what is allowed, for the first thing that cannot be
/// meant.
pub fn load(sources: &Sources) -> Result<Loaded> {
    let dirs = dirs::directories(sources)?;
    let mut loader = Loader { sources, warnings: Vec::new(), origin: BTreeMap::new() };
    files::check(&dirs.config, &mut loader.warnings)?;
    files::check(&dirs.state, &mut loader.warnings)?;
    let env_path = dirs.config.join(".env");
    let entries = loader.entries(&env_path)?;
    loader.judge_names(&env_path, &entries, |name| variable(name).is_some());
    loader.judge_environment();

    let resolve = |text: &str| {
        let path = Path::new(text);
        dirs::below_home(sources, path).unwrap_or_else(|| dirs.config.join(path))
    };
    let mut draft = Draft {
        config: Config::minimal(dirs.clone()),
        token: token::Parts::default(),
        secret_file: None,
        resolve: &resolve,
    };
    let mut written = BTreeMap::new();
    for variable in VARIABLES {
        let Some((value, origin)) = loader.value(variable.name, &env_path, &entries)? else {
            continue;
        };
        apply(variable, &mut draft, &value, &origin)?;
        let shown = if variable.secret { "(set)".to_owned() } else { value };
        written.insert(variable.name, shown);
        loader.origin.insert(variable.name, origin);
    }
    let Draft { mut config, mut token, secret_file, .. } = draft;
    if let Some(path) = secret_file {
        loader.secret_file(&path, &mut token)?;
    }
    if let Some(id) = written.get_mut("PROXMOX_TOKEN_ID") {
        // The field may hold a pasted header; show what was understood of it.
        *id = "(set)".to_owned();
    }
    loader.token(&token, &mut config)?;
    if let (Some(id), Some(token)) = (written.get_mut("PROXMOX_TOKEN_ID"), &config.token) {
        *id = token.id.clone();
    }
    loader.flags(&mut config)?;
    loader.together(&config)?;
    Ok(Loaded { config, warnings: loader.warnings, origin: loader.origin, written })
}

/// Hands a value to its variable, and says where it stood when it is wrong.
fn apply(variable: &Variable, draft: &mut Draft<'_>, value: &str, origin: &Origin) -> Result<()> {
    let result = if value.chars().any(char::is_control) {
        Err(Error::new(Code::Config, "the value has a line break or control character"))
    } else {
        (variable.apply)(draft, value)
    };
    result.map_err(|e| {
        let allowed = format!("allowed: {}", variable.allowed);
        let hint = if e.hint.is_empty() { allowed } else { format!("{allowed}; {}", e.hint) };
        at(Error::new(Code::Config, format!("{}: {}", variable.name, e.message)).hint(hint), origin)
            .with("variable", variable.name)
            .with("allowed", variable.allowed)
    })
}

/// Puts the place in front of a message, and into the structured form.
fn at(mut error: Error, origin: &Origin) -> Error {
    error.message = format!("{origin}: {}", error.message);
    if let Origin::File { path, line } = origin {
        error = error.with("file", path.display().to_string()).with("line", *line);
    }
    error
}

struct Loader<'a> {
    sources: &'a Sources,
    warnings: Vec<Warning>,
    origin: BTreeMap<&'static str, Origin>,
}

impl Loader<'_> {
    /// The assignments of a file; none when it does not exist.
    fn entries(&mut self, path: &Path) -> Result<Vec<Entry>> {
        let bytes = files::read(path, &mut self.warnings)?.unwrap_or_default();
        env_file::parse(&bytes).map_err(|bad| unreadable(path, &bad))
    }

    /// The text of a variable and where it stood. An empty one counts as not set.
    fn value(
        &self,
        name: &'static str,
        path: &Path,
        entries: &[Entry],
    ) -> Result<Option<(String, Origin)>> {
        if let Some(value) = self.sources.args.get(name).filter(|v| !v.trim().is_empty()) {
            return Ok(Some((value.trim().to_owned(), Origin::CommandLine)));
        }
        if let Some(value) = self.sources.env_value(name) {
            let text = value.to_str().ok_or_else(|| {
                at(
                    Error::new(Code::Config, format!("{name}: the value is not UTF-8")),
                    &Origin::Environment,
                )
                .hint("set it again")
                .with("variable", name)
            })?;
            if !text.trim().is_empty() {
                return Ok(Some((text.trim().to_owned(), Origin::Environment)));
            }
        }
        let entry = entries.iter().rev().find(|e| e.name == name && !e.value.trim().is_empty());
        Ok(entry.map(|e| {
            (e.value.trim().to_owned(), Origin::File { path: path.to_owned(), line: e.line })
        }))
    }

    /// Warns of names that a file should not hold, and of names that it holds twice.
    fn judge_names(&mut self, path: &Path, entries: &[Entry], known: impl Fn(&str) -> bool) {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for entry in entries {
            let origin = Origin::File { path: path.to_owned(), line: entry.line };
            if let Some(first) = seen.insert(&entry.name, entry.line) {
                let message = format!("{} is set in line {first} too; this one holds", entry.name);
                self.warnings.push(Warning::new(message).at(origin.clone()));
            }
            if !known(&entry.name)
                && let Some(warning) = misplaced(&entry.name)
            {
                self.warnings.push(warning.at(origin));
            }
        }
    }

    /// Warns of names in the environment that are nearly ours; others' are left alone.
    fn judge_environment(&mut self) {
        for name in self.sources.env.keys() {
            let known = variable(name).is_some() || Flag::of_variable(name).is_some();
            if known || name == CONFIG_DIR || !name.starts_with("PROXMOX_") {
                continue;
            }
            let near = nearest_variable(name).filter(|near| strsim::osa_distance(name, near) <= 2);
            if near.is_some() || name.starts_with("PROXMOX_ALLOW_") {
                let warning = unknown(name);
                self.warnings.push(warning.at(Origin::Environment));
            }
        }
    }

    /// Takes the secret from its file.
    fn secret_file(&mut self, path: &Path, token: &mut token::Parts) -> Result<()> {
        let [from_value, from_file] = ["PROXMOX_TOKEN_SECRET", "PROXMOX_TOKEN_SECRET_FILE"]
            .map(|name| self.origin.get(name).map_or(0, Origin::rank));
        if from_value > from_file {
            return Ok(());
        }
        let origin = self.origin.get("PROXMOX_TOKEN_SECRET_FILE").cloned();
        let origin = origin.unwrap_or(Origin::Default);
        let fail = |message: String, hint: &str| {
            Err(at(Error::new(Code::Config, message).hint(hint), &origin)
                .with("variable", "PROXMOX_TOKEN_SECRET_FILE"))
        };
        if from_value == from_file {
            let message = "PROXMOX_TOKEN_SECRET and PROXMOX_TOKEN_SECRET_FILE are both set";
            return fail(message.to_owned(), "remove one of them");
        }
        let shown = path.display();
        let Some(bytes) = files::read(path, &mut self.warnings)? else {
            let message = format!("PROXMOX_TOKEN_SECRET_FILE: there is no file {shown}");
            return fail(message, "put the token's secret there, in one line");
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
        if text.is_empty() || text.chars().any(char::is_control) {
            let message = format!("PROXMOX_TOKEN_SECRET_FILE: {shown} is not a file of one line");
            return fail(message, "put the token's secret there and nothing else");
        }
        token.secret = Some(SecretString::from(text));
        Ok(())
    }

    /// Puts the token together.
    fn token(&mut self, parts: &token::Parts, config: &mut Config) -> Result<()> {
        let names = ["PROXMOX_TOKEN_ID", "PROXMOX_TOKEN_SECRET", "PROXMOX_TOKEN_SECRET_FILE"];
        let origin = names.iter().find_map(|name| self.origin.get(name)).cloned();
        let Some(origin) = origin else { return Ok(()) };
        let Some(read) = parts.read().map_err(|e| at(e, &origin))? else { return Ok(()) };
        if !read.secret_is_uuid {
            self.warnings.push(
                Warning::new("the token secret is not a UUID of 36 characters")
                    .hint("look whether it was copied whole")
                    .at(origin),
            );
        }
        config.token = Some(read.token);
        Ok(())
    }

    /// Reads `critical.env`, over which command line and environment win.
    fn flags(&mut self, config: &mut Config) -> Result<()> {
        let path = config.critical_file.clone();
        let bytes = files::read(&path, &mut self.warnings)?;
        match &bytes {
            Some(bytes) => config.critical_sha256 = Some(hex(&Sha256::digest(bytes))),
            None if self.origin.contains_key("PROXMOX_CRITICAL_FILE") => {
                let message = format!("there is no file {}, so every flag is off", path.display());
                let warning = Warning::new(message).hint("`proxmox-mcp init` writes one");
                let origin = self.origin.get("PROXMOX_CRITICAL_FILE").cloned();
                self.warnings.push(Warning { origin, ..warning });
            }
            None => {}
        }
        let entries =
            env_file::parse(&bytes.unwrap_or_default()).map_err(|bad| unreadable(&path, &bad))?;
        self.judge_names(&path, &entries, |name| Flag::of_variable(name).is_some());
        for flag in Flag::ALL.iter().copied() {
            let name = flag.variable();
            // Unlike elsewhere an empty value counts: it turns the flag off.
            let found =
                self.sources.args.get(name).map(|v| (v.as_str().into(), Origin::CommandLine));
            let found = found.or_else(|| {
                Some((self.sources.env_value(name)?.to_string_lossy(), Origin::Environment))
            });
            // Nothing is read into a flag: quotes and comments belong to its text, and
            // only a word for on that stands alone turns it on.
            let entry = entries.iter().rev().find(|e| e.name == name);
            let found = found.or_else(|| {
                let entry = entry?;
                let origin = Origin::File { path: path.clone(), line: entry.line };
                Some((entry.written.as_str().into(), origin))
            });
            let Some((value, origin)) = found else { continue };
            config.flags.set(flag, &value);
            let in_file = matches!(origin, Origin::File { .. });
            let read = entry.filter(|_| in_file).map_or(&*value, |entry| &entry.value);
            if !config.flags.is_on(flag) && !means_off(read) {
                let message = format!("{name} is off: {value:?} is not a word for on");
                let hint =
                    "on is: enabled, 1, true, yes, on, without quotes and with nothing after it";
                self.warnings.push(Warning::new(message).hint(hint).at(origin.clone()));
            }
            self.origin.insert(name, origin);
        }
        Ok(())
    }

    /// What only shows when everything is known.
    fn together(&mut self, config: &Config) -> Result<()> {
        if let (Some(http), Some(token)) = (&config.http.token, &config.token) {
            let (http, secret) = (http.expose_secret(), token.secret.expose_secret());
            if http.contains(secret) || http == token.id {
                let error = Error::new(Code::Config, "PROXMOX_HTTP_TOKEN is Proxmox's own token")
                    .hint("make another one for the HTTP service: openssl rand -hex 32")
                    .with("variable", "PROXMOX_HTTP_TOKEN");
                return Err(self.place(error, "PROXMOX_HTTP_TOKEN"));
            }
        }
        for pin in &config.tls.fingerprints {
            if let Some(host) = &pin.host
                && !config.hosts.iter().any(|known| known.is_host(host))
            {
                let message = format!("a fingerprint is for {host}, which is not in PROXMOX_HOST");
                self.warn(message, "name the host as PROXMOX_HOST does", "PROXMOX_TLS_FINGERPRINT");
            }
        }
        if config.tls.insecure {
            let pinned = !config.tls.fingerprints.is_empty() || config.tls.ca_file.is_some();
            let (message, hint) = if pinned {
                ("PROXMOX_TLS_INSECURE has no effect, the certificate is checked", "remove it")
            } else {
                (
                    "the node's certificate is not checked, anyone between can take the token",
                    "run `proxmox-mcp fingerprint` and pin it",
                )
            };
            self.warn(message.to_owned(), hint, "PROXMOX_TLS_INSECURE");
        }
        if config.read_allowed_only && config.allowed_vmids.is_none() {
            let message = "PROXMOX_READ_VMIDS=allowed has no effect without PROXMOX_ALLOWED_VMIDS";
            self.warn(message.to_owned(), "set it, or remove this", "PROXMOX_READ_VMIDS");
        }
        for path in [Some(&config.ssh.key), config.http.clients.as_ref()].into_iter().flatten() {
            files::check(path, &mut self.warnings)?;
        }
        Ok(())
    }

    fn warn(&mut self, message: String, hint: &str, name: &str) {
        let origin = self.origin.get(name).cloned();
        self.warnings.push(Warning { message, hint: hint.to_owned(), origin });
    }

    fn place(&self, error: Error, name: &str) -> Error {
        match self.origin.get(name) {
            Some(origin) => at(error, origin),
            None => error,
        }
    }
}

fn unreadable(path: &Path, bad: &BadLine) -> Error {
    let error = Error::new(Code::Config, bad.message).hint(bad.hint);
    if bad.line == 0 {
        let message = format!("{}: {}", path.display(), bad.message);
        return Error { message, ..error }.with("file", path.display().to_string());
    }
    at(error, &Origin::File { path: path.to_owned(), line: bad.line })
}

/// Why a name is not for the file that it stands in; `None` for one that is none of ours.
fn misplaced(name: &str) -> Option<Warning> {
    if name == CONFIG_DIR {
        let hint = "set it in the environment, it says where this file is looked for";
        return Some(Warning::new(format!("{name} has no effect here")).hint(hint));
    }
    if Flag::of_variable(name).is_some() {
        let hint = "write it into critical.env";
        return Some(Warning::new(format!("{name} has no effect here")).hint(hint));
    }
    if variable(name).is_some() {
        return Some(Warning::new(format!("{name} has no effect here")).hint("write it into .env"));
    }
    let near = nearest_variable(name);
    let typo = near.is_some_and(|near| strsim::osa_distance(name, near) <= 2);
    (typo || name.to_ascii_uppercase().starts_with("PROXMOX_")).then(|| unknown(name))
}

fn unknown(name: &str) -> Warning {
    let warning = Warning::new(format!("{name} is not a variable of this server"));
    match nearest_variable(name) {
        Some(near) => warning.hint(format!("did you mean {near}?")),
        None => warning,
    }
}

/// Words that plainly mean off, so that nobody is told what they know.
fn means_off(value: &str) -> bool {
    let words = ["", "disabled", "0", "false", "no", "off"];
    words.contains(&value.trim().to_ascii_lowercase().as_str())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
