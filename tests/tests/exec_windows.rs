//! Commands, files and services in a Windows VM.
//!
//! No PowerShell is on the machine of these tests: the simulated guest does to
//! its files what a script is asked for, by the data that the script carries.
//! What is tested is what is sent, judged and answered; the command lines are
//! made by GLib's rules, old and new, and read by those of C and of cmd.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use e2e::{Estate, Server};
use pve_sim::{
    Effect, Fault,
    state::{guest::Agent, windows::Service},
};
use serde_json::{Value, json};

const VM: u32 = 100;
const TEMP: &str = r"C:\Windows\Temp";

struct World {
    estate: Estate,
    server: Server,
}

impl World {
    fn new(more: &[(&str, &str)]) -> Self {
        let estate = Estate::sample();
        let always = [("PROXMOX_MODE", "write"), ("PROXMOX_EXEC", "enabled")];
        let variables = always.into_iter().chain(more.iter().copied());
        let server = Server::open(estate.command().envs(variables).arg("serve"));
        let world = Self { estate, server };
        world.agent(|agent| {
            agent.windows = true;
            agent.os = "Windows Server 2022 Standard".to_owned();
            agent.files.clear();
            for dir in [TEMP, r"C:\app", r"C:\Program Files\App", r"C:\Users\bob\.ssh"] {
                agent.win.dirs.insert(dir.to_owned());
            }
        });
        world
    }

    fn agent<T>(&self, change: impl FnOnce(&mut Agent) -> T) -> T {
        self.estate
            .sim()
            .with_state(|state| change(state.guests.get_mut(&VM).unwrap().agent.as_mut().unwrap()))
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.agent(|agent| agent.files.insert(path.to_owned(), content.into()));
    }

    fn content(&self, path: &str) -> Option<Vec<u8>> {
        self.agent(|agent| agent.files.get(path).cloned())
    }

    /// What was left of a write.
    fn left(&self) -> Vec<String> {
        self.agent(|agent| {
            let all = agent.files.keys().chain(&agent.win.dirs);
            all.filter(|path| path.contains(".pve-")).cloned().collect()
        })
    }

    /// The answer of a tool, or its error.
    fn ask(&mut self, tool: &str, arguments: Value) -> Value {
        let mut all = json!({"vmid": VM});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let answer = self.server.call(tool, all)["structuredContent"].clone();
        answer.get("error").cloned().unwrap_or(answer)
    }

    fn write(&mut self, path: &str, more: Value) -> Value {
        let mut all = json!({"path": path, "content": "new\n"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("pve_guest_file_write", all)
    }

    fn read(&mut self, path: &str, follow: bool) -> Value {
        self.ask("pve_guest_file_read", json!({"path": path, "follow": follow}))
    }

    fn commands(&self) -> usize {
        let is_start = |line: &&String| line.starts_with("POST") && line.contains("/agent/exec");
        self.estate.arrived().iter().filter(is_start).count()
    }
}

fn code(error: &Value) -> &str {
    error["code"].as_str().unwrap_or_default()
}

/// Bytes of every value, and no repetition within a piece.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..count).map(|_| next()).collect()
}

/// F01, F03: what is written arrives byte by byte, in pieces, and is read back.
#[test]
fn f01_f03_files_arrive_whole() {
    let mut world = World::new(&[]);
    for count in [0, 4, 46_080, 46_081, 61_441, 300_000] {
        let content = if count == 4 { b"a=1\n".to_vec() } else { bytes(count) };
        let coded = STANDARD.encode(&content);
        let wrote = world.ask(
            "pve_guest_file_write",
            json!({"path": r"C:\app\größe 日.bin", "content_base64": coded}),
        );
        assert_eq!(
            (&wrote["bytes"], &wrote["created"]),
            (&json!(count), &json!(count == 0)),
            "{wrote}"
        );
        assert!(world.content(r"C:\app\größe 日.bin") == Some(content.clone()), "{count} bytes");
        let read = world
            .ask("pve_guest_file_read", json!({"path": "c:/APP/Größe 日.BIN", "length": 2 << 20}));
        assert_eq!(read["sha256"], wrote["sha256"], "{read}");
        assert_eq!((&read["size"], &read["truncated"]), (&json!(count), &json!(false)));
        assert_eq!(world.left(), [""; 0]);
    }
    let read = world.ask(
        "pve_guest_file_read",
        json!({"path": r"C:\app\größe 日.bin", "offset": 299_990, "length": 4}),
    );
    assert_eq!(read["content_base64"], STANDARD.encode(&bytes(300_000)[299_990..299_994]));
    assert_eq!((&read["next_offset"], &read["size"]), (&json!(299_994), &json!(300_000)), "{read}");
}

/// What a file is, where it leads, and why it cannot be written.
#[test]
fn files_keep_what_they_are() {
    let mut world = World::new(&[]);
    world.put(r"C:\app\It's [1] & $(x).txt", "old\n");
    let odd = r"C:\app\It's [1] & $(x).txt";
    let wrote = world.write(odd, json!({"append": true}));
    assert_eq!((&wrote["bytes"], &wrote["created"]), (&json!(8), &json!(false)), "{wrote}");
    assert_eq!(world.content(odd).unwrap(), b"old\nnew\n");
    let hash = wrote["sha256"].clone();
    assert_eq!(world.write(odd, json!({"if_sha256": hash}))["created"], false);
    // In another spelling it is the same file, under the name that it has.
    let wrote = world.write(r"\\?\c:\APP\it's [1] & $(X).TXT", json!({"content": "x"}));
    assert_eq!(wrote["created"], false, "{wrote}");
    assert_eq!(world.content(odd).unwrap(), b"x");
    let wrote = world.write(r"C:\app\d\e\f.txt", json!({"create_dirs": true}));
    assert_eq!(wrote["created"], true, "{wrote}");

    world.put(r"C:\app\fixed.txt", "old\n");
    world.put(r"C:\secret\x.txt", "old\n");
    world.agent(|agent| {
        agent.win.read_only.insert(r"C:\app\fixed.txt".to_owned());
        agent.win.denied.insert(r"C:\secret".to_owned());
        for (link, to) in [
            (r"C:\app\link", r"d\e\f.txt"),
            (r"C:\app\dangling", r"C:\nowhere\x"),
            (r"C:\app\dir", r"C:\app\d"),
            (r"C:\app\round", r"C:\app\round"),
            (r"C:\app\far", r"\\server\share"),
        ] {
            agent.win.links.insert(link.to_owned(), to.to_owned());
        }
    });
    for (path, more, want) in [
        (r"C:\app\link", json!({}), "invalid_argument"),
        (r"C:\app\dangling", json!({}), "invalid_argument"),
        (r"C:\app\dangling", json!({"follow": true}), "not_found"),
        (r"C:\app\round", json!({"follow": true}), "not_found"),
        (r"C:\app\far\x", json!({"follow": true}), "not_found"),
        (r"C:\app\dir\x", json!({}), "invalid_argument"),
        (r"C:\app\d", json!({}), "invalid_argument"),
        (r"C:\app\no\x", json!({}), "not_found"),
        (r"C:\app\d\e\f.txt\g", json!({}), "invalid_argument"),
        (r"C:\app\fixed.txt", json!({}), "conflict"),
        (r"C:\secret\x.txt", json!({}), "conflict"),
        (odd, json!({"if_sha256": "0".repeat(64)}), "digest_changed"),
        (r"C:\app\none", json!({"if_sha256": "0".repeat(64)}), "digest_changed"),
        (odd, json!({"mode": "644"}), "invalid_argument"),
        (odd, json!({"owner": "bob"}), "invalid_argument"),
        (r"C:\app\x:stream", json!({}), "invalid_argument"),
        (r"C:\app\x.", json!({}), "invalid_argument"),
        (r"C:app\x", json!({}), "invalid_argument"),
        (r"\\server\share\x", json!({}), "invalid_argument"),
        (r"\\.\PhysicalDrive0", json!({}), "invalid_argument"),
        (r"C:\app\con", json!({}), "invalid_argument"),
        (r"C:\app\x\", json!({}), "invalid_argument"),
        (r"C:\app\..\x", json!({}), "invalid_argument"),
        ("/app/x", json!({}), "invalid_argument"),
    ] {
        let refused = world.write(path, more.clone());
        assert_eq!(code(&refused), want, "{path} {more}: {refused}");
        assert_eq!(world.left(), [""; 0], "{path}");
    }
    assert_eq!(world.content(r"C:\app\fixed.txt").unwrap(), b"old\n");
    assert_eq!(world.content(odd).unwrap(), b"x");
    let wrote = world.write(r"C:\app\dir\e\f.txt", json!({"follow": true, "content": "y"}));
    assert_eq!(wrote["real_path"], r"C:\app\d\e\f.txt", "{wrote}");
    assert_eq!(world.content(r"C:\app\d\e\f.txt").unwrap(), b"y");

    // A full disk: in a piece, and where the file is put together.
    let large = "x".repeat(100_000);
    for free in [50_000, 150_000] {
        world.agent(|agent| agent.win.free = Some(free));
        let refused = world.write(odd, json!({"content": large}));
        assert_eq!(code(&refused), "conflict", "{free}: {refused}");
        assert_eq!((world.content(odd).unwrap(), world.left()), (b"x".to_vec(), vec![]));
    }
    assert_eq!(world.read(r"C:\app\d", false)["code"], "invalid_argument");
    assert_eq!(world.read(r"C:\app\none", false)["code"], "not_found");
    assert_eq!(world.read(r"C:\secret\x.txt", false)["code"], "conflict");
    let read = world.read(r"C:\app\dir\e\f.txt", false);
    assert_eq!((&read["content"], &read["real_path"]), (&json!("y"), &json!(r"C:\app\d\e\f.txt")));
}

/// A directory with its links, and what `dir` would show.
#[test]
fn a_directory_is_listed() {
    let mut world = World::new(&[]);
    world.put(r"C:\app\b [x].txt", "12");
    world.put(r"C:\app\Ü\deep\x", "");
    world.agent(|agent| {
        agent.win.links.insert(r"C:\app\a".to_owned(), r"C:\Users".to_owned());
        agent.win.links.insert(r"C:\to".to_owned(), r"C:\app".to_owned());
        agent.win.read_only.insert(r"C:\app\b [x].txt".to_owned());
    });
    let list = world.ask("pve_guest_file_list", json!({"path": "c:/app/"}));
    assert_eq!(list["columns"][3], "attributes", "{list}");
    let rows = list["rows"].as_array().unwrap();
    let short: Vec<_> = rows.iter().map(|r| (&r[0], &r[1], &r[2], &r[3], &r[6])).collect();
    assert_eq!(
        short,
        [
            (&json!("a"), &json!("link"), &Value::Null, &json!(""), &json!(r"C:\Users")),
            (&json!("b [x].txt"), &json!("file"), &json!(2), &json!("RA"), &Value::Null),
            (&json!("Ü"), &json!("directory"), &Value::Null, &json!(""), &Value::Null),
        ]
    );
    for (path, follow, want) in [
        (r"C:\to", false, "invalid_argument"),
        (r"C:\none", false, "not_found"),
        (r"C:\app\*", false, "invalid_argument"),
        (r"C:\app\b [x].txt", false, "invalid_argument"),
        ("/app", false, "invalid_argument"),
        (r"\\localhost\c$", false, "invalid_argument"),
    ] {
        let refused = world.ask("pve_guest_file_list", json!({"path": path, "follow": follow}));
        assert_eq!(code(&refused), want, "{path}: {refused}");
    }
    let list = world.ask("pve_guest_file_list", json!({"path": r"C:\to", "follow": true}));
    assert_eq!((&list["total"], &list["real_path"]), (&json!(3), &json!(r"C:\app")), "{list}");
    let list = world.ask("pve_guest_file_list", json!({"path": r"C:\"}));
    assert!(list["rows"].to_string().contains("Program Files"), "{list}");
}

/// Secrets are not read by any spelling, link or short name, and nothing of them is sent.
#[test]
fn secrets_stay_in_the_guest() {
    let mut world = World::new(&[]);
    let key = r"C:\Users\bob\.ssh\id_ed25519";
    world.put(key, "KEY");
    world.put(r"C:\Windows\System32\config\SAM", "HASH");
    world.agent(|agent| {
        agent.win.links.insert(r"C:\app\link".to_owned(), key.to_owned());
        agent.win.links.insert(r"C:\app\cfg".to_owned(), r"C:\Windows\System32\config".to_owned());
        agent.win.links.insert(r"C:\app\keys".to_owned(), r"..\Users\bob\.ssh".to_owned());
    });
    world.estate.sim().clear_requests();
    for path in [
        key.to_owned(),
        key.replace('\\', "/"),
        key.to_uppercase(),
        format!(r"\\?\{key}"),
        format!(r"\\.\{key}"),
        format!("//?/{}", key.replace('\\', "/")),
        format!("{key}::$DATA"),
        format!("{key}."),
        format!("{key} "),
        r"C:\app\..\Users\bob\.ssh\id_ed25519".to_owned(),
        r"C:Users\bob\.ssh\id_ed25519".to_owned(),
        r"\\localhost\c$\Users\bob\.ssh\id_ed25519".to_owned(),
        r"C:\Users\bob\SSH~1\ID_ED2~1".to_owned(),
        r"C:\Windows\System32\config\sam".to_owned(),
        r"\\?\GLOBALROOT\Device\HarddiskVolumeShadowCopy1\Windows\System32\config\SAM".to_owned(),
    ] {
        for follow in [false, true] {
            let refused = world.read(&path, follow);
            assert_eq!(code(&refused), "endpoint_refused", "{path}: {refused}");
        }
    }
    assert_eq!(world.commands(), 0, "{:?}", world.estate.arrived());
    // What only the guest can tell.
    for (path, follow) in
        [(r"C:\app\link", true), (r"C:\app\cfg\SAM", false), (r"C:\app\keys\ID_ED2~1", false)]
    {
        let refused = world.read(path, follow);
        assert_eq!(code(&refused), "endpoint_refused", "{path}: {refused}");
        assert!(!refused.to_string().contains("KEY") && !refused.to_string().contains("HASH"));
    }
    let refused =
        world.ask("pve_vm_exec", json!({"command": r"type C:\Users\bob\.ssh\id_ed25519"}));
    assert_eq!(code(&refused), "endpoint_refused", "{refused}");
    let argv = json!(["robocopy", r"C:\Windows\NTDS", "C:\\x", "ntds.dit"]);
    let refused = world.ask("pve_vm_exec", json!({"command": argv}));
    assert_eq!(code(&refused), "endpoint_refused", "{refused}");
}

/// System files need their flag and their own name, also by a short name or a link.
#[test]
fn system_files_need_their_flag() {
    let mut world = World::new(&[]);
    world.put(r"C:\Windows\System32\drivers\etc\hosts", "old\n");
    world.put(r"C:\Program Files\App\a.ini", "old\n");
    world.agent(|agent| {
        agent
            .win
            .links
            .insert(r"C:\app\etc".to_owned(), r"C:\Windows\System32\drivers\etc".to_owned());
    });
    for path in [
        r"C:\Windows\System32\drivers\etc\hosts",
        "c:/windows/system32/drivers/etc/HOSTS",
        r"\\?\C:\Windows\System32\drivers\etc\hosts",
        r"C:\PROGRA~1\App\a.ini",
    ] {
        let refused = world.write(path, json!({}));
        assert_eq!(code(&refused), "flag_disabled", "{path}: {refused}");
        assert_eq!(refused["category"], "EXEC_SYSTEM_FILES", "{refused}");
    }
    let refused = world.write(r"C:\app\etc\hosts", json!({"follow": true}));
    assert!(matches!(code(&refused), "invalid_argument" | "flag_disabled"), "{refused}");
    assert_eq!(world.content(r"C:\Windows\System32\drivers\etc\hosts").unwrap(), b"old\n");

    let mut world = World::new(&[("PROXMOX_ALLOW_EXEC_SYSTEM_FILES", "on")]);
    world.put(r"C:\Windows\System32\drivers\etc\hosts", "old\n");
    let path = r"C:\Windows\System32\drivers\etc\hosts";
    let refused = world.write(path, json!({"confirm": "yes"}));
    assert_eq!(code(&refused), "confirm_required", "{refused}");
    let wrote = world.write("c:/Windows/System32/drivers/etc/hosts", json!({"confirm": path}));
    assert_eq!(wrote["status"], "done", "{wrote}");
    assert_eq!(world.content(path).unwrap(), b"new\n");
}

/// A write that is cut at any call of it leaves the old file, or the new one, whole.
#[test]
fn a_write_that_is_cut_leaves_the_old_file_whole() {
    let mut world = World::new(&[]);
    let (old, new) = (bytes(70_000), bytes(100_000));
    let path = r"C:\app\file";
    let write = json!({"path": path, "content_base64": STANDARD.encode(&new)});
    world.put(path, old.clone());
    world.estate.sim().clear_requests();
    world.ask("pve_guest_file_write", write.clone());
    let is_post = |line: &str| {
        let path = line.split('?').next().unwrap();
        line.starts_with("POST")
            && (path.ends_with("/agent/exec") || path.ends_with("/agent/file-write"))
    };
    let calls = world.estate.arrived().iter().filter(|line| is_post(line)).count();
    assert!(calls >= 6, "place, room, three pieces, write: {:?}", world.estate.arrived());
    let effects = [
        Effect::CutBeforeBody,
        Effect::CutAfterBody { apply: false },
        Effect::CutAfterBody { apply: true },
        Effect::broken_pipe(),
    ];
    let mut survived = [0, 0];
    for at in 0..calls {
        for effect in &effects {
            world.put(path, old.clone());
            for _ in 0..at {
                let nothing = Effect::Latency(std::time::Duration::ZERO);
                world.estate.sim().inject(Fault::new(nothing).method("POST").path("*/agent/*"));
            }
            world.estate.sim().inject(Fault::new(effect.clone()).method("POST").path("*/agent/*"));
            let answer = world.ask("pve_guest_file_write", write.clone());
            world.estate.sim().clear_faults();
            let now = world.content(path).unwrap();
            let what = format!("call {at}, {effect:?}: {answer}");
            assert!(now == old || now == new, "torn: {what}");
            if answer.get("code").is_none() {
                assert!(now == new, "{what}");
            } else if answer["unchanged"] == json!(true) {
                assert!(now == old, "{what}");
            }
            survived[usize::from(now == new)] += 1;
            assert_eq!(world.left(), [""; 0], "{what}");
        }
    }
    assert!(survived[0] > 0 && survived[1] > 0, "both ends are seen: {survived:?}");
}

/// F10: what is given to cmd, PowerShell or a program arrives as it was given,
/// by agents that quote in the old way and in the new one.
#[test]
fn f10_commands_arrive_as_they_were_given() {
    let mut world = World::new(&[("PROXMOX_ALLOW_EXEC_SHELL", "on")]);
    let texts = [
        (r"echo a b", "a b\n"),
        (r#"echo "a & b" c"#, "\"a & b\" c\n"),
        (r#"echo "a" & echo "b""#, "\"a\" \n\"b\"\n"),
        (r"echo %OS% %nothing% 100%", "Windows_NT %nothing% 100%\n"),
        (r"echo a ^& b ^^ ^%", "a & b ^ %\n"),
        (r"echo C:\a b\", "C:\\a b\\\n"),
        (r#"echo "C:\a b\""#, "\"C:\\a b\\\"\n"),
        (r"echo 日本 ü €", "日本 ü €\n"),
        (r#"echoargs "a b" c"d e\\" "" \"x"#, "<a b>\n<cd e\\>\n<>\n<\"x>\n"),
        (r#"hostname & echo "x"#, "web-01\n\"x\n"),
        ("echo", "\n"),
    ];
    let lists = [
        &["echoargs", "a b", "c"][..],
        &["echoargs", ""],
        &["echoargs", "", "x", ""],
        &["echoargs", r"C:\a b\", "x"],
        &["echoargs", r#"a"b"#, r#"\"#, r#"\""#, r#"a\\"b c"#],
        &["echoargs", "%OS%", "a&b", "a^b", "<x>|y"],
        &["echoargs", "日本", "ü", "a\nb"],
    ];
    for old in [false, true] {
        world.agent(|agent| agent.win.old_agent = old);
        for (text, want) in texts {
            let ran = world.ask("pve_vm_exec", json!({"command": text, "confirm": text}));
            assert_eq!(
                (&ran["stdout"], &ran["exit_code"]),
                (&json!(want), &json!(0)),
                "{text} {old}: {ran}"
            );
        }
        for list in lists {
            let ran = world.ask("pve_vm_exec", json!({"command": list}));
            let want: String = list[1..].iter().map(|a| format!("<{a}>\n")).collect();
            assert_eq!(ran["stdout"], want, "{list:?} {old}: {ran}");
        }
        for text in ["'a ''b'' \"c\" %x% & ^'", "'日本'", r"'C:\a b\'", "'x\ty'"] {
            let ran = world.ask(
                "pve_vm_exec",
                json!({"command": text, "shell": "powershell", "confirm": text}),
            );
            let want = format!("{}\n", text[1..text.len() - 1].replace("''", "'"));
            assert_eq!(ran["stdout"], want, "{text} {old}: {ran}");
        }
        // A directory, and its absence, in which nothing is run.
        for (command, shell) in [("cd", "cmd"), ("$PWD.Path", "powershell")] {
            let mut run = |cwd: &str| {
                let all =
                    json!({"command": command, "shell": shell, "cwd": cwd, "confirm": command});
                world.ask("pve_vm_exec", all)
            };
            assert_eq!(run(r"C:\Program Files\App")["stdout"], "C:\\Program Files\\App\n");
            let ran = run(r"C:\none");
            assert!(ran["exit_code"] != json!(0) && ran["stdout"] == json!(""), "{ran}");
        }
    }
    let stdin =
        json!({"command": "more & echo \"x\"", "stdin": "ü\n", "confirm": "more & echo \"x\""});
    assert_eq!(world.ask("pve_vm_exec", stdin)["stdout"], "ü\n\"x\"\n");
    let ran = world.ask("pve_vm_exec", json!({"command": ["echoargs", "x"], "cwd": r"C:\app"}));
    assert_eq!(ran["stdout"], "<x>\n", "{ran}");
    for command in
        [json!("echo a\necho b"), json!("x".repeat(9_000)), json!(["x", "y".repeat(40_000)])]
    {
        let refused = world.ask("pve_vm_exec", json!({"command": command, "confirm": command}));
        assert_eq!(code(&refused), "invalid_argument", "{refused}");
    }
    let ran = world.ask("pve_vm_exec", json!({"command": "exit 7", "confirm": "exit 7"}));
    assert_eq!(ran["exit_code"], 7);
    let refused = world.ask("pve_vm_exec", json!({"command": ["no-such"]}));
    assert_eq!(code(&refused), "outcome_unknown", "{refused}");
    // What a list does is looked at too.
    let refused = world.ask("pve_vm_exec", json!({"command": ["shutdown.exe", "/r"]}));
    assert_eq!(refused["category"], "EXEC_POWER", "{refused}");
}

/// Services by either of their names, whatever stands in those.
#[test]
fn services_are_shown_and_changed() {
    let mut world = World::new(&[("PROXMOX_ALLOW_EXEC_SERVICES", "on")]);
    world.agent(|agent| {
        let service = |name: &str, shown: &str, broken: Option<&str>| Service {
            name: name.to_owned(),
            shown: shown.to_owned(),
            running: true,
            broken: broken.map(str::to_owned),
        };
        agent.win.services = vec![
            service("wuauserv", "Windows Update", None),
            service("MSSQL$SQLEXPRESS", "SQL Server (SQLEXPRESS)", None),
            service("it's \"odd\"", "Größe 日", None),
            service("bad", "Broken", Some("Cannot start service bad on computer '.'.")),
            service("one", "Twice", None),
            service("two", "Twice", None),
        ];
    });
    let ask = |service: &str, action: &str| json!({"service": service, "action": action, "confirm": format!("{action} {service}")});
    for (service, name) in [
        ("wuauserv", "wuauserv"),
        ("WUAUSERV", "wuauserv"),
        ("Windows Update", "wuauserv"),
        ("MSSQL$SQLEXPRESS", "MSSQL$SQLEXPRESS"),
        ("SQL Server (SQLEXPRESS)", "MSSQL$SQLEXPRESS"),
        ("it's \"odd\"", "it's \"odd\""),
        ("Größe 日", "it's \"odd\""),
    ] {
        for (action, active) in [
            ("stop", "inactive"),
            ("status", "inactive"),
            ("start", "active"),
            ("restart", "active"),
        ] {
            let told = world.ask("pve_guest_service", ask(service, action));
            assert_eq!((&told["active"], &told["name"]), (&json!(active), &json!(name)), "{told}");
            assert_eq!(told["enabled"], "enabled", "{told}");
        }
    }
    for (service, action, want) in [
        ("none", "status", "not_found"),
        ("Windows  Update", "restart", "not_found"),
        ("'; calc; '", "status", "not_found"),
        ("bad", "start", "task_failed"),
        ("Twice", "status", "conflict"),
        ("wuau*", "status", "invalid_argument"),
        ("-x", "status", "invalid_argument"),
    ] {
        let refused = world.ask("pve_guest_service", ask(service, action));
        assert_eq!(code(&refused), want, "{service}: {refused}");
    }
    let refused = world.ask("pve_guest_service", json!({"service": "wuauserv", "action": "stop"}));
    assert_eq!(code(&refused), "confirm_required", "{refused}");
}

/// A guest without PowerShell, or whose agent may run nothing: files are read by
/// the agent itself, and the rest says what is missing.
#[test]
fn without_powershell_files_are_read_yet() {
    let mut world = World::new(&[("PROXMOX_ALLOW_EXEC_SHELL", "on")]);
    world.put(r"C:\app\a.ini", "a=1\r\n");
    world.put(r"C:\Users\bob\.ssh\id_rsa", "KEY");
    for off in [false, true] {
        world.agent(|agent| {
            agent.win.no_powershell = true;
            agent.off = if off { vec!["guest-exec".to_owned()] } else { vec![] };
        });
        let read = world.read("c:/app/A.ini", false);
        assert_eq!(
            (&read["content_base64"], &read["size"]),
            (&json!("YT0xDQo="), &json!(5)),
            "{read}"
        );
        assert!(read["warnings"].to_string().contains("link"), "{read}");
        assert_eq!(code(&world.read(r"C:\app\none", false)), "not_found");
        assert_eq!(code(&world.read(r"C:\Users\bob\.ssh\id_rsa", false)), "endpoint_refused");
        assert_eq!(code(&world.read(r"C:\Users\bob\SSH~1\id_rsa", false)), "endpoint_refused");
        for (tool, arguments) in [
            ("pve_guest_file_list", json!({"path": r"C:\app"})),
            ("pve_guest_file_write", json!({"path": r"C:\app\a.ini", "content": "x"})),
            ("pve_guest_service", json!({"service": "x"})),
        ] {
            let refused = world.ask(tool, arguments);
            let want = if off { "agent_unavailable" } else { "outcome_unknown" };
            assert_eq!(code(&refused), want, "{tool}: {refused}");
        }
    }
    world.agent(|agent| agent.off.clear());
    let ran = world.ask("pve_vm_exec", json!({"command": "echo x", "confirm": "echo x"}));
    assert_eq!(ran["stdout"], "x\n", "{ran}");
    assert_eq!(world.content(r"C:\app\a.ini").unwrap(), b"a=1\r\n");
}
