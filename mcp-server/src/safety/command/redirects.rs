//! Files that a command reads and writes: by redirections, and by what its program is given.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, RedirectList};

use super::{
    paths,
    walk::{Input, Walk},
    words::{Arg, UNKNOWN},
};
use crate::safety::Flag;

impl Walk<'_> {
    pub(super) fn redirects(&mut self, list: Option<&RedirectList>, input: &Input) -> Input {
        let mut input = input.clone();
        for redirect in list.into_iter().flat_map(|l| &l.0) {
            self.redirect(redirect, &mut input);
        }
        input
    }

    /// Follows one redirection; answers whether it empties or replaces a file.
    pub(super) fn redirect(&mut self, redirect: &IoRedirect, input: &mut Input) -> bool {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let path = self.expand_one(&word.value);
                    match kind {
                        IoFileRedirectKind::Read => {
                            self.reads(&path);
                            *input = Input::Unknown;
                        }
                        IoFileRedirectKind::DuplicateInput => *input = Input::Unknown,
                        IoFileRedirectKind::DuplicateOutput => {}
                        _ => {
                            if matches!(kind, IoFileRedirectKind::ReadAndWrite) {
                                self.reads(&path);
                                *input = Input::Unknown;
                            }
                            self.writes_to(&path);
                            return matches!(
                                kind,
                                IoFileRedirectKind::Write | IoFileRedirectKind::Clobber
                            ) && path.text != "/dev/null";
                        }
                    }
                }
                IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                    self.apart(|walk| drop(walk.list(&shell.list, &Input::Unknown)));
                    if matches!(kind, IoFileRedirectKind::Read) {
                        *input = Input::Unknown;
                    }
                }
                IoFileRedirectTarget::Duplicate(word) => {
                    // `>&name` writes a file unless the name is a number.
                    let target = self.expand_one(&word.value);
                    if matches!(kind, IoFileRedirectKind::DuplicateInput) {
                        *input = Input::Unknown;
                    } else if !target.text.chars().all(|c| c.is_ascii_digit() || c == '-') {
                        self.writes_to(&target);
                    }
                }
                IoFileRedirectTarget::Fd(fd) => {
                    // Another descriptor can be anything that was opened before.
                    if matches!(kind, IoFileRedirectKind::DuplicateInput) && *fd != 0 {
                        *input = Input::Unknown;
                    }
                }
            },
            IoRedirect::HereDocument(_, document) => {
                *input = if document.requires_expansion {
                    let text = self.expand_document(&document.doc.value);
                    if text.unknown { Input::Unknown } else { Input::Text(text.text) }
                } else {
                    Input::Text(document.doc.value.clone())
                };
            }
            IoRedirect::HereString(_, word) => {
                let text = self.expand_one(&word.value);
                *input = if text.unknown { Input::Unknown } else { Input::Text(text.text) };
            }
            IoRedirect::OutputAndError(word, _) => {
                let path = self.expand_one(&word.value);
                self.writes_to(&path);
            }
        }
        false
    }

    /// A path as the guest sees it, where it can be known.
    pub(super) fn resolved(&self, path: &Arg) -> Option<String> {
        if let Some(rest) = path.text.strip_prefix("/proc/self/cwd") {
            return self.resolved(&Arg::literal(rest.trim_start_matches('/')));
        }
        if path.text.starts_with('/') {
            return Some(paths::folded(&path.text));
        }
        let cwd = self.cwd.as_deref()?;
        Some(paths::folded(&format!("{cwd}/{}", path.text)))
    }

    /// A file that is read.
    pub(super) fn reads(&mut self, path: &Arg) {
        // /dev/fd is a link: what lies above it is above where it leads to.
        let behind = path.text.strip_prefix("/dev/fd/").map(|rest| format!("/proc/self/fd/{rest}"));
        let behind = behind.map(|path| paths::folded(&path));
        for path in self.resolved(path).into_iter().chain(behind) {
            if secret(&path) && self.found.secret.is_none() {
                self.found.secret = Some(path);
            }
        }
    }

    /// A file that is written.
    pub(super) fn writes(&mut self, path: &Arg) {
        let resolved = self.resolved(path).map(|path| paths::without_holes(&path));
        let Some(resolved) = resolved else {
            if path.unknown {
                self.found.add(Flag::ExecSystemFiles, "writes where it cannot be known");
            }
            return;
        };
        for flag in paths::written_by_pattern(&resolved) {
            self.found.add(flag, &format!("writes {resolved}"));
        }
    }

    /// A file that is written by its name alone, as redirections do it: where nothing of the name
    /// is known it can be any.
    pub(super) fn writes_to(&mut self, path: &Arg) {
        if path.text.trim_start_matches('/').starts_with(UNKNOWN) {
            self.found.add(Flag::ExecSystemFiles, "writes where it cannot be known");
        }
        self.writes(path);
    }
}

fn secret(path: &str) -> bool {
    paths::secret_path(path, None).is_some()
}
