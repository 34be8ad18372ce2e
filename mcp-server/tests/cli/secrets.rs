//! No secret in anything that any command prints, whatever goes wrong.

use std::process::Stdio;

use crate::place::{Place, commands, seen, sim};

const HTTP_TOKEN: &str = "planted-http-token-0123456789abcdef0123";
const WRONG: &str = "deadbeef-5ec3-4e75-a11a-0123456789ab";

/// Every command with arguments that make it do something.
fn invocations() -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for name in commands() {
        let args: &[&str] = match name.as_str() {
            // Demo brings its own estate; serve is run apart, with requests.
            "demo" => continue,
            "task" => &["UPID:pve1:000011D4:0001D224:6B0B8720:vzdump::root@pam:"],
            "call" => &["pve_whoami"],
            _ => &[],
        };
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        let mut line = vec![name.clone()];
        line.extend(args.clone());
        all.push(line);
    }
    assert!(all.len() >= 15, "{all:?}");
    all
}

/// Places in which things go well, and wrong in every way that touches the secrets.
fn places(secret: &str) -> Vec<(&'static str, Place)> {
    let well =
        || Place::connected().env("PROXMOX_HTTP_TOKEN", HTTP_TOKEN).env("LOG_LEVEL", "trace");
    let (id, _) = sim().token("admin").unwrap();
    let header = format!("PVEAPIToken={id}={secret}");
    vec![
        ("well", well()),
        ("well in text", well()),
        ("wrong secret", well().env("PROXMOX_TOKEN_SECRET", WRONG)),
        ("header", well().env("PROXMOX_TOKEN_ID", &header)),
        ("swapped", well().env("PROXMOX_TOKEN_ID", secret).env("PROXMOX_TOKEN_SECRET", &id)),
        ("no name", well().env("PROXMOX_TOKEN_ID", "mcp@pve")),
        ("other pin", well().env("PROXMOX_TLS_FINGERPRINT", &["AB"; 32].join(":"))),
        ("nobody there", well().env("PROXMOX_HOST", "127.0.0.1:1")),
        ("secret in the host", well().env("PROXMOX_HOST", &format!("https://x:{secret}@h/"))),
        ("same token twice", well().env("PROXMOX_HTTP_TOKEN", &format!("bearer-{secret}"))),
        ("short http token", well().env("PROXMOX_HTTP_TOKEN", &HTTP_TOKEN[..20])),
        ("secret file", {
            let env = format!(
                "PROXMOX_HOST={}\nPROXMOX_TOKEN_ID={id}\nPROXMOX_TOKEN_SECRET_FILE=secret\n\
                 PROXMOX_TLS_FINGERPRINT={}\n",
                sim().addr(),
                sim().fingerprint()
            );
            Place::empty()
                .env("LOG_LEVEL", "trace")
                .file(".env", &env)
                .file("secret", &format!("{secret}\n"))
        }),
        ("secret file of two lines", {
            Place::empty()
                .file(".env", "PROXMOX_TOKEN_SECRET_FILE=secret\n")
                .file("secret", &format!("{secret}\n{WRONG}\n"))
        }),
        (
            "broken line",
            Place::empty().file(".env", &format!("PROXMOX_TOKEN_SECRET='{secret}\n{HTTP_TOKEN}\n")),
        ),
        ("unknown name", well().file("critical.env", &format!("PROXMOX_TOKEN_SECERT={WRONG}\n"))),
    ]
}

#[test]
fn no_command_prints_a_secret() {
    let (_, secret) = sim().token("admin").unwrap();
    let hidden = [secret.as_str(), HTTP_TOKEN, &HTTP_TOKEN[..20], WRONG];
    let invocations = invocations();
    for (what, place) in places(&secret) {
        let mut printed = 0;
        for (n, args) in invocations.iter().enumerate() {
            let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
            // Text and JSON by turns, and both where everything is well.
            if what == "well" || (n % 2 == 0 && what != "well in text") {
                args.push("--json");
            }
            let run = place.run(&args);
            printed += run.stdout.len() + run.stderr.len();
            for secret in hidden {
                let both = format!("{}\n{}", run.stdout, run.stderr);
                assert!(!both.contains(secret), "{what}: {args:?} prints {secret}:\n{both}");
            }
        }
        assert!(printed > 1_000, "{what}: nothing was printed");
    }
}

/// The server with everything logged, and calls that fail in between.
#[test]
fn the_server_logs_no_secret() {
    use std::io::{BufRead, BufReader, Write};
    let (_, secret) = sim().token("admin").unwrap();
    for (what, place) in places(&secret).into_iter().take(7) {
        let mut child = place
            .command(&["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let ask = |id: u32, tool: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
            )
        };
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            ask(2, "pve_whoami"),
            ask(3, "pve_check_connection"),
            ask(4, "pve_list_vms"),
        ];
        // A server that refused to start has closed its input.
        let sent = lines.iter().all(|line| writeln!(stdin, "{line}").is_ok());
        let mut stdout = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut answers = 0;
        while sent && answers < 4 {
            match reader.read_line(&mut stdout) {
                Ok(n) if n > 0 => answers += 1,
                _ => break,
            }
        }
        drop(stdin);
        let run = seen(child.wait_with_output().unwrap());
        let both = format!("{stdout}\n{}", run.stderr);
        for hidden in [secret.as_str(), HTTP_TOKEN, WRONG] {
            assert!(!both.contains(hidden), "{what}: {hidden} in\n{both}");
        }
        assert!(!run.stderr.is_empty(), "{what}: nothing was logged");
    }
}
