use super::*;
use crate::{
    Code,
    pve::{GuestKind, NodeName, Vmid},
    safety::deed::{Place, Program, Run, Shell, System},
};

/// The script in an argument list, and its data.
fn script(argv: &[String]) -> (String, Vec<String>) {
    let at = argv.iter().position(|a| a == "-EncodedCommand").unwrap();
    let bytes = STANDARD.decode(&argv[at + 1]).unwrap();
    let units: Vec<u16> = bytes.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
    let script = String::from_utf16(&units).unwrap();
    let coded = script.split("FromBase64String('").nth(1).and_then(|s| s.split('\'').next());
    let data = coded.map(|c| String::from_utf8(STANDARD.decode(c).unwrap()).unwrap());
    let fields = data.map(|d| d.split('\0').map(str::to_owned).collect());
    (script, fields.unwrap_or_default())
}

fn run(program: Program, cwd: Option<&str>) -> Run {
    Run {
        program,
        cwd: cwd.map(str::to_owned),
        windows: true,
        stdin: None,
        timeout_s: 10,
        max_output: 1024,
    }
}

fn text(text: &str, shell: Shell, cwd: Option<&str>) -> Result<Vec<String>> {
    run(Program::Text { text: text.to_owned(), shell }, cwd).argv(true)
}

/// What no agent changes goes as it is; everything else by the script that starts it.
#[test]
fn a_line_for_cmd_arrives_as_it_was_given() {
    for plain in ["dir", r"dir C:\a b & echo %PATH% ^& x", "echo 'x' | find x", "echo ü"] {
        assert_eq!(text(plain, Shell::Cmd, None).unwrap(), ["cmd.exe", "/c", plain]);
    }
    for (line, cwd) in [
        (r#"dir "C:\Program Files""#, None),
        (r"dir C:\a b\", None),
        ("echo 日", None),
        (r#"echo "a&b" ^& %x% \"#, None),
        ("dir", Some(r"C:\Program Files")),
    ] {
        let argv = text(line, Shell::Cmd, cwd).unwrap();
        assert!(argv.iter().all(|a| a.is_ascii() && !a.contains(['"', '\\', ' '])), "{argv:?}");
        let (script, data) = script(&argv);
        let want = [
            "run".to_owned(),
            "cmd.exe".to_owned(),
            format!("/s /c \"{line}\""),
            cwd.unwrap_or_default().to_owned(),
        ];
        assert_eq!(data, want);
        assert!(!script.contains(line) || line == "dir", "{script}");
    }
    // A trailing line feed is no second line.
    assert_eq!(text("dir\r\n", Shell::Cmd, None).unwrap()[2], "dir");
    for (line, shell) in [
        ("a\nb".to_owned(), Shell::Cmd),
        ("x".repeat(8_200), Shell::Cmd),
        (format!("\"{}", "x".repeat(8_200)), Shell::Cmd),
        ("x".repeat(40_000), Shell::PowerShell),
        ("日".repeat(13_000), Shell::PowerShell),
    ] {
        let error = text(&line, shell, None).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
    }
}

#[test]
fn a_text_for_powershell_arrives_as_it_was_given() {
    for plain in ["dir", r#"Get-Item "C:\a b" | % { "$_" }"#, "'ü'", "a\nb"] {
        let argv = text(plain, Shell::PowerShell, None).unwrap();
        assert_eq!(argv[3..], ["-Command", plain], "{argv:?}");
    }
    let argv = text("dir", Shell::PowerShell, Some(r"C:\it's")).unwrap();
    assert_eq!(argv[4], r"Set-Location -LiteralPath 'C:\it''s' -ErrorAction Stop; dir");
    let argv = text("dir", Shell::PowerShell, Some("C:\\a\u{2019};calc")).unwrap();
    assert!(script(&argv).0.contains("'C:\\a\u{2019}\u{2019};calc'"), "{argv:?}");
    for wide in ["'日 \"x\"'", r"dir C:\a b\"] {
        let argv = text(wide, Shell::PowerShell, None).unwrap();
        assert!(argv.iter().all(|a| a.is_ascii()), "{argv:?}");
        let (script, _) = script(&argv);
        assert!(script.ends_with(&format!("; {wide}")), "{script}");
    }
}

#[test]
fn a_list_arrives_as_it_was_given() {
    let list = |argv: &[&str], cwd| {
        let argv = argv.iter().map(ToString::to_string).collect();
        run(Program::Argv(argv), cwd).argv(true).unwrap()
    };
    let plain = [r"C:\Program Files\x.exe", "a b", "\"q\"", r"C:\x\", "ü"];
    assert_eq!(list(&plain, None), plain);
    for (argv, cwd, line) in [
        (&["x", ""][..], None, "\"\""),
        (&["x", r"C:\a b\"], None, r#""C:\a b\\""#),
        (&["x", "日", "b"], None, "日 b"),
        (&["x", r#"a\"b"#, r"\\s\x"], Some("C:\\"), r#""a\\\"b" \\s\x"#),
        (&["x"], Some("D:\\"), ""),
    ] {
        let (_, data) = script(&list(argv, cwd));
        assert_eq!(data, ["run", "x", line, cwd.unwrap_or_default()], "{argv:?}");
    }
}

fn place() -> Place {
    Place {
        node: NodeName::parse("pve1").unwrap(),
        kind: GuestKind::Qemu,
        vmid: Vmid::new(101).unwrap(),
        name: "win".to_owned(),
    }
}

/// What varies reaches a script coded, whatever stands in it, and the longest of it has room.
#[test]
fn steps_carry_what_was_judged_and_no_text_of_it_is_code() {
    let odd = r"C:\it's $(calc) `x` 日 ’; exit #";
    let long = format!(r"C:\{}", "日".repeat(330));
    for path in [odd, &long] {
        let file = NewFile {
            path: path.to_owned(),
            sha256: "0".repeat(64),
            bytes: 1,
            append: false,
            mode: None,
            owner: None,
            create_dirs: false,
            if_sha256: Some("1".repeat(64)),
        };
        let directory = crate::safety::deed::directory_of(path).to_owned();
        let read = Deed::FileRead { place: place(), path: path.to_owned() };
        let list = Deed::FileList { place: place(), path: path.to_owned() };
        let above = Deed::FileList { place: place(), path: directory };
        let wrote = Deed::FileWrite { place: place(), file };
        let service = Deed::Service { place: place(), service: path.to_owned(), action: "restart" };
        for (step, deed) in [
            (Step::Read { path, follow: true, offset: 0, count: 1 }, &read),
            (Step::List { path, follow: true, mark: "" }, &list),
            (Step::Place { path, follow: true, make: true }, &above),
            (Step::Room { name: "ab12" }, &wrote),
            (Step::Clear { name: "ab12" }, &wrote),
            (Step::Write { name: "ab12", pieces: true }, &wrote),
            (Step::State, &wrote),
            (Step::Service, &service),
        ] {
            let argv = step.argv(deed, System::Windows).unwrap();
            assert!(argv.iter().all(|a| a.is_ascii() && !a.contains(['"', ' '])), "{argv:?}");
            let (script, data) = script(&argv);
            assert!(!script.contains("it's") && script.is_ascii(), "{script}");
            assert!(
                !matches!(step, Step::Room { .. } | Step::Clear { .. })
                    == data.contains(&path.to_owned())
            );
            for other in [&read, &list, &wrote, &service] {
                let same = std::mem::discriminant(other) == std::mem::discriminant(deed);
                assert!(same || step.argv(other, System::Windows).is_err(), "{step:?} {other:?}");
            }
        }
        for step in
            [Step::Write { name: "../x", pieces: true }, Step::Write { name: "ab", pieces: false }]
        {
            assert!(step.argv(&wrote, System::Windows).is_err());
        }
    }
}

#[test]
fn directories_are_named() {
    for (path, want) in
        [(r"C:\a\b", r"C:\a"), (r"C:\a", r"C:\"), (r"C:\", r"C:\"), ("/a/b", "/a"), ("/a", "/")]
    {
        assert_eq!(crate::safety::deed::directory_of(path), want);
    }
}

#[test]
fn pieces_go_to_a_room_of_their_own() {
    for (room, good) in [
        (r"C:\Windows\Temp\.pve-ab12", true),
        (r"D:\t\.pve-ab12", true),
        (r"c:\WINDOWS\temp\.pve-ab12", true),
        (r"C:\Windows\Temp\.pve-ab13", false),
        (r"C:\Windows\Temp\x.pve-ab12\", false),
        (r"C:\Windows\..\Temp\.pve-ab12", false),
        (r"\\server\x\.pve-ab12", false),
        (r"C:\日\.pve-ab12", false),
        (r"Temp\.pve-ab12", false),
    ] {
        assert_eq!(is_room(room, "ab12"), good, "{room}");
    }
    assert!(!is_room(r"C:\x\.pve-..", ".."));
}

/// Nothing here runs PowerShell, so at least what a slip of the pen breaks is
/// looked for: brackets without their other half, names that nothing sets,
/// and arguments that are not there.
#[test]
fn scripts_name_only_what_is_there() {
    let scripts = [
        (include_str!("scripts/windows/read.ps1"), 6, true),
        (include_str!("scripts/windows/list.ps1"), 4, true),
        (include_str!("scripts/windows/place.ps1"), 4, true),
        (include_str!("scripts/windows/room.ps1"), 2, true),
        (include_str!("scripts/windows/clear.ps1"), 2, true),
        (include_str!("scripts/windows/write.ps1"), 8, true),
        (include_str!("scripts/windows/state.ps1"), 2, true),
        (include_str!("scripts/windows/service.ps1"), 3, true),
        (RUN, 4, false),
    ];
    for (script, fields, common) in scripts {
        let text = format!("{}{}", if common { COMMON } else { "" }, script);
        let code = without_literals(&sent(&text));
        let mut open = Vec::new();
        for c in code.chars() {
            match c {
                '(' | '[' | '{' => open.push(c),
                ')' => assert_eq!(open.pop(), Some('('), "{script}"),
                ']' => assert_eq!(open.pop(), Some('['), "{script}"),
                '}' => assert_eq!(open.pop(), Some('{'), "{script}"),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}: {script}");
        let mut set: Vec<String> =
            ["_", "a", "true", "false", "null", "psversiontable"].map(str::to_owned).to_vec();
        let mut read = Vec::new();
        for piece in code.split('$').skip(1) {
            let piece = piece.strip_prefix("script:").unwrap_or(piece);
            let end = piece.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
            let rest = rest.trim_start();
            let sets = ["= ", "+= ", "-= ", "++", "in "].iter().any(|s| rest.starts_with(s));
            if name == "a" && rest.starts_with('[') {
                let number: usize = rest[1..].split(']').next().unwrap().parse().unwrap();
                assert!((1..fields).contains(&number), "$a[{number}]: {script}");
            }
            match sets {
                true => set.push(name.to_ascii_lowercase()),
                false => read.push(name.to_ascii_lowercase()),
            }
        }
        for function in code.split("function ").skip(1) {
            let parameters = function.split('(').nth(1).and_then(|p| p.split(')').next());
            let parameters = parameters.unwrap_or_default().split(", ");
            set.extend(parameters.map(|p| p.trim_start_matches('$').to_ascii_lowercase()));
        }
        let unset: Vec<&String> =
            read.iter().filter(|name| !name.is_empty() && !set.contains(name)).collect();
        assert!(unset.is_empty(), "{unset:?}: {script}");
    }
}

/// A script without what stands in its single quotes, in which nothing is read.
fn without_literals(script: &str) -> String {
    script.split('\'').step_by(2).collect::<Vec<_>>().join("''")
}
