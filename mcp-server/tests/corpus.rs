//! Replays the corpus of the fuzz targets: what was found once stays found.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proxmox_mcp::safety::fuzzing;

fn replay(target: &str, check: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    for file in files {
        check(&fs::read(&file).unwrap());
    }
    // What a long run found, the least that covers the same: one a line, in base64.
    let found = dir.with_file_name("found").join(format!("{target}.base64"));
    let Ok(found) = fs::read_to_string(found) else { return };
    for line in found.lines() {
        check(&STANDARD.decode(line).unwrap());
    }
}

#[test]
fn paths() {
    replay("path", fuzzing::path);
}

#[test]
fn parameters() {
    replay("params", fuzzing::params);
}

#[test]
fn property_strings() {
    replay("property", fuzzing::property);
}

#[test]
fn commands() {
    replay("command", fuzzing::command);
}

/// What is in the tables of commands holds as well.
#[test]
fn commands_of_the_tables() {
    for table in [include_str!("data/commands.tsv"), include_str!("data/commands-disguised.tsv")] {
        for row in table.lines().filter(|l| !l.starts_with('#')) {
            let (_, text) = row.split_once('\t').unwrap();
            fuzzing::command(text.replace('␤', "\n").as_bytes());
        }
    }
}
