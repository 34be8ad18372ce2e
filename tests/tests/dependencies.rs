//! What the workspace depends on: licences that we may ship, one version of
//! every heavy crate, and one TLS library.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{Metadata, MetadataCommand};

/// SPDX ids that may stand in what we ship.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0", // certificate store data
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that cost build time or size, or whose types cross borders: a second version is a mistake.
const ONCE: &[&str] = &[
    "axum",
    "base64",
    "bytes",
    "chrono",
    "clap",
    "futures-util",
    "http",
    "hyper",
    "hyper-util",
    "jiff",
    "libc",
    "nix",
    "openssl-sys",
    "proptest",
    "rand",
    "reqwest",
    "ring",
    "rmcp",
    "rustls",
    "rustls-webpki",
    "schemars",
    "serde",
    "serde_json",
    "tokio",
    "tokio-rustls",
    "toml",
    "tower",
    "tracing",
    "tracing-subscriber",
    "url",
];

/// Second TLS stacks, HTTP/2, and what the design rules out.
const NEVER: &[&str] = &["aws-lc-rs", "aws-lc-sys", "h2", "native-tls", "serde_yaml"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .expect("cargo metadata")
}

/// Whether an SPDX expression can be satisfied with [`ALLOWED`]: an `OR` needs
/// one side, an `AND` both. `/` is the old spelling of `OR`.
fn permitted(expression: &str) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    let fine = either(&words, &mut at);
    fine && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut fine = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        fine |= both(words, at);
    }
    fine
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut fine = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        fine &= one(words, at);
    }
    fine
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let fine = either(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return fine && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return ALLOWED.contains(&format!("{word} WITH {exception}").as_str());
    }
    ALLOWED.contains(word)
}

#[test]
fn licence_expressions_are_understood() {
    for (expression, fine) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("MIT AND GPL-3.0-only", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(MIT OR Apache-2.0) AND LGPL-2.1-or-later", false),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0", true),
        ("Apache-2.0 WITH Other-exception", false),
        ("", false),
        ("(MIT", false),
    ] {
        assert_eq!(permitted(expression), fine, "{expression:?}");
    }
}

#[test]
fn every_licence_may_be_shipped() {
    let metadata = metadata();
    let bad: Vec<String> = metadata
        .packages
        .iter()
        .filter(|p| !p.license.as_deref().is_some_and(permitted))
        .map(|p| format!("{} {}: {}", p.name, p.version, p.license.as_deref().unwrap_or("none")))
        .collect();
    assert!(metadata.packages.len() > 100, "the whole graph is looked at");
    assert!(bad.is_empty(), "licences that are not on the list:\n{}", bad.join("\n"));
}

#[test]
fn our_own_crates_carry_licence_and_lints() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let name = &package.name;
        assert_eq!(package.license.as_deref(), Some("Apache-2.0"), "{name}");
        assert!(package.rust_version.is_some(), "{name} says its rust-version");
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true") || manifest.contains("[lints.rust]"),
            "{name} takes part in the lints"
        );
    }
}

/// The versions of every crate that is really built; the lock also knows some that no
/// enabled feature reaches.
fn built_versions(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let mut todo = metadata.workspace_members.clone();
    let mut reached = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if reached.insert(id.clone()) {
            let node = resolve.nodes.iter().find(|n| n.id == id).expect("a node");
            todo.extend(node.deps.iter().map(|d| d.pkg.clone()));
        }
    }
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|p| reached.contains(&p.id)) {
        versions.entry(package.name.to_string()).or_default().insert(package.version.to_string());
    }
    assert!(versions.len() > 100, "the whole graph is looked at");
    versions
}

#[test]
fn heavy_crates_stand_in_the_graph_once() {
    let versions = built_versions(&metadata());
    let doubled: Vec<String> = ONCE
        .iter()
        .filter_map(|name| Some((name, versions.get(*name)?)))
        .filter(|(_, found)| found.len() > 1)
        .map(|(name, found)| format!("{name}: {found:?}"))
        .collect();
    assert!(doubled.is_empty(), "more than one version of {doubled:#?}");
    let present: Vec<&&str> = NEVER.iter().filter(|name| versions.contains_key(**name)).collect();
    assert!(present.is_empty(), "crates that must not be pulled in: {present:?}");
}
