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
