//! What is masked and what is not.

use serde_json::json;

use super::*;

fn redactor() -> Redactor {
    Redactor::of(vec!["0b1c2d3e-aaaa-4bbb-8ccc-123456789abc".to_owned().into()])
}

#[test]
fn secrets_inside_text() {
    for (text, want) in [
        ("nothing here: all is well", "nothing here: all is well"),
        ("got 0b1c2d3e-aaaa-4bbb-8ccc-123456789abc!", "got ***!"),
        ("got 0B1C2D3E-AAAA-4BBB-8CCC-123456789ABC", "got ***"),
        (
            "PVEAPIToken=a@pve!x=11111111-2222-4333-8444-555555555555 ok",
            "PVEAPIToken=a@pve!x=*** ok",
        ),
        ("a@pve!x=11111111-2222-4333-8444-555555555555", "a@pve!x=***"),
        ("dir,password=hunter2,x=1", "dir,password=***,x=1"),
        ("Password: hunter2\nnext", "Password: ***\nnext"),
        ("cookie PVEAuthCookie=PVE%3Aroot; x", "cookie PVEAuthCookie=***; x"),
        ("plugin PVE::Auth::PVE", "plugin PVE::Auth::PVE"),
        ("ticket PVE:root@pam:6B0C::c2lnbmF0dXJl end", "ticket PVE:*** end"),
        (
            "k -----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY----- z",
            "k *** z",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc", "***"),
        ("abc=\n-----END RSA PRIVATE KEY-----\nrest", "***\nrest"),
        ("abc=\n-----END CERTIFICATE-----\nrest", "abc=\n-----END CERTIFICATE-----\nrest"),
        ("ö password=ä,ü", "ö password=***,ü"),
        (r#"{"password":"hunter2","x":1}"#, r#"{"password":"***","x":1}"#),
        (r#"{\"cipassword\": \"hunter2\"}"#, r#"{\"cipassword\": \"***\"}"#),
        (
            "curl -H 'Authorization: Bearer abc.def' https://x",
            "curl -H 'Authorization: ***' https://x",
        ),
        ("authorization: enabled", "authorization: enabled"),
        ("Cookie: a=b; c=d\nnext", "Cookie: ***\nnext"),
        ("get https://user:pw@host/x?y=z ok", "get https://user:***@host/x?y=z ok"),
        ("http://u:p@a/ and http://b/ c@d", "http://u:***@a/ and http://b/ c@d"),
        ("root:$6$saltsalt$abcdefghijklmnop:19000:0", "root:***:19000:0"),
        ("$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/ x", "*** x"),
        ("costs $6$ or so", "costs $6$ or so"),
        (
            "chpasswd:\n  list: |\n    root:hunter2\n  expire: False",
            "chpasswd:\n  list: |\n    root:***\n  expire: False",
        ),
        (
            "-object secret,id=s0,data=hunter2,format=raw -name x",
            "-object secret,id=s0,data=***,format=raw -name x",
        ),
    ] {
        let got = redactor().text(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(got, want, "{text}");
    }
}

/// The short way may say that a text needs a look when it needs none, never the other way.
#[test]
fn what_holds_a_secret_is_never_passed_by_the_short_way() {
    let redactor = redactor();
    let mut hits = 0;
    for secret in [
        "0b1c2d3e-aaaa-4bbb-8ccc-123456789abc",
        "PVEAPIToken=a@pve!x=11111111-2222-4333-8444-555555555555",
        "a@pve!x=11111111-2222-4333-8444-555555555555",
        "a!b@pve!x:11111111-2222-4333-8444-555555555555",
        "password=p",
        "ENCRYPTION_KEY: k",
        "Token-Secret:k",
        "csrfpreventiontoken=k",
        "PVEVNC:root@pam:6B0C::c2ln",
        "PBS:a::b",
        "-----BEGIN PRIVATE KEY-----",
        "ftp://user:pw@host/x",
        "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
        "{\"api_key\":\"k\"}",
    ] {
        for around in ["", " ", "\n", "!", "\u{2003}", "\"", "ö", "\0", "x y", "=", ":", "@", "-"]
        {
            for text in [format!("{around}{secret}"), format!("{secret}{around}")] {
                let seen = redactor.look(&text);
                hits += usize::from(seen.is_some());
                assert_eq!(redactor.text(&text), seen, "{text:?}");
                let mut bytes = b"\xff\xfe".to_vec();
                bytes.extend_from_slice(text.as_bytes());
                assert_eq!(
                    redactor.bytes(&bytes).is_some(),
                    redactor.look(&String::from_utf8_lossy(&bytes)).is_some(),
                    "{text:?}"
                );
            }
        }
    }
    assert!(hits > 200, "{hits}");
    for text in ["", "plain", "a=b: c!", "a@b!c", "pass word=x", "2026-11-30T11:00:00!a-b"] {
        assert!(!redactor.suspects(text.as_bytes()), "{text}");
    }
}

#[test]
fn secrets_by_the_name_of_their_member() {
    let path = |p: &str| ApiPath::parse(p).unwrap();
    for (at, mut given, want) in [
        (
            "/storage/x",
            json!({"password": "p", "encryption-key": "k", "path": "/x"}),
            json!({"password": "***", "encryption-key": "***", "path": "/x"}),
        ),
        (
            "/nodes/a/qemu/100/pending",
            json!([{"key": "cores", "value": 2}]),
            json!([{"key": "cores", "value": 2}]),
        ),
        (
            "/nodes/a/qemu/100/pending",
            json!([{"key": "cipassword", "value": "x", "pending": "y"}]),
            json!([{"key": "cipassword", "value": "***", "pending": "***"}]),
        ),
        ("/cluster/sdn/dns/d", json!({"key": "abc"}), json!({"key": "***"})),
        (
            "/nodes/a/subscription",
            json!({"key": "pve4p-1", "status": "active"}),
            json!({"key": "***", "status": "active"}),
        ),
        (
            "/nodes/a/lxc/200/config",
            json!({"env": "A=1", "hostname": "x"}),
            json!({"env": "***", "hostname": "x"}),
        ),
        (
            "/access/users/a@pve/token/t",
            json!({"value": "s", "full-tokenid": "a@pve!t"}),
            json!({"value": "***", "full-tokenid": "a@pve!t"}),
        ),
        (
            "/cluster/acme/plugins/p",
            json!({"data": "X=1", "api": "cf"}),
            json!({"data": "***", "api": "cf"}),
        ),
        (
            "/cluster/metrics/server/m",
            json!({"token": "t", "server": "s"}),
            json!({"token": "***", "server": "s"}),
        ),
        (
            "/version",
            json!({"token": null, "password": "", "secret": true}),
            json!({"token": null, "password": "", "secret": true}),
        ),
    ] {
        redactor().value(Some(&path(at)), &mut given);
        assert_eq!(given, want, "{at}");
    }
}
