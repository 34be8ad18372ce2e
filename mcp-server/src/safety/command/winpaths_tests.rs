use super::*;
use crate::safety::command::secret_path;

/// Files with secrets, in each spelling by which somebody could come around a rule.
#[test]
fn secrets_are_found_in_every_spelling() {
    let plain = [
        r"C:\Windows\System32\config\SAM",
        r"C:\Windows\System32\config\SECURITY",
        r"C:\Windows\System32\config\SYSTEM",
        r"C:\Windows\System32\config\SAM.LOG1",
        r"C:\Windows\System32\config\RegBack\SYSTEM",
        r"C:\Windows\repair\sam",
        r"D:\Windows\NTDS\ntds.dit",
        r"E:\ntds.dit",
        r"C:\Windows\Panther\unattend.xml",
        r"C:\Windows\Panther\Unattend\unattend.xml",
        r"C:\autounattend.xml",
        r"C:\Windows\System32\Sysprep\sysprep.xml",
        r"C:\ProgramData\ssh\ssh_host_rsa_key",
        r"C:\ProgramData\ssh\ssh_host_ed25519_key",
        r"C:\Users\bob\.ssh\id_rsa",
        r"C:\Users\bob\.ssh\id_ed25519",
        r"C:\Users\bob\.ssh",
        r"C:\Users\bob\AppData\Roaming\Microsoft\Windows\PowerShell\PSReadLine\ConsoleHost_history.txt",
        r"C:\Users\bob\AppData\Roaming\Microsoft\Protect\S-1-5-21-1\00000000-0000",
        r"C:\Windows\System32\Microsoft\Protect\S-1-5-18\User\x",
        r"C:\Users\bob\AppData\Local\Microsoft\Credentials\DFBE70A7",
        r"C:\Users\bob\AppData\Local\Microsoft\Vault\x\Policy.vpol",
        r"C:\ProgramData\Microsoft\Crypto\RSA\MachineKeys\x",
        r"C:\Users\bob\AppData\Local\Google\Chrome\User Data\Default\Login Data",
        r"C:\Users\bob\.aws\credentials",
        r"C:\srv\site.pfx",
        r"C:\srv\site.key",
        r"C:\Users\bob\server.ppk",
        r"C:\hiberfil.sys",
    ];
    for path in plain {
        let below = path.get(3..).unwrap();
        let name = path.rsplit('\\').next().unwrap();
        let spellings = [
            path.to_owned(),
            path.replace('\\', "/"),
            path.replace('\\', "\\\\"),
            path.to_ascii_uppercase(),
            path.to_ascii_lowercase(),
            format!(r"\\?\{path}"),
            format!(r"\\.\{path}"),
            format!(r"\??\{path}"),
            format!("//?/{}", path.replace('\\', "/")),
            format!("//./{}", path.replace('\\', "/")),
            format!(r"\\localhost\C$\{below}"),
            format!(r"\\127.0.0.1\c$\{below}"),
            format!(r"\\?\UNC\localhost\C$\{below}"),
            format!(r"\\?\GLOBALROOT\Device\HarddiskVolumeShadowCopy1\{below}"),
            format!(r"\\?\Volume{{0b8f1d7e-0000-0000-0000-100000000000}}\{below}"),
            format!(r"\\.\HarddiskVolume3\{below}"),
            format!("{path}."),
            format!("{path}..."),
            format!("{path} "),
            format!("{path}. ."),
            format!("{path}::$DATA"),
            format!("{path}::$data"),
            format!("{path}:stream"),
            format!("{path}:stream:$DATA"),
            format!(r"C:\x\..\{below}"),
            format!(r"C:\x\.\..\{below}"),
            format!(r"C:\x\y\..\..\{below}"),
            path.replacen('\\', r"\\.\\", 1),
            format!(r"C:{below}"),
            format!(r"c:/{}", below.replace('\\', "/./")),
            path.replace(name, &format!("{name}\\x\\..")),
            format!(r"\{below}"),
        ];
        for spelling in spellings {
            assert!(secret_path(&spelling, None).is_some(), "{spelling}");
        }
    }
}

/// Names as DOS would have them, and patterns of a shell.
#[test]
fn secrets_are_found_by_short_names_and_patterns() {
    for path in [
        r"C:\PROGRA~3\ssh\SSH_HO~1",
        r"C:\ProgramData\ssh\SSH_HO~4",
        r"C:\Users\ADMINI~1\SSH~1\ID_ED2~1",
        r"C:\Users\bob\.ssh\ID_ED2~1",
        r"C:\Users\bob\SSH~1\id_rsa",
        r"C:\Users\bob\AppData\Roaming\MICROS~1\Windows\POWERS~1\PSREAD~1\CONSOL~1.TXT",
        r"C:\Users\bob\AppData\Roaming\MICROS~1\Protect\x",
        r"C:\Users\bob\AppData\Local\Microsoft\CREDEN~1\x",
        r"C:\AUTOUN~1.XML",
        r"C:\Users\bob\AppData\Local\Microsoft\CR3F2A~1\x",
        r"C:\Windows\System32\config\S*M",
        r"C:\Windows\System32\config\SA?",
        r"C:\Windows\System32\config\[s]am",
        r"C:\Windows\System32\conf*\sam",
        r"C:\Users\*\.ssh\*",
        r"C:\ProgramData\ssh\ssh_host_*",
        r"C:\ProgramData\ssh\*_key",
    ] {
        assert!(secret_path(path, None).is_some(), "{path}");
    }
}

/// No pattern takes longer than others: it would hold the gate up.
#[test]
fn patterns_that_would_take_for_ever_are_secrets() {
    let stars = "*".repeat(1000);
    for path in [
        format!(r"C:\x\{stars}zz"),
        format!(r"C:\Users\bob\.ssh\{}zz", "*e".repeat(400)),
        format!("/etc/ssh/{}zz", "*s".repeat(400)),
        format!("/etc/{}", "{,}".repeat(400)),
        format!("/root/.ssh/{stars}zz"),
    ] {
        let _ = secret_path(&path, None);
    }
    assert!(secret_path(&format!("/root/.ssh/{}", "*d".repeat(40)), None).is_some());
    assert_eq!(secret_path(&format!(r"C:\x\{stars}.log"), None), None);
}

#[test]
fn what_is_no_secret_is_none() {
    for path in [
        r"C:\Windows\System32\drivers\etc\hosts",
        r"C:\Windows\System32\config",
        r"C:\Windows\System32\config\SOFTWARE",
        r"C:\app\config\sample.ini",
        r"C:\app\system",
        r"C:\Users\bob\.ssh\id_rsa.pub",
        r"C:\Users\bob\.ssh\known_hosts",
        r"C:\ProgramData\ssh\sshd_config",
        r"C:\ProgramData\ssh\ssh_host_rsa_key.pub",
        r"C:\certs\fullchain.pem",
        r"C:\temp\*",
        r"C:\*\*",
        r"C:\temp\*.txt",
        r"C:\temp\*.log",
        r"C:\Users\bob\Documents\history.txt",
        r"C:\PROGRA~1\app\a.ini",
        r"\\server\share\readme.txt",
        r"C:\",
        "C:",
        "//srv/config",
    ] {
        assert_eq!(secret_path(path, None), None, "{path}");
    }
    // Paths of Linux are read as such.
    assert!(secret_path("//etc/shadow", None).is_some());
    assert!(secret_path("/??/../etc/shadow", None).is_some());
}

#[test]
fn a_path_has_one_spelling() {
    for (path, want) in [
        (r"C:\a\b", r"C:\a\b"),
        ("c:/a/b", r"C:\a\b"),
        (r"C:\\a\\\b\", r"C:\a\b"),
        (r"\\?\C:\a\b", r"C:\a\b"),
        (r"\\.\c:\a", r"C:\a"),
        (r"\??\c:\a", r"C:\a"),
        ("//?/c:/a", r"C:\a"),
        (r"C:\a\..\b\.\c", r"C:\b\c"),
        (r"C:\..\..\b", r"C:\b"),
        (r"C:\", r"C:\"),
        ("C:/", r"C:\"),
        (r"C:\Größe\日 本 (x86)\a&b'c.txt", r"C:\Größe\日 本 (x86)\a&b'c.txt"),
        (r"C:\.ssh\..x\a..b", r"C:\.ssh\..x\a..b"),
        (r"C:\community\com10\console.txt\null", r"C:\community\com10\console.txt\null"),
    ] {
        assert_eq!(canonical(path).as_deref(), Ok(want), "{path}");
    }
}

#[test]
fn what_is_no_path_of_a_drive_is_refused() {
    for (path, why) in [
        (r"C:foo", "relative"),
        ("C:", "relative"),
        (r"\\?\C:foo", "relative"),
        (r"\Windows\x", "no drive"),
        ("/etc/hosts", "no drive"),
        ("a", "no drive"),
        ("", "no drive"),
        (r"..\x", "no drive"),
        (r"%TEMP%\x", "no drive"),
        (r"\\server\share\x", "network"),
        (r"//server/share/x", "network"),
        (r"\\?\UNC\server\share\x", "network"),
        (r"\\localhost\c$\x", "network"),
        (r"\\.\PhysicalDrive0", "device"),
        (r"\\.\pipe\x", "device"),
        (r"\\?\GLOBALROOT\Device\HarddiskVolume1\x", "device"),
        (r"\\?\Volume{0b8f1d7e-0000-0000-0000-100000000000}\x", "device"),
        (r"C:\a::$DATA", "stream"),
        (r"C:\a:b", "stream"),
        (r"C:\a:b:$DATA\c", "stream"),
        (r"C:\D:\x", "stream"),
        (r"C:\a.", "dot"),
        (r"C:\a \b", "blank"),
        (r"C:\a...\b", "dot"),
        (r"C:\...", "dot"),
        (r"\\?\C:\a\..\b", "behind a prefix"),
        (r"\\?\C:\.\b", "behind a prefix"),
        (r"C:\a*", "no name"),
        (r"C:\a?", "no name"),
        ("C:\\a\"b", "no name"),
        (r"C:\a|b", "no name"),
        ("C:\\a\0b", "control"),
        ("C:\\a\nb", "control"),
        (r"C:\CON", "device"),
        (r"C:\nul.txt", "device"),
        (r"C:\x\com1", "device"),
        (r"C:\x\COM¹.log", "device"),
        (r"C:\x\lpt9.a.b", "device"),
        (r"C:\aux\x", "device"),
        (r"C:\CONIN$", "device"),
    ] {
        let error = canonical(path).unwrap_err();
        assert!(error.contains(why), "{path}: {error}");
    }
    assert!(canonical(&format!(r"C:\{}", "x".repeat(1100))).is_err());
}

#[test]
fn what_is_written_to_the_system_needs_its_flag() {
    let system = vec![Flag::ExecSystemFiles];
    for (path, want) in [
        (r"C:\Windows\System32\drivers\etc\hosts", system.clone()),
        ("c:/windows/x", system.clone()),
        (r"\\?\C:\WINDOWS\x", system.clone()),
        (r"C:\x\..\Windows\x", system.clone()),
        (r"C:\PROGRA~1\x", system.clone()),
        (r"C:\PROGRA~2\x", system.clone()),
        (r"C:\Program Files (x86)\x", system.clone()),
        (r"C:\ProgramData\x", system.clone()),
        (r"C:\bootmgr", system.clone()),
        (r"C:\Windows.\x", system.clone()),
        (r"\\localhost\c$\Windows\x", system.clone()),
        (
            r"C:\Users\bob\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\Startup\a.bat",
            system.clone(),
        ),
        (r"C:\Users\bob\Documents\WindowsPowerShell\profile.ps1", system),
        (r"C:\Users\bob\.ssh\authorized_keys", vec![Flag::ExecUsers]),
        (r"C:\ProgramData\ssh\administrators_authorized_keys", vec![Flag::ExecUsers]),
        (r"C:\windows-logs\x", vec![]),
        (r"C:\srv\Windows\x", vec![]),
        (r"C:\Users\bob\a.txt", vec![]),
    ] {
        assert_eq!(written(path), want, "{path}");
    }
}
