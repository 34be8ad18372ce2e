//! How programs and scripts reach Windows through its guest agent.
//!
//! The agent puts a command line together by the rules of C: quotes around what
//! has blanks, a backslash before a quote. PowerShell and most programs take it
//! apart by the same rules; `cmd` does not, and older agents leave out empty
//! arguments and lose count of backslashes at the end. Where that would change
//! what was given, a fixed script of PowerShell starts the program with exactly
//! its command line. Scripts go as UTF-16 in base64 (`-EncodedCommand`), and what
//! varies in them stands there in base64 too: no text of it is ever code.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Deed, NewFile, script::is_hex};
use crate::{
    Error, Result,
    safety::{command, deed::Step},
};

/// Most characters of a line that `cmd` reads.
const CMD_LINE: usize = 8_100;
/// Most characters of the command line of a process, with room for the agent's own.
const COMMAND_LINE: usize = 32_000;

const COMMON: &str = include_str!("scripts/windows/common.ps1");
const RUN: &str = include_str!("scripts/windows/run.ps1");

/// A text for `cmd`.
pub(super) fn cmd(text: &str, cwd: Option<&str>) -> Result<Vec<String>> {
    let text = text.trim_end_matches(['\r', '\n']);
    if text.contains(['\r', '\n']) {
        return Err(Error::argument("cmd reads one line, and `command` has several")
            .hint("join them by `&`, take PowerShell, or write a .cmd file and run that")
            .with("argument", "command"));
    }
    if units(text) > CMD_LINE {
        return Err(too_long(units(text), CMD_LINE, "cmd reads"));
    }
    let straight = cwd.is_none() && !text.contains('"') && !text.ends_with('\\') && narrow(text);
    if straight {
        return within(["cmd.exe", "/c", text].map(str::to_owned).to_vec());
    }
    // With /s it takes away the first quote and the last, and reads the rest as it is.
    launch("cmd.exe", &format!("/s /c \"{text}\""), cwd)
}

/// A text for PowerShell.
pub(super) fn powershell(text: &str, cwd: Option<&str>) -> Result<Vec<String>> {
    let go = |cwd: &str| {
        let quoted: String = cwd.chars().flat_map(|c| std::iter::repeat_n(c, times(c))).collect();
        format!("Set-Location -LiteralPath '{quoted}' -ErrorAction Stop; {text}")
    };
    let text = cwd.map_or_else(|| text.to_owned(), go);
    if narrow(&text) && !text.ends_with('\\') {
        let argv = ["powershell.exe", "-NoProfile", "-NonInteractive", "-Command", &text];
        return within(argv.map(str::to_owned).to_vec());
    }
    let utf8 = "try{[Console]::OutputEncoding=New-Object Text.UTF8Encoding $false}catch{};";
    within(encoded(&format!("{utf8} {text}"), &[]))
}

/// How often a character stands in quotes: PowerShell takes each of these for the quote's end.
const fn times(c: char) -> usize {
    if matches!(c, '\'' | '\u{2018}'..='\u{201b}') { 2 } else { 1 }
}

/// A program with its arguments.
pub(super) fn list(argv: &[String], cwd: Option<&str>) -> Result<Vec<String>> {
    let blank = |arg: &str| arg.contains([' ', '\t']);
    let straight = |arg: &String| {
        let quoted_at_its_end = arg.ends_with('\\') && blank(arg);
        !arg.is_empty() && narrow(arg) && !quoted_at_its_end && !arg.contains(['\r', '\n'])
    };
    if cwd.is_none() && argv.iter().all(straight) {
        return within(argv.to_vec());
    }
    let (program, args) = argv.split_first().ok_or_else(|| Error::internal("no program"))?;
    let line: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    launch(program, &line.join(" "), cwd)
}

/// An argument as programs of Windows read it.
fn quoted(arg: &str) -> String {
    if !arg.is_empty() && !arg.contains([' ', '\t', '\r', '\n', '"']) {
        return arg.to_owned();
    }
    let mut out = String::from("\"");
    let mut slashes = 0;
    for c in arg.chars() {
        match c {
            '\\' => slashes += 1,
            '"' => {
                out.push_str(&"\\".repeat(slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        out.push(c);
    }
    out.push_str(&"\\".repeat(slashes));
    out.push('"');
    out
}

/// Starts a program with exactly this command line.
fn launch(program: &str, line: &str, cwd: Option<&str>) -> Result<Vec<String>> {
    let data = data(&["run", program, line, cwd.unwrap_or_default()]);
    // Its input is for the program.
    within(encoded(&format!("{data}{}", sent(RUN)), &["-InputFormat", "None"]))
}

/// Program and arguments of a step in Windows. None for one that is not part of the deed.
pub(super) fn step(step: &Step<'_>, deed: &Deed) -> Option<Result<Vec<String>>> {
    let flag = |on: bool| if on { "1" } else { "0" };
    let (script, fields): (&str, Vec<String>) = match (*step, deed) {
        (Step::Read { path, follow, offset, count }, Deed::FileRead { path: real, .. }) => (
            include_str!("scripts/windows/read.ps1"),
            all(&["read", path, real, flag(follow), &offset.to_string(), &count.to_string()]),
        ),
        (Step::List { path, follow, .. }, Deed::FileList { path: real, .. }) => {
            (include_str!("scripts/windows/list.ps1"), all(&["list", path, real, flag(follow)]))
        }
        (Step::Place { path, follow, make }, Deed::FileList { path: directory, .. })
            if super::directory_of(path) == directory =>
        {
            let fields = all(&["place", path, flag(follow), flag(make)]);
            (include_str!("scripts/windows/place.ps1"), fields)
        }
        (Step::Room { name }, Deed::FileWrite { .. }) if is_hex(name) => {
            (include_str!("scripts/windows/room.ps1"), all(&["room", name]))
        }
        (Step::Clear { name }, Deed::FileWrite { .. }) if is_hex(name) => {
            (include_str!("scripts/windows/clear.ps1"), all(&["clear", name]))
        }
        (Step::Write { name, pieces: true }, Deed::FileWrite { file, .. }) if is_hex(name) => {
            (include_str!("scripts/windows/write.ps1"), write(file, name, flag))
        }
        (Step::State, Deed::FileWrite { file, .. }) => {
            (include_str!("scripts/windows/state.ps1"), all(&["state", &file.path]))
        }
        (Step::Service, Deed::Service { service, action, .. }) => {
            (include_str!("scripts/windows/service.ps1"), all(&["service", service, action]))
        }
        _ => return None,
    };
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let text = format!(
        "{}{}try{{\n{}}}catch{{Say (Why $_.Exception)}}\n$o.Flush()\n",
        data(&fields),
        sent(COMMON),
        sent(script)
    );
    Some(within(encoded(&text, &["-InputFormat", "None"])))
}

fn write(file: &NewFile, name: &str, flag: impl Fn(bool) -> &'static str) -> Vec<String> {
    all(&[
        "write",
        &file.path,
        flag(file.create_dirs),
        flag(file.append),
        file.if_sha256.as_deref().unwrap_or_default(),
        &file.sha256,
        &file.bytes.to_string(),
        name,
    ])
}

fn all(fields: &[&str]) -> Vec<String> {
    fields.iter().map(ToString::to_string).collect()
}

/// Whether a guest told of a room that a deed can have made, and that the agent's own calls reach.
pub(super) fn is_room(room: &str, name: &str) -> bool {
    is_hex(name)
        && room.is_ascii()
        && command::windows_path(room).is_ok_and(|path| path.eq_ignore_ascii_case(room))
        && room.ends_with(&format!("\\.pve-{name}"))
}

/// The first line of a script: its data, parted by NUL, of which no field has one.
fn data(fields: &[&str]) -> String {
    let coded = STANDARD.encode(fields.join("\0"));
    format!(
        "$a=[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('{coded}')).Split([char]0)\n"
    )
}

/// A script as it is sent: without its comments and indents, which cost room.
fn sent(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn encoded(script: &str, options: &[&str]) -> Vec<String> {
    let bytes: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut argv = ["powershell.exe", "-NoProfile", "-NonInteractive"].map(str::to_owned).to_vec();
    argv.extend(options.iter().map(ToString::to_string));
    // Else what it says of errors comes as XML.
    argv.extend(["-OutputFormat", "Text", "-EncodedCommand"].map(str::to_owned));
    argv.push(STANDARD.encode(bytes));
    argv
}

fn narrow(text: &str) -> bool {
    text.chars().all(|c| u32::from(c) <= 0xff)
}

/// Characters as Windows counts them.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn within(argv: Vec<String>) -> Result<Vec<String>> {
    // Each argument can get two quotes, a blank, and a backslash for each quote in it.
    let length: usize =
        argv.iter().map(|arg| units(arg) + arg.matches(['"', '\\']).count() + 3).sum();
    match length > COMMAND_LINE {
        true => Err(too_long(length, COMMAND_LINE, "Windows takes")),
        false => Ok(argv),
    }
}

fn too_long(length: usize, most: usize, who: &str) -> Error {
    Error::argument(format!(
        "the command line would have {length} characters, and {who} {most} at most"
    ))
    .hint("write it to a .ps1 or .cmd file with pve_guest_file_write and run that, or pass the larger part as `stdin`")
    .with("argument", "command")
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
