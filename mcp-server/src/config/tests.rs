//! What a person sees of the loader: values, their origins, warnings, errors.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf, time::Duration};

use secrecy::ExposeSecret;

use super::*;
use crate::{Code, Error, Result, safety::Flag};

const UUID: &str = "0f5e1c3a-1111-4222-8333-444455556666";

/// A configuration directory in a temporary folder, and an environment that names it.
struct Place {
    dir: tempfile::TempDir,
    sources: Sources,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        mode(dir.path(), 0o700);
        let env = [(CONFIG_DIR.to_owned(), OsString::from(dir.path()))];
        Self { sources: Sources { env: env.into(), ..Sources::empty() }, dir }
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        mode(&path, 0o600);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.sources.env.insert(name.to_owned(), value.into());
        self
    }

    fn arg(mut self, name: &str, value: &str) -> Self {
        self.sources.args.insert(name.to_owned(), value.to_owned());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Result<Loaded> {
        load(&self.sources)
    }

    fn warnings(&self) -> Vec<String> {
        self.load().unwrap().warnings.iter().map(ToString::to_string).collect()
    }

    fn error(&self) -> Error {
        let error = self.load().unwrap_err();
        assert_eq!(error.code, Code::Config);
        assert!(!error.hint.is_empty(), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        error
    }
}

#[cfg(unix)]
fn mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn mode(_: &std::path::Path, _: u32) {}

#[test]
fn nothing_set_is_the_minimal_configuration() {
    let place = Place::new();
    let loaded = place.load().unwrap();
    let minimal =
        Config::minimal(Dirs { config: place.dir.path().to_owned(), state: place.path("state") });
    assert_eq!(format!("{:?}", loaded.config), format!("{minimal:?}"));
    assert!(loaded.warnings.is_empty() && loaded.origin.is_empty());
    assert_eq!(loaded.config.mode, Mode::ReadOnly);
    assert!(!loaded.config.exec && loaded.config.audit.enabled);
}

/// The default that the documentation shows is the one that holds.
#[test]
fn defaults_of_the_table_are_those_of_the_code() {
    let bare = format!("{:?}", Place::new().load().unwrap().config);
    for variable in VARIABLES.iter().filter(|v| !v.default.is_empty()) {
        let place = Place::new().env(variable.name, variable.default);
        let set = format!("{:?}", place.load().unwrap().config);
        let (set, bare) = (set.replace(&shown(&place), "DIR"), strip(&bare));
        assert_eq!(set, bare, "{}", variable.name);
    }
    fn shown(place: &Place) -> String {
        place.dir.path().display().to_string()
    }
    fn strip(text: &str) -> String {
        let from = text.find("config: \"").unwrap() + 9;
        let dir = &text[from..from + text[from..].find('"').unwrap()];
        text.replace(dir, "DIR")
    }
}

/// Every variable does something: its example, or another value, changes the configuration.
#[test]
fn every_variable_reaches_the_configuration() {
    let other: BTreeMap<&str, &str> = [
        ("PROXMOX_TLS_FINGERPRINT", "AB"),
        (
            "PROXMOX_SSH_HOST_KEY",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEh0lYGi8tq0VhZ3PnFVNLQWQSYqY2Ed6SYEdUYnVpbN",
        ),
        ("PROXMOX_TLS_INSECURE", "on"),
        ("PROXMOX_MODE", "write"),
        ("PROXMOX_TOOLSETS", "guests"),
        ("PROXMOX_DEFERRED_TOOLS", "on"),
        ("PROXMOX_READ_VMIDS", "allowed"),
        ("PROXMOX_CRITICAL_FILE", "flags.env"),
        ("PROXMOX_APPROVAL", "human"),
        ("PROXMOX_APPROVAL_SCOPE", "write"),
        ("PROXMOX_EXEC", "enabled"),
        ("PROXMOX_EXEC_TIMEOUT", "5m"),
        ("PROXMOX_EXEC_MAX_OUTPUT", "1MiB"),
        ("PROXMOX_SSH_USER", "ops"),
        ("PROXMOX_SSH_PORT", "2222"),
        ("PROXMOX_SSH_KEY", "key"),
        ("PROXMOX_AUDIT_ENABLED", "off"),
        ("PROXMOX_AUDIT_READS", "on"),
        ("LOG_LEVEL", "TRACE"),
        ("PROXMOX_TIMEOUT", "1m"),
        ("PROXMOX_MAX_RETRIES", "0"),
        ("PROXMOX_CACHE_TTL", "0"),
        ("PROXMOX_HTTP_TOKEN", "0123456789abcdef0123456789abcdef"),
    ]
    .into();
    let pin = ["AB"; 32].join(":");
    for variable in VARIABLES.iter().filter(|v| !v.name.starts_with("PROXMOX_TOKEN_")) {
        let place = Place::new();
        let before = format!("{:?}", place.load().unwrap().config);
        let value = match other.get(variable.name) {
            Some(&"AB") => pin.as_str(),
            Some(value) => value,
            None => variable.example,
        };
        let place = place.env(variable.name, value);
        let loaded = place.load().unwrap_or_else(|e| panic!("{}: {e}", variable.name));
        assert_ne!(format!("{:?}", loaded.config), before, "{}", variable.name);
        assert_eq!(loaded.origin[variable.name], Origin::Environment);
        let shown = if variable.secret { "(set)" } else { value };
        assert_eq!(loaded.written[variable.name], shown);
    }
}

#[test]
fn command_line_environment_file_default_in_this_order() {
    let place = Place::new().file(".env", "# x\nPROXMOX_TIMEOUT=10\nPROXMOX_MODE=write\n");
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.timeout, Duration::from_secs(10));
    assert_eq!(
        loaded.origin["PROXMOX_TIMEOUT"],
        Origin::File { path: place.path(".env"), line: 2 }
    );
    let place = place.env("PROXMOX_TIMEOUT", "20").env("PROXMOX_MODE", " ");
    let loaded = place.load().unwrap();
    assert_eq!(loaded.config.timeout, Duration::from_secs(20));
    // An empty variable is what clients send for a field that was left empty.
    assert_eq!(loaded.config.mode, Mode::Write);
    let loaded = place.arg("PROXMOX_TIMEOUT", "30").load().unwrap();
    assert_eq!(loaded.config.timeout, Duration::from_secs(30));
    assert_eq!(loaded.origin["PROXMOX_TIMEOUT"], Origin::CommandLine);
}

#[test]
fn bad_values_stop_the_start_with_file_line_and_what_is_allowed() {
    for (line, message, allowed) in [
        ("PROXMOX_MODE=rw", "\"rw\"", "`read-only`, `write`"),
        ("PROXMOX_MODE=wrte", "did you mean write?", "`read-only`, `write`"),
        ("PROXMOX_EXEC=maybe", "\"maybe\"", "`enabled`, `disabled`"),
        (
            "PROXMOX_TOOLSETS=guests,gests",
            "\"gests\"",
            "core, guests, backup, storage, network, node, access, exec",
        ),
        ("PROXMOX_TIMEOUT=soon", "\"soon\"", "such as 15"),
        ("PROXMOX_MAX_RETRIES=-1", "\"-1\"", "0 to 10"),
        ("PROXMOX_ALLOWED_VMIDS=100-", "100-", "VMIDs"),
        ("PROXMOX_ALLOWED_VMIDS=99", "\"99\"", "VMIDs"),
        ("PROXMOX_DENIED_VMIDS=200-100", "200-100", "VMIDs"),
        ("PROXMOX_DENIED_VMIDS=100,,200", "\"\"", "VMIDs"),
        ("PROXMOX_ALLOWED_NODES=pve1.example.com", "pve1.example.com", "node names"),
        ("PROXMOX_HOST=pve1:0", "pve1:0", "host:port"),
        ("PROXMOX_HOST=https://pve1/x", "/x", "host:port"),
        ("PROXMOX_TLS_FINGERPRINT=AA:BB", "2 bytes", "SHA-256"),
        ("PROXMOX_AUDIT_ENABLED=2", "\"2\"", "`on`, `off`"),
        ("LOG_LEVEL=loud", "\"loud\"", "`trace`"),
        ("PROXMOX_HTTP_TOKEN=hunter2", "too short", "32"),
        ("PROXMOX_UPLOAD_DIR=\"a\\nb\"", "line break", "directory"),
    ] {
        let place = Place::new().file(".env", &format!("\n# a comment\n{line}\n"));
        let error = place.error();
        let name = line.split('=').next().unwrap();
        let text = error.to_string();
        let start = format!("config: {}:3: {name}: ", place.path(".env").display());
        assert!(text.starts_with(&start), "{text}");
        assert!(text.contains(message) && text.contains(allowed), "{line}: {text}");
        assert_eq!(error.details["line"], 3);
        assert_eq!(error.details["file"], place.path(".env").display().to_string());
        assert_eq!(error.details["variable"], name);
        assert!(!text.contains("hunter2"));
    }
    let text = Place::new().env("PROXMOX_MODE", "rw").error().to_string();
    assert!(text.starts_with("config: environment: PROXMOX_MODE: "), "{text}");
}

#[test]
fn lines_that_cannot_be_read_are_named_and_not_repeated() {
    let place = Place::new().file(".env", "PROXMOX_MODE=write\nPROXMOX_TOKEN_SECRET='hunter2\n");
    let text = place.error().to_string();
    assert!(text.contains(".env:2: ") && text.contains("quotes"), "{text}");
    assert!(!text.contains("hunter2"));
    let text = Place::new().file("critical.env", "hunter2\n").error().to_string();
    assert!(text.contains("critical.env:1: ") && !text.contains("hunter2"), "{text}");
}

#[test]
fn unknown_names_are_warned_of_with_the_nearest() {
    let env = "PROXMOX_HOTS=pve1\nEDITOR=vi\nPROXMOX_TOKEN_IDS=x\nLOGLEVEL=info\n\
               PROXMOX_QQQ=1\nPROXMOX_ALLOW_CEPH=on\nproxmox_mode=write\nPROXMOX_MCP_CONFIG_DIR=/x\n\
               PROXMOX_TOKEN_VALUE=s3cret-value\n";
    let place = Place::new().file(".env", env);
    let warnings = place.warnings();
    let file = place.path(".env").display().to_string();
    for (line, name, near) in [
        (1, "PROXMOX_HOTS", "PROXMOX_HOST"),
        (3, "PROXMOX_TOKEN_IDS", "PROXMOX_TOKEN_ID"),
        (4, "LOGLEVEL", "LOG_LEVEL"),
        (5, "PROXMOX_QQQ", ""),
        (6, "PROXMOX_ALLOW_CEPH", "critical.env"),
        (7, "proxmox_mode", "PROXMOX_MODE"),
        (8, "PROXMOX_MCP_CONFIG_DIR", "environment"),
        (9, "PROXMOX_TOKEN_VALUE", "PROXMOX_"),
    ] {
        let start = format!("{file}:{line}: {name} ");
        let found = warnings.iter().find(|w| w.starts_with(&start));
        let found = found.unwrap_or_else(|| panic!("{start} not in {warnings:#?}"));
        assert!(found.contains(near), "{found}");
    }
    assert_eq!(warnings.len(), 8, "{warnings:#?}");
    assert!(!warnings.concat().contains("s3cret-value"));
    // What has no effect has none.
    assert!(!place.load().unwrap().config.flags.is_on(Flag::Ceph));

    let place = Place::new().file(
        "critical.env",
        "PROXMOX_ALLOW_CEPHS=on\nPROXMOX_MODE=write\nPROXMOX_ALLOW_HA=enalbed\nPROXMOX_ALLOW_HA=1\n",
    );
    let warnings = place.warnings();
    assert!(
        warnings[0].contains(":1: ") && warnings[0].contains("did you mean PROXMOX_ALLOW_CEPH?")
    );
    assert!(warnings[1].contains(":2: ") && warnings[1].contains(".env"), "{warnings:#?}");
    assert!(warnings[2].contains(":4: ") && warnings[2].contains("line 3"), "{warnings:#?}");
    assert_eq!(warnings.len(), 3);
    assert_eq!(place.load().unwrap().config.mode, Mode::ReadOnly);
}

#[test]
fn names_in_the_environment_are_judged_only_when_they_are_nearly_ours() {
    let place = Place::new()
        .env("PROXMOX_VE_ENDPOINT", "https://pve1:8006")
        .env("PROXMOX_URL", "x")
        .env("PROXMOX_HOTS", "pve1")
        .env("PROXMOX_ALLOW_EVERYTHING", "on");
    let warnings = place.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[1].starts_with("environment: PROXMOX_HOTS"), "{warnings:#?}");
    assert!(warnings[0].starts_with("environment: PROXMOX_ALLOW_EVERYTHING"));
}

#[test]
fn secrets_hold_what_a_person_writes() {
    let token = "0123456789abcdef$HOME${PATH}!!#%&\\n";
    for written in [token.to_owned(), format!("'{token}'"), format!("{token} # note")] {
        let place = Place::new().file(".env", &format!("PROXMOX_HTTP_TOKEN={written}\n"));
        let loaded = place.load().unwrap();
        assert_eq!(loaded.config.http.token.unwrap().expose_secret(), token, "{written}");
    }
    let place = Place::new().env("PROXMOX_HTTP_TOKEN", token);
    assert_eq!(place.load().unwrap().config.http.token.unwrap().expose_secret(), token);
}

#[test]
fn the_token_comes_from_fields_header_or_file() {
    let env = format!("PROXMOX_TOKEN_ID=mcp@pve!full\nPROXMOX_TOKEN_SECRET={UUID}\n");
    let header = format!("PROXMOX_TOKEN_ID=PVEAPIToken=mcp@pve!full={UUID}\n");
    let file = "PROXMOX_TOKEN_ID=mcp@pve!full\nPROXMOX_TOKEN_SECRET_FILE=secret\n";
    for text in [env.as_str(), header.as_str(), file] {
        let place = Place::new().file(".env", text).file("secret", &format!("{UUID}\n"));
        let loaded = place.load().unwrap();
        let found = loaded.config.token.as_ref().unwrap();
        assert_eq!((found.id.as_str(), found.secret.expose_secret()), ("mcp@pve!full", UUID));
        assert_eq!(loaded.written["PROXMOX_TOKEN_ID"], "mcp@pve!full");
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert!(!format!("{loaded:?}").contains(UUID));
    }
    // The stronger place wins, and the file may hold the whole header.
    let place = Place::new().file(".env", file).file("secret", "not-this-one");
    let loaded = place.env("PROXMOX_TOKEN_SECRET", UUID).load().unwrap();
    assert_eq!(loaded.config.token.unwrap().secret.expose_secret(), UUID);
    let place = Place::new().env("PROXMOX_TOKEN_SECRET_FILE", "secret");
    let place = place.file("secret", &format!("PVEAPIToken=mcp@pve!full={UUID}"));
    assert_eq!(place.load().unwrap().config.token.unwrap().id, "mcp@pve!full");
}

#[test]
fn tokens_that_cannot_be_meant_stop_the_start_and_are_not_repeated() {
    for (env, message) in [
        (format!("PROXMOX_TOKEN_ID=mcp@pve\nPROXMOX_TOKEN_SECRET={UUID}"), "token id has no !name"),
        (format!("PROXMOX_TOKEN_ID={UUID}\nPROXMOX_TOKEN_SECRET=mcp@pve!full"), "swapped"),
        (format!("PROXMOX_TOKEN_SECRET={UUID}"), "PROXMOX_TOKEN_ID is missing"),
        ("PROXMOX_TOKEN_ID=mcp@pve!full".to_owned(), "PROXMOX_TOKEN_SECRET is missing"),
        ("PROXMOX_TOKEN_SECRET_FILE=absent".to_owned(), "there is no file"),
        ("PROXMOX_TOKEN_SECRET_FILE=empty".to_owned(), "one line"),
        ("PROXMOX_TOKEN_SECRET_FILE=two".to_owned(), "one line"),
        (format!("PROXMOX_TOKEN_SECRET={UUID}\nPROXMOX_TOKEN_SECRET_FILE=two"), "both set"),
        (
            format!(
                "PROXMOX_TOKEN_ID=a@pve!bb\nPROXMOX_TOKEN_SECRET={UUID}\nPROXMOX_HTTP_TOKEN=x{UUID}"
            ),
            "Proxmox's own token",
        ),
    ] {
        let place =
            Place::new().file(".env", &env).file("empty", "\n").file("two", &format!("{UUID}\nx"));
        let text = place.error().to_string();
        assert!(text.contains(message) && text.contains(".env:"), "{env}: {text}");
        assert!(!text.contains(UUID) && !text.contains("mcp@pve!full\""), "{text}");
    }
    let place = Place::new()
        .env("PROXMOX_TOKEN_ID", "mcp@pve!full")
        .env("PROXMOX_TOKEN_SECRET", "0f5e1c3a");
    let warnings = place.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("UUID"), "{warnings:?}");
    assert!(!warnings[0].contains("0f5e1c3a"));
}

#[test]
fn flags_come_from_critical_env_and_the_environment_wins() {
    let place = Place::new().file(
        "critical.env",
        "PROXMOX_ALLOW_CEPH= Enabled \nPROXMOX_ALLOW_HA=YES\nPROXMOX_ALLOW_NODE_POWER=1\n\
         PROXMOX_ALLOW_GUEST_DELETE=true\nPROXMOX_ALLOW_UNKNOWN=on\nPROXMOX_ALLOW_NODE_DNS=enable\n\
         PROXMOX_ALLOW_NODE_HOSTS=\nPROXMOX_ALLOW_EXEC_POWER=disabled\n",
    );
    let place = place.env("PROXMOX_ALLOW_HA", "off").env("PROXMOX_ALLOW_GUEST_DELETE", "");
    let place = place.env("PROXMOX_ALLOW_EXEC_SHELL", "on");
    let loaded = place.load().unwrap();
    let on: Vec<_> = loaded.config.flags.iter().map(Flag::category).collect();
    assert_eq!(on, ["NODE_POWER", "CEPH", "EXEC_SHELL", "UNKNOWN"]);
    assert_eq!(loaded.origin["PROXMOX_ALLOW_HA"], Origin::Environment);
    assert_eq!(
        loaded.origin["PROXMOX_ALLOW_NODE_POWER"],
        Origin::File { path: place.path("critical.env"), line: 3 }
    );
    let warnings = place.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("PROXMOX_ALLOW_NODE_DNS is off"),
        "{warnings:?}"
    );
    // printf '#abc' | sha256sum
    let place = Place::new().file("flags", "#abc");
    let loaded = place.env("PROXMOX_CRITICAL_FILE", "flags").load().unwrap();
    assert_eq!(
        loaded.config.critical_sha256.as_deref(),
        Some("00e16e1d31c0ba2b3b3d17583bb2ac3b898666620ddf540aae5bd0703d7d02e7")
    );
    let place = Place::new().env("PROXMOX_CRITICAL_FILE", "absent");
    let loaded = place.load().unwrap();
    assert_eq!((loaded.config.critical_sha256, loaded.config.flags.iter().count()), (None, 0));
    assert!(place.warnings()[0].contains("every flag is off"));
}

#[test]
fn a_flag_is_on_by_a_word_that_stands_alone_and_what_looks_meant_is_told() {
    for written in ["enabled", " ON\t", "True", "yes ", "1", "enabled\r"] {
        let place = Place::new().file("critical.env", &format!("PROXMOX_ALLOW_HA={written}\n"));
        assert!(place.load().unwrap().config.flags.is_on(Flag::Ha), "{written:?}");
        assert_eq!(place.warnings(), Vec::<String>::new(), "{written:?}");
    }
    for written in [
        "\"enabled\"",
        "'on'",
        "enabled # for the weekend",
        "on;",
        "1,",
        "01",
        "1.0",
        "+1",
        "yes yes",
        "e nabled",
        "enable",
        "y",
        "t",
        "ok",
        "\u{a0}enabled",
        "\u{ff4f}n",
        "enabled\u{200b}",
        "'enabled",
        "=1",
    ] {
        let place = Place::new().file("critical.env", &format!("PROXMOX_ALLOW_HA={written}\n"));
        // A line that is no assignment stops the start instead.
        let Ok(loaded) = place.load() else { continue };
        assert!(!loaded.config.flags.is_on(Flag::Ha), "{written:?}");
        let told = place.warnings();
        assert!(told.len() == 1 && told[0].contains("PROXMOX_ALLOW_HA is off"), "{told:?}");
    }
    for written in ["", "disabled", "\"off\"", "no # not yet", "# enabled", "0", "FALSE"] {
        let place = Place::new().file("critical.env", &format!("PROXMOX_ALLOW_HA={written}\n"));
        assert!(!place.load().unwrap().config.flags.is_on(Flag::Ha), "{written:?}");
        assert_eq!(place.warnings(), Vec::<String>::new(), "{written:?}");
    }
    // The environment has no quotes and no comments either.
    for written in ["\"on\"", "on # x", "on\n"] {
        let place = Place::new().env("PROXMOX_ALLOW_HA", written);
        assert!(!place.load().unwrap().config.flags.is_on(Flag::Ha), "{written:?}");
        assert!(place.warnings()[0].contains("PROXMOX_ALLOW_HA is off"), "{written:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_others_can_read_is_told_and_what_they_can_write_is_refused() {
    let files = [".env", "critical.env", "secret", "ssh-key", "clients"];
    let place = || {
        let mut place = Place::new()
            .env("PROXMOX_TOKEN_SECRET_FILE", "secret")
            .env("PROXMOX_TOKEN_ID", "mcp@pve!full")
            .env("PROXMOX_SSH_KEY", "ssh-key")
            .env("PROXMOX_HTTP_CLIENTS", "clients");
        for name in files {
            place = place.file(name, if name == "secret" { UUID } else { "" });
        }
        fs::create_dir(place.path("state")).unwrap();
        mode(&place.path("state"), 0o700);
        place
    };
    assert!(place().warnings().is_empty());
    for name in files.into_iter().chain(["", "state"]) {
        let place = place();
        let path = if name.is_empty() { place.dir.path().to_owned() } else { place.path(name) };
        let shown = path.display().to_string();
        for (bits, who) in
            [(0o740, "others may read"), (0o704, "others may read"), (0o720, "others may write")]
        {
            mode(&path, bits);
            let warnings = place.warnings();
            assert_eq!(warnings.len(), 1, "{name} {bits:o}: {warnings:?}");
            assert!(
                warnings[0].contains(&format!("{who} {}", shown.trim_end_matches('/'))),
                "{warnings:?}"
            );
            assert!(warnings[0].contains("chmod "), "{warnings:?}");
        }
        for bits in [0o702, 0o777, 0o1777] {
            mode(&path, bits);
            let error = place.error();
            assert!(error.message.contains("everybody may write"), "{error}");
            assert!(error.hint.contains("chmod "), "{error}");
        }
        mode(&path, 0o700);
    }
}

#[test]
fn what_does_not_fit_together_is_told() {
    let pin = ["AB"; 32].join(":");
    for (env, message) in [
        ([("PROXMOX_TLS_INSECURE", "on"), ("PROXMOX_HOST", "a")], "is not checked"),
        ([("PROXMOX_TLS_INSECURE", "on"), ("PROXMOX_TLS_FINGERPRINT", &pin)], "no effect"),
        ([("PROXMOX_TLS_FINGERPRINT", &format!("b={pin}")), ("PROXMOX_HOST", "a")], "is for b"),
        ([("PROXMOX_READ_VMIDS", "allowed"), ("PROXMOX_HOST", "a")], "no effect"),
    ] {
        let [(a, b), (c, d)] = env;
        let warnings = Place::new().env(a, b).env(c, d).warnings();
        assert!(warnings.len() == 1 && warnings[0].contains(message), "{warnings:?}");
    }
    let place = Place::new().env("PROXMOX_TLS_FINGERPRINT", &format!("PVE1={pin}"));
    assert!(place.env("PROXMOX_HOST", "pve1").warnings().is_empty());
}

#[test]
fn paths_are_seen_from_the_configuration_directory_and_the_home() {
    let place = Place::new()
        .env("PROXMOX_SSH_KEY", "keys/id")
        .env("PROXMOX_TLS_CA_FILE", "/etc/ca.pem")
        .env("PROXMOX_UPLOAD_DIR", "~/up")
        .env("HOME", "/home/eva");
    let config = place.load().unwrap().config;
    assert_eq!(config.ssh.key, place.path("keys/id"));
    assert_eq!(config.tls.ca_file, Some("/etc/ca.pem".into()));
    assert_eq!(config.upload_dir, Some("/home/eva/up".into()));
}

#[cfg(unix)]
#[test]
fn a_value_that_is_not_text_is_an_error_and_not_a_panic() {
    use std::os::unix::ffi::OsStringExt;
    let mut place = Place::new();
    place.sources.env.insert("OTHER".to_owned(), OsString::from_vec(vec![0xff]));
    assert!(place.load().is_ok());
    place.sources.env.insert("PROXMOX_HOST".to_owned(), OsString::from_vec(vec![b'a', 0xff]));
    let text = place.error().to_string();
    assert!(text.contains("PROXMOX_HOST") && text.contains("UTF-8"), "{text}");
}

#[test]
fn a_directory_or_an_endless_file_in_place_of_a_file_is_an_error() {
    let place = Place::new();
    fs::create_dir(place.path(".env")).unwrap();
    assert!(place.error().message.contains("cannot be read"));
    if cfg!(target_os = "linux") {
        // Everybody may write it, which is looked at first.
        let place = Place::new().env("PROXMOX_TOKEN_SECRET_FILE", "/dev/zero");
        assert!(place.error().message.contains("everybody may write"));
    }
    let place = Place::new().file(".env", &"#\n".repeat(600_000));
    assert!(place.error().message.contains("1 MiB"));
}

/// What `PROXMOX_TOOLSETS` says it allows is what there is.
#[test]
fn the_groups_are_all_named() {
    let allowed = variable("PROXMOX_TOOLSETS").unwrap().allowed;
    for group in crate::tools::Group::ALL {
        assert!(allowed.contains(group.as_str()), "{}", group.as_str());
    }
}
