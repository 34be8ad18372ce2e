//! The files and services of a simulated Windows guest, and what the server's
//! scripts do to them.

use sha2::{Digest, Sha256};

use crate::state::guest::Agent;

/// What stands in the way, as a word and a detail.
type Failed = (&'static str, String);

/// Where pieces lie.
const TEMP: &str = "C:\\Windows\\Temp";
/// When everything was made.
const MADE: i64 = 1_700_000_000;

/// The disk of a guest.
pub(super) struct Disk<'a> {
    agent: &'a mut Agent,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    File,
    Directory,
    Link(String),
}

/// A path with its links resolved, and what of it does not exist.
struct Real {
    path: String,
    rest: Vec<String>,
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn under(directory: &str, name: &str) -> String {
    format!("{}\\{name}", directory.trim_end_matches('\\'))
}

fn up(path: &str) -> &str {
    let at = path.rfind('\\').filter(|at| *at > 2).unwrap_or(3);
    path.get(..at).unwrap_or(path)
}

fn parts(path: &str) -> Vec<String> {
    path.get(3..)
        .unwrap_or_default()
        .split('\\')
        .filter(|p| !p.is_empty())
        .map(str::to_owned)
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

impl<'a> Disk<'a> {
    pub(super) fn of(agent: &'a mut Agent) -> Self {
        Self { agent }
    }

    pub(super) fn is_file(&self, path: &str) -> bool {
        self.key(path).is_some()
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        self.real(path, true).is_ok_and(|real| {
            real.rest.is_empty() && self.node(&real.path) == Some(Node::Directory)
        })
    }

    /// A file as it is spelled, by a path in any case.
    fn key(&self, path: &str) -> Option<&String> {
        self.agent.files.keys().find(|key| same(key, path))
    }

    /// Reads a file as the agent itself does: links are followed.
    pub(super) fn open(&self, path: &str) -> Option<&Vec<u8>> {
        let path = path.replace('/', "\\");
        let real = self.real(&path, true).ok().filter(|real| real.rest.is_empty())?;
        self.agent.files.get(self.key(&real.path)?)
    }

    /// Writes a file as the agent itself does.
    pub(super) fn put(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), String> {
        let cannot = |why: &str| format!("failed to open file '{path}' (mode: 'wb'): {why}");
        if !self.is_directory(up(path)) {
            return Err(cannot("The system cannot find the path specified."));
        }
        if self.full(bytes.len()) {
            return Err(
                "failed to write to file: There is not enough space on the disk.".to_owned()
            );
        }
        let key = self.key(path).cloned().unwrap_or_else(|| path.to_owned());
        self.agent.files.insert(key, bytes);
        Ok(())
    }

    fn full(&self, more: usize) -> bool {
        let used: usize = self.agent.files.values().map(Vec::len).sum();
        self.agent.win.free.is_some_and(|free| used + more > free)
    }

    /// The names in a directory, as they are stored.
    fn names(&self, directory: &str) -> Vec<String> {
        let prefix = under(directory, "").to_lowercase();
        let win = &self.agent.win;
        let all = self.agent.files.keys().chain(&win.dirs).chain(win.links.keys());
        let mut names: Vec<String> = Vec::new();
        for path in all {
            let below = path.to_lowercase().starts_with(&prefix);
            let rest = path.get(prefix.len()..).filter(|_| below);
            let name = rest.and_then(|r| r.split('\\').next()).filter(|n| !n.is_empty());
            if let Some(name) = name.filter(|name| !names.iter().any(|n| same(n, name))) {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn node(&self, path: &str) -> Option<Node> {
        let win = &self.agent.win;
        if let Some((_, to)) = win.links.iter().find(|(link, _)| same(link, path)) {
            return Some(Node::Link(to.clone()));
        }
        if self.key(path).is_some() {
            return Some(Node::File);
        }
        let there = path.len() == 3
            || win.dirs.iter().any(|dir| same(dir, path))
            || !self.names(path).is_empty();
        there.then_some(Node::Directory)
    }

    /// The entry that a name means: the name itself, or the short one of DOS.
    fn entry(&self, directory: &str, name: &str) -> Option<String> {
        let names = self.names(directory);
        let long = names.iter().find(|n| same(n, name));
        long.or_else(|| names.iter().find(|n| short(n, &names).is_some_and(|s| same(&s, name))))
            .cloned()
    }

    fn real(&self, path: &str, follow: bool) -> Result<Real, Failed> {
        let mut real = path.get(..3).unwrap_or_default().to_ascii_uppercase();
        let mut todo = parts(path);
        let mut hops = 0;
        while let Some(name) = todo.first().cloned() {
            if self.node(&real) != Some(Node::Directory) {
                return Err(("not-directory", String::new()));
            }
            if self.agent.win.denied.iter().any(|d| same(d, &real)) {
                return Err(("denied", "Access to the path is denied.".to_owned()));
            }
            let Some(found) = self.entry(&real, &name) else {
                return Ok(Real { path: real, rest: todo });
            };
            todo.remove(0);
            let next = under(&real, &found);
            let Some(Node::Link(to)) = self.node(&next) else {
                real = next;
                continue;
            };
            if todo.is_empty() && !follow {
                return Err(("link", to));
            }
            hops += 1;
            if hops > 40 || to.starts_with("\\\\") {
                return Err(("dangling", String::new()));
            }
            let to = if to.get(1..2) == Some(":") { to } else { under(&real, &to) };
            let mut way = parts(&to);
            way.append(&mut todo);
            todo = folded(way);
            real = to.get(..3).unwrap_or_default().to_ascii_uppercase();
        }
        Ok(Real { path: real, rest: Vec::new() })
    }

    fn there(&self, path: &str, follow: bool) -> Result<String, Failed> {
        let real = self.real(path, follow)?;
        if real.rest.is_empty() { Ok(real.path) } else { Err(("missing", String::new())) }
    }

    fn content(&self, path: &str) -> Result<&Vec<u8>, Failed> {
        if self.agent.win.denied.iter().any(|d| same(d, path)) {
            return Err(("denied", "Access to the path is denied.".to_owned()));
        }
        let bytes = self.key(path).and_then(|key| self.agent.files.get(key));
        bytes.ok_or(("missing", String::new()))
    }

    /// What a script prints.
    pub(super) fn answer(&mut self, fields: &[&str]) -> Vec<u8> {
        let done = match fields {
            ["read", path, real, follow, offset, count] => {
                self.read(path, real, *follow == "1", offset, count)
            }
            ["list", path, real, follow] => self.list(path, real, *follow == "1"),
            ["place", path, follow, make] => self.place(path, *follow == "1", *make == "1"),
            ["room", name] => self.make_room(name),
            ["clear", name] => {
                self.clear(name);
                Ok(b"OK\n".to_vec())
            }
            ["state", path] => self.state(path),
            ["write", rest @ ..] => {
                let done = self.write(rest);
                self.clear(rest.last().unwrap_or(&""));
                done
            }
            ["service", name, action] => self.service(name, action),
            _ => Err(("other", format!("no such script: {fields:?}"))),
        };
        done.unwrap_or_else(|(word, detail)| format!("E {word} {detail}").into_bytes())
    }

    fn read(
        &self,
        path: &str,
        real: &str,
        follow: bool,
        from: &str,
        count: &str,
    ) -> Result<Vec<u8>, Failed> {
        let found = self.there(path, follow)?;
        if self.node(&found) == Some(Node::Directory) {
            return Err(("directory", String::new()));
        }
        let bytes = self.content(&found)?;
        if !same(&found, real) {
            return Ok(format!("LINK\n{found}").into_bytes());
        }
        let number = |text: &str| text.parse::<usize>().unwrap_or(0);
        let mut out = format!("OK {}\n", bytes.len()).into_bytes();
        out.extend(bytes.iter().skip(number(from)).take(number(count)));
        Ok(out)
    }

    fn list(&self, path: &str, real: &str, follow: bool) -> Result<Vec<u8>, Failed> {
        let found = self.there(path, follow)?;
        if self.node(&found) != Some(Node::Directory) {
            return Err(("not-directory", String::new()));
        }
        if self.agent.win.denied.iter().any(|d| same(d, &found)) {
            return Err(("denied", "Access to the path is denied.".to_owned()));
        }
        if !same(&found, real) {
            return Ok(format!("LINK\n{found}").into_bytes());
        }
        let mut out = String::from("OK\n");
        for name in self.names(&found) {
            let path = under(&found, &name);
            let read_only = self.agent.win.read_only.iter().any(|r| same(r, &path));
            let (kind, attributes, size, to) = match self.node(&path) {
                Some(Node::Link(to)) => ("link", 0x400, 1, to),
                Some(Node::Directory) | None => ("directory", 0x10, 1, String::new()),
                Some(Node::File) => {
                    let size = self.content(&path).map_or(0, Vec::len);
                    ("file", 0x20 | i32::from(read_only), size, String::new())
                }
            };
            out.push_str(&format!("{kind}\t{attributes}\t{size}\t{MADE}\t{MADE}\t{name}\t{to}\n"));
        }
        out.push_str("END");
        Ok(out.into_bytes())
    }

    fn place(&self, path: &str, follow: bool, make: bool) -> Result<Vec<u8>, Failed> {
        let directory = self.real(up(path), true)?;
        let name = path.rsplit('\\').next().unwrap_or_default();
        let mut found = directory.path;
        if directory.rest.is_empty() {
            if self.node(&found) != Some(Node::Directory) {
                return Err(("not-directory", String::new()));
            }
            let real = self.real(path, follow)?;
            found = match real.rest.as_slice() {
                [] => real.path,
                [name] => under(&real.path, name),
                _ => return Err(("dangling", String::new())),
            };
        } else if make {
            for part in &directory.rest {
                found = under(&found, part);
            }
            found = under(&found, name);
        } else {
            return Err(("no-directory", String::new()));
        }
        Ok(format!("OK\n{found}").into_bytes())
    }

    fn make_room(&mut self, name: &str) -> Result<Vec<u8>, Failed> {
        let path = under(TEMP, &format!(".pve-{name}"));
        if self.node(&path).is_some() {
            return Err(("other", "it is there already".to_owned()));
        }
        self.agent.win.dirs.insert(path.clone());
        Ok(format!("OK\n{path}").into_bytes())
    }

    fn clear(&mut self, name: &str) {
        let room = under(TEMP, &format!(".pve-{name}"));
        let inside = under(&room, "");
        self.agent.files.retain(|path, _| !path.starts_with(&inside));
        self.agent.win.dirs.remove(&room);
    }

    fn state(&self, path: &str) -> Result<Vec<u8>, Failed> {
        let found = self.there(path, false)?;
        if self.node(&found) == Some(Node::Directory) {
            return Err(("directory", String::new()));
        }
        let bytes = self.content(&found)?;
        Ok(format!("OK {} {}\n", bytes.len(), sha256(bytes)).into_bytes())
    }

    fn write(&mut self, fields: &[&str]) -> Result<Vec<u8>, Failed> {
        let [path, make, append, want, sha, bytes, name] = fields else {
            return Err(("other", "fields are missing".to_owned()));
        };
        let directory = up(path);
        if *make == "1" && self.node(directory).is_none() {
            self.agent.win.dirs.insert(directory.to_owned());
        }
        let real = self.real(directory, true)?;
        if !real.rest.is_empty() {
            return Err(("no-directory", String::new()));
        }
        if self.node(&real.path) != Some(Node::Directory) {
            return Err(("not-directory", String::new()));
        }
        if !same(&real.path, directory) {
            return Err(("moved", real.path));
        }
        let found = self.real(path, false)?;
        let there = found.rest.is_empty();
        if there && self.node(&found.path) == Some(Node::Directory) {
            return Err(("directory", String::new()));
        }
        if self.agent.win.read_only.iter().any(|r| same(r, path)) {
            return Err(("denied", "it has the attribute read-only".to_owned()));
        }
        let old = if there { Some(self.content(&found.path)?.clone()) } else { None };
        if !want.is_empty() {
            let now = old.as_ref().map(|old| sha256(old)).unwrap_or_default();
            if now != *want {
                return Err(("changed", now));
            }
        }
        let room = under(&under(TEMP, &format!(".pve-{name}")), "");
        let pieces = self.agent.files.iter().filter(|(p, _)| p.starts_with(&room));
        let content: Vec<u8> = pieces.flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        if content.len().to_string() != *bytes || sha256(&content) != *sha {
            return Err(("torn", content.len().to_string()));
        }
        let mut new = old.clone().filter(|_| *append == "1").unwrap_or_default();
        new.extend(content);
        if self.full(new.len()) {
            return Err(("full", "There is not enough space on the disk.".to_owned()));
        }
        let answer = format!(
            "OK {} {} {}\n",
            if there { "replaced" } else { "created" },
            new.len(),
            sha256(&new)
        );
        let key = self.key(path).cloned().unwrap_or_else(|| (*path).to_owned());
        self.agent.files.insert(key, new);
        Ok(answer.into_bytes())
    }

    fn service(&mut self, name: &str, action: &str) -> Result<Vec<u8>, Failed> {
        let all = &mut self.agent.win.services;
        let by_name = all.iter().position(|s| same(&s.name, name));
        let shown: Vec<usize> =
            all.iter().enumerate().filter(|(_, s)| same(&s.shown, name)).map(|(n, _)| n).collect();
        if by_name.is_none() && shown.len() > 1 {
            return Err(("other", format!("{} services are shown by that name", shown.len())));
        }
        let at = by_name.or(shown.first().copied());
        let Some(service) = at.and_then(|at| all.get_mut(at)) else {
            return Err(("missing", String::new()));
        };
        let failed = service.broken.clone().filter(|_| action != "status");
        if failed.is_none() {
            match action {
                "start" | "restart" => service.running = true,
                "stop" => service.running = false,
                _ => {}
            }
        }
        let state = if service.running { "Running" } else { "Stopped" };
        let (code, why) = failed.map_or((0, String::new()), |why| (1, why));
        Ok(format!(
            "OK windows {code}\nName={}\nActiveState={state}\nUnitFileState=Automatic\nDescription={}\n\n{why}\n\n",
            service.name, service.shown
        )
        .into_bytes())
    }
}

fn folded(parts: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        match part.as_str() {
            "." => {}
            ".." => drop(out.pop()),
            _ => out.push(part),
        }
    }
    out
}

/// The short name of an entry, where it has one.
fn short(name: &str, names: &[String]) -> Option<String> {
    let cut = |name: &str| -> Option<(String, String)> {
        let (stem, kind) =
            name.rsplit_once('.').filter(|(s, _)| !s.is_empty()).unwrap_or((name, ""));
        let plain =
            |text: &str| text.chars().filter(|c| !matches!(c, ' ' | '.')).collect::<String>();
        let (stem, kind) = (plain(stem), plain(kind));
        let fits = stem.chars().count() <= 8
            && kind.chars().count() <= 3
            && !name.contains(' ')
            && !name.starts_with('.');
        (!fits).then(|| (stem.chars().take(6).collect(), kind.chars().take(3).collect()))
    };
    let (stem, kind) = cut(name)?;
    let before = names.iter().take_while(|n| *n != name);
    let number =
        1 + before.filter_map(|n| cut(n)).filter(|(s, k)| same(s, &stem) && same(k, &kind)).count();
    Some(if kind.is_empty() {
        format!("{stem}~{number}")
    } else {
        format!("{stem}~{number}.{kind}")
    })
}
