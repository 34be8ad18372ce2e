//! The documents tell the truth about the repository: every place that
//! ARCHITECTURE.md names is there, every room of the code is named there, and
//! links between documents lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use e2e::repository;

/// Text in code font that is a path of this repository.
fn paths(text: &str) -> BTreeSet<String> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|word| word.contains('/') && !word.contains([' ', '*', '<', '$', '~', ':']))
        .filter(|word| !word.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in [repository().to_owned(), repository().join("docs")] {
        let files = fs::read_dir(&dir).expect("a folder").flatten().map(|e| e.path());
        found.extend(files.filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    assert!(found.len() > 4, "{found:?}");
    found
}

#[test]
fn every_place_on_the_map_is_there() {
    let map = read(&repository().join("ARCHITECTURE.md"));
    let named = paths(&map);
    assert!(named.len() > 10, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|p| !repository().join(p).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}

#[test]
fn every_room_is_on_the_map() {
    let map = paths(&read(&repository().join("ARCHITECTURE.md")));
    let mut rooms: Vec<String> = Vec::new();
    for folder in ["", "mcp-server/src/"] {
        for entry in fs::read_dir(repository().join(folder)).expect("a folder").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = ![".git", "target", "lib.rs"].contains(&name.as_str());
            if entry.path().is_dir() && ours {
                rooms.push(format!("{folder}{name}/"));
            } else if !folder.is_empty() && ours {
                rooms.push(format!("{folder}{name}"));
            }
        }
    }
    let tracked = |room: &String| repository().join(room).read_dir().is_ok_and(|d| d.count() > 0);
    let missing: Vec<_> = rooms
        .iter()
        .filter(|room| !map.contains(*room))
        .filter(|room| room.ends_with(".rs") || tracked(room))
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not name {missing:?}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        let folder = document.parent().expect("a folder");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let local = !target.is_empty() && !target.contains("://") && !target.contains(' ');
            if local && !folder.join(target).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
