use super::*;

fn of(text: &str) -> Finding {
    classify(&Command::Text { text, shell: Shell::Sh }, None, None)
}

#[test]
fn what_is_deep_or_long_is_code_that_cannot_be_looked_into() {
    for text in [
        "(".repeat(5000),
        "$(".repeat(300),
        format!("echo {}", "a".repeat(LONGEST)),
        format!("{}ls", "sudo ".repeat(100)),
        "if true; then".to_owned(),
        "echo 'open".to_owned(),
        "cat <<EOF".to_owned(),
    ] {
        let found = of(&text);
        assert!(found.categories.contains(&Flag::ExecShell), "{}", text.get(..40).unwrap_or(&text));
    }
}

/// Texts for which the parser's time doubles with each level.
#[test]
fn what_takes_the_parser_too_long_is_not_given_to_it() {
    for part in ["(", "((", "{a,", "${a[", "case x in x) ", "$((", "@(", "( ["] {
        let text = format!("echo {}", part.repeat(40));
        assert!(of(&text).categories.contains(&Flag::ExecShell), "{part}");
    }
    let loops = format!("{}ls{}", "for i in a b; do ".repeat(14), "; done".repeat(14));
    assert_eq!(of(&loops), Finding::default());
    let usual =
        "for f in a b; do echo \"$(basename \"${f%.*}\")\" `date` `id` `id` `id` `id` `id`; done";
    assert_eq!(of(usual), Finding::default());
    let json = r#"curl -d '{"a":[{"b":{"c":[1,{"d":2}]}}]}' http://localhost/x"#;
    assert_eq!(of(json), Finding::default());
}

/// Numbers that the parser cannot hold, read without the thread that would catch it.
#[test]
fn huge_numbers_do_not_break_the_parser() {
    let huge = "9".repeat(30);
    for text in [
        "echo 99999999999<x".to_owned(),
        "echo 99999\\\n999999>x".to_owned(),
        format!("cat ~{huge}/x"),
        format!("cat ~+{huge}"),
        format!("cat ~-{huge}"),
        format!("echo {{1..{huge}}}"),
        format!("echo {{1..9..-{huge}}}"),
        format!("echo {{{huge}..1}}"),
        format!("echo ${{x:-~{huge}}}"),
    ] {
        let command = Command::Text { text: &text, shell: Shell::Sh };
        let found = look_into(&command, None, None);
        assert!(found.categories.contains(&Flag::ExecShell), "{text}");
    }
    assert_eq!(of(&format!("echo {huge} 2>/dev/null")), Finding::default());
}

#[test]
fn many_at_once_are_all_looked_into() {
    let readers: Vec<_> = (0..40).map(|_| std::thread::spawn(|| of("rm -rf /srv/x"))).collect();
    for reader in readers {
        assert_eq!(reader.join().unwrap().categories, BTreeSet::from([Flag::ExecDelete]));
    }
}

#[test]
fn input_of_a_shell_is_read() {
    let sh = ["sh".to_owned()];
    let found = classify(&Command::Argv(&sh), None, Some(b"rm -rf /srv/x"));
    assert_eq!(found.categories, BTreeSet::from([Flag::ExecDelete]));
    let found =
        classify(&Command::Argv(&["cat".to_owned(), "shadow".to_owned()]), Some("/etc"), None);
    assert_eq!(found.secret.as_deref(), Some("/etc/shadow"));
}

#[test]
fn windows_texts_are_code() {
    for (text, shell, flag) in [
        ("Restart-Computer -Force", Shell::PowerShell, Flag::ExecPower),
        ("del /q C:\\temp\\*", Shell::Cmd, Flag::ExecDelete),
        ("net user bob secret /add", Shell::Cmd, Flag::ExecUsers),
        ("net stop w32time", Shell::Cmd, Flag::ExecServices),
    ] {
        let found = classify(&Command::Text { text, shell }, None, None);
        assert!(
            found.categories.contains(&flag) && found.categories.contains(&Flag::ExecShell),
            "{text}"
        );
    }
}

/// Secrets of Windows in texts, in the spellings that its shells read as the same.
#[test]
fn windows_texts_name_secrets_in_many_ways() {
    for (text, shell, cwd) in [
        (r"type C:\Windows\System32\config\SAM", Shell::Cmd, None),
        (
            r"copy \\?\GLOBALROOT\Device\HarddiskVolumeShadowCopy1\Windows\System32\config\SAM x",
            Shell::Cmd,
            None,
        ),
        (r"type C:\Win^dows\System32\con^fig\S^AM", Shell::Cmd, None),
        (r#"type C:\"Windows"\System32\config\"SAM""#, Shell::Cmd, None),
        (r"type %SystemRoot%\System32\config\SAM", Shell::Cmd, None),
        (r"type SAM", Shell::Cmd, Some(r"C:\Windows\System32\config")),
        (r"type .\SAM", Shell::Cmd, Some(r"C:/Windows/System32/config/")),
        (r"type ..\config\SAM", Shell::Cmd, None),
        (
            r#"type "C:\Users\b\AppData\Local\Google\Chrome\User Data\Default\Login Data""#,
            Shell::Cmd,
            None,
        ),
        (r"esentutl /y C:\Windows\NTDS\ntds.dit /d x", Shell::Cmd, None),
        (r"robocopy C:\x y /file:C:\Users\b\.ssh\id_rsa", Shell::Cmd, None),
        (r"type<C:\Users\b\.ssh\id_rsa", Shell::Cmd, None),
        (r"reg save HKLM\SAM x", Shell::Cmd, None),
        (r"reg.exe save hklm\sys^tem x", Shell::Cmd, None),
        (r"reg export HKEY_LOCAL_MACHINE\SECURITY x", Shell::Cmd, None),
        (r"Get-ItemProperty HKLM:\SAM\SAM\Domains", Shell::PowerShell, None),
        (r"[IO.File]::ReadAllText('C:\Users\b\.ssh\id_rsa')", Shell::PowerShell, None),
        (
            r"gc $env:APPDATA\Microsoft\Windows\PowerShell\PSReadLine\ConsoleHost_history.txt",
            Shell::PowerShell,
            None,
        ),
        (r"gc C:\Windows\Panther\un`attend.xml", Shell::PowerShell, None),
        (r"gc -Path:C:/Windows/System32/config/SAM", Shell::PowerShell, None),
        (r"gc C:\Windows\System32\config\SAM::$DATA", Shell::PowerShell, None),
    ] {
        let found = classify(&Command::Text { text, shell }, cwd, None);
        assert!(found.secret.is_some(), "{text}");
    }
    let input: &[u8] = br"type C:\Windows\System32\config\SAM";
    for (text, secret) in
        [("cmd", true), ("powershell -Command -", true), ("more > notes.txt", false)]
    {
        let found = classify(&Command::Text { text, shell: Shell::Cmd }, None, Some(input));
        assert_eq!(found.secret.is_some(), secret, "{text}");
    }
    for text in [
        r"dir C:\Windows\System32\config",
        r"type C:\Windows\System32\drivers\etc\hosts",
        r"reg query HKLM\SYSTEM\CurrentControlSet\Services\w32time",
        r"reg query HKLM\SOFTWARE\Microsoft",
        r"del /q C:\temp\*",
        r"sc query state= all",
        r"echo sam & echo security",
        "systeminfo",
    ] {
        let found = classify(&Command::Text { text, shell: Shell::Cmd }, Some(r"C:\app"), None);
        assert_eq!(found.secret, None, "{text}");
    }
}

#[test]
fn lists_for_windows_are_looked_into() {
    let flags = |argv: &[&str]| {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let found = windows_list(&argv, None, None);
        if found.secret.is_some() {
            vec!["SECRET"]
        } else {
            found.categories.iter().map(|f| f.category()).collect()
        }
    };
    for (argv, want) in [
        (&[r"C:\Windows\System32\shutdown.exe", "/r"][..], vec!["EXEC_POWER"]),
        (&["format.com", "D:"], vec!["EXEC_DISKS"]),
        (&["net", "stop", "w32time"], vec!["EXEC_SERVICES"]),
        (&["cmd.exe", "/c", "ver"], vec!["EXEC_SHELL"]),
        (&[r"C:\app\do.bat", "x"], vec!["EXEC_SHELL"]),
        (&["hostname"], vec![]),
        (&["robocopy", r"C:\Windows\NTDS", "x", "ntds.dit"], vec!["SECRET"]),
        (&["reg", "save", r"HKLM\SAM", "x"], vec!["SECRET"]),
        (&["esentutl.exe", "/y", r"\\.\C:\Windows\System32\config\SAM"], vec!["SECRET"]),
    ] {
        assert_eq!(flags(argv), want, "{argv:?}");
    }
}

/// Rows of a table: what is wanted, and the text, in which `␤` is the end of a line.
fn rows(table: &str) -> impl Iterator<Item = (&str, String)> {
    table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(|row| {
        let (want, text) = row.split_once('\t').unwrap();
        (want, text.replace('␤', "\n"))
    })
}

fn told(found: &Finding) -> String {
    if found.secret.is_some() {
        return "SECRET".to_owned();
    }
    if found.categories.is_empty() {
        return "-".to_owned();
    }
    found.categories.iter().map(|f| f.category()).collect::<Vec<_>>().join(",")
}

#[test]
fn what_administrators_write() {
    let table = include_str!("../../tests/data/commands.tsv");
    assert!(rows(table).count() >= 500);
    let wrong: Vec<String> = rows(table)
        .map(|(want, text)| (want, told(&of(&text)), text))
        .filter(|(want, got, _)| got != want)
        .map(|(want, got, text)| format!("{text}: {got}, not {want}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_disguised() {
    let table = include_str!("../../tests/data/commands-disguised.tsv");
    assert!(rows(table).count() > 600);
    let found = |want: &str, got: &str| match want {
        "-" | "SECRET" => got == want,
        want => got.split(',').any(|flag| flag == want || flag == "EXEC_SHELL"),
    };
    let wrong: Vec<String> = rows(table)
        .map(|(want, text)| (want, told(&of(&text)), text))
        .filter(|(want, got, _)| !found(want, got))
        .map(|(want, got, text)| format!("{text}: {got}, not {want}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_wrapper_hides_what_it_wraps() {
    let inner = [
        ("reboot", Flag::ExecPower),
        ("rm -rf /srv/x", Flag::ExecDelete),
        ("mkfs.ext4 /dev/sdb", Flag::ExecDisks),
    ];
    let wrappers = [
        "sudo @",
        "env A=1 @",
        "nohup @ &",
        "timeout 5 @",
        "xargs @",
        "sh -c '@'",
        "(@)",
        "{ @; }",
        "true && @",
        "$(@)",
        "echo `@`",
        "x=$(@)",
        "if true; then @; fi",
        "cat x | @",
        "busybox @",
        "nice -n 5 @",
    ];
    for (text, flag) in inner {
        for outer in wrappers {
            for middle in wrappers {
                // One kind of quote does not stand inside itself.
                if outer.contains('\'') && middle.contains('\'')
                    || outer.contains('`') && middle.contains('`')
                {
                    continue;
                }
                let whole = outer.replace('@', &middle.replace('@', text));
                // That is arithmetic in every shell.
                if whole.contains("$((") {
                    continue;
                }
                let found = of(&whole).categories;
                assert!(
                    found.contains(&flag) || found.contains(&Flag::ExecShell),
                    "{whole}: {found:?}"
                );
            }
        }
    }
}
