//! Secrets are masked at one place on the way out: by the name of the member
//! that holds them, by their form inside text, and this server's own wherever
//! they occur.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::{Error, config::Config, pve::ApiPath};

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Members that hold secrets wherever they occur (letters and digits only, lower case).
const SECRET_MEMBERS: &[&str] = &[
    "password",
    "passwd",
    "newpassword",
    "confirmationpassword",
    "cipassword",
    "bindpassword",
    "secret",
    "clientkey",
    "clientsecret",
    "privatekey",
    "encryptionkey",
    "ticket",
    "vncticket",
    "csrfpreventiontoken",
    "otp",
    "totp",
    "recovery",
    "challenge",
    "token",
    "apitoken",
    "authkey",
    "keyring",
    "header",
    "headers",
    "env",
    "authorization",
    "cookie",
    "setcookie",
    "eabhmackey",
    "eabkid",
    "pveauthcookie",
    "secretkey",
    "accesskey",
    "passphrase",
    "sharedsecret",
];

/// Members that hold secrets below certain paths only: elsewhere the same name
/// is harmless (`key` names an option in pending changes).
const SECRET_BELOW: &[(&str, &[&str])] = &[
    ("/cluster/sdn", &["key", "token"]),
    ("/cluster/acme", &["data", "key"]),
    ("/cluster/notifications", &["secret", "header", "token", "password"]),
    ("/cluster/metrics", &["token", "header"]),
    ("/cluster/config/join", &["nodelist", "totem", "fingerprint", "pvefp"]),
    ("/access/tfa", &["value", "secret", "keys", "url", "id"]),
    ("/access/users", &["keys", "value"]),
    ("/access/ticket", &["ticket"]),
    ("/access/domains", &["password", "clientkey", "certkey"]),
    ("/storage", &["keyring", "password", "encryptionkey"]),
];

/// Masks secrets of one form inside a text; `None` where there was none.
type Form = fn(&str) -> Option<String>;

/// Masks secrets in answers, errors, logs and records.
#[derive(Debug, Default)]
pub struct Redactor {
    own: Vec<SecretString>,
}

impl Redactor {
    /// One that knows this server's own secrets.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let own = config.token.iter().map(|t| t.secret.clone()).chain(config.http.token.clone());
        // What is too short to be told from ordinary text is not searched for.
        Self { own: own.filter(|s| s.expose_secret().len() >= 8).collect() }
    }

    /// Masks an answer or parameters; `path` is where they come from or go to.
    pub fn value(&self, path: Option<&ApiPath>, value: &mut Value) {
        let path = path.map_or("", ApiPath::as_str);
        self.walk(path, value);
    }

    fn walk(&self, path: &str, value: &mut Value) {
        match value {
            Value::String(s) => {
                if let Some(masked) = self.text(s) {
                    *s = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|v| self.walk(path, v)),
            Value::Object(map) => self.members(path, map),
            _ => {}
        }
    }

    fn members(&self, path: &str, map: &mut Map<String, Value>) {
        for (name, value) in map.iter_mut() {
            if is_secret(path, name) && holds_something(value) {
                *value = MASK.into();
            } else {
                self.walk(path, value);
            }
        }
        // Rows of pending changes name the option beside its value.
        let named = map.get("key").and_then(Value::as_str).is_some_and(|k| is_secret(path, k));
        if named {
            for name in ["value", "pending", "now", "after_restart"] {
                if let Some(value) = map.get_mut(name)
                    && holds_something(value)
                {
                    *value = MASK.into();
                }
            }
        }
    }

    /// Masks inside a text; `None` where nothing was found.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let mut found: Option<String> = None;
        for secret in &self.own {
            let current = found.as_deref().unwrap_or(text);
            if let Some(masked) = replace(current, secret.expose_secret()) {
                found = Some(masked);
            }
        }
        // Nearly every text of a list is a name or a word that no form could match: it is
        // looked at once and not copied.
        let forms: &[Form] = match text.bytes().any(|b| b == b'=' || b == b':') {
            true => &[private_keys, tickets, api_tokens, assignments],
            false => &[private_keys],
        };
        for form in forms {
            let current = found.as_deref().unwrap_or(text);
            if let Some(masked) = form(current) {
                found = Some(masked);
            }
        }
        found
    }

    /// Masks inside an error, in place.
    pub fn error(&self, error: &mut Error) {
        for text in [&mut error.message, &mut error.hint] {
            if let Some(masked) = self.text(text) {
                *text = masked;
            }
        }
        for (name, value) in error.details.iter_mut() {
            if is_secret("", name) && holds_something(value) {
                *value = MASK.into();
            } else {
                self.walk("", value);
            }
        }
    }
}

/// Whether a member holds something that could be a secret: a switch and an
/// absent value are none.
fn holds_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(s) => !s.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Number(_) => true,
    }
}

/// Whether a member of this name holds a secret in answers of this path.
#[must_use]
pub fn is_secret(path: &str, name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    if SECRET_MEMBERS.contains(&plain.as_str()) {
        return true;
    }
    let below = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let node = path.split('/').nth(1) == Some("nodes");
    let kind = path.split('/').nth(3).unwrap_or_default();
    if node && plain == "key" && matches!(kind, "certificates" | "subscription") {
        return true;
    }
    SECRET_BELOW.iter().any(|(root, names)| below(root) && names.contains(&plain.as_str()))
}

/// Every occurrence of a secret, in any case.
fn replace(text: &str, secret: &str) -> Option<String> {
    if text.len() < secret.len() {
        return None;
    }
    let (lower, wanted) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let mut out = String::new();
    let mut from = 0;
    while let Some(at) = lower.get(from..).and_then(|rest| rest.find(&wanted)) {
        out.push_str(text.get(from..from + at)?);
        out.push_str(MASK);
        from += at + wanted.len();
    }
    if from == 0 {
        return None;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// PEM private keys, to their end or the end of the text.
fn private_keys(text: &str) -> Option<String> {
    if !text.contains("-----BEGIN ") {
        return None;
    }
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find("-----BEGIN ") {
        let head = rest.get(start..)?;
        let title = head.lines().next().unwrap_or_default();
        if !title.contains("PRIVATE KEY") {
            let end = start + "-----BEGIN ".len();
            out.push_str(rest.get(..end)?);
            rest = rest.get(end..)?;
            continue;
        }
        found = true;
        out.push_str(rest.get(..start)?);
        out.push_str(MASK);
        let end = head.find("-----END ").map_or(head.len(), |at| {
            let tail = head.get(at + 9..).unwrap_or_default();
            at + 9 + tail.find("-----").map_or(tail.len(), |n| n + 5)
        });
        rest = head.get(end..)?;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// Tickets of Proxmox: `PVE:user@realm:HEX::base64`, `PVEVNC:…` and others.
fn tickets(text: &str) -> Option<String> {
    mask_words(text, |word| {
        let head = word.split(':').next()?;
        let known = ["PVE", "PVEVNC", "PVEADM", "PMG", "PBS"].contains(&head);
        (known && word.contains("::")).then(|| format!("{head}:{MASK}"))
    })
}

/// `user@realm!name=SECRET` and `PVEAPIToken=…`.
fn api_tokens(text: &str) -> Option<String> {
    mask_words(text, |word| {
        if let Some(rest) = word.strip_prefix("PVEAPIToken=")
            && let Some((id, _)) = rest.split_once('=')
        {
            return Some(format!("PVEAPIToken={id}={MASK}"));
        }
        let (id, secret) = word.rsplit_once(['=', ':'])?;
        let is_id = id.contains('@') && id.contains('!');
        let uuid = secret.len() == 36 && secret.bytes().filter(|b| *b == b'-').count() == 4;
        (is_id && uuid).then(|| format!("{id}={MASK}"))
    })
}

/// `password=…` and its like inside property strings, command lines and URLs.
fn assignments(text: &str) -> Option<String> {
    const NAMES: &[&str] = &[
        "password",
        "passwd",
        "secret",
        "pveauthcookie",
        "csrfpreventiontoken",
        "encryption-key",
        "client-key",
        "api-token",
        "token-secret",
    ];
    let lower = text.to_ascii_lowercase();
    let mut out = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(at) = lower.get(from..).and_then(|r| r.find(['=', ':'])).map(|n| n + from) {
        from = at + 1;
        let name_start = lower
            .get(..at)?
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
            .map_or(0, |n| {
                n + lower.get(n..).and_then(|r| r.chars().next()).map_or(1, char::len_utf8)
            });
        let name = lower.get(name_start..at)?.replace('_', "-");
        if !NAMES.contains(&name.as_str()) {
            continue;
        }
        // After a colon only what follows at once or after one blank is a value.
        let mut start = at + 1;
        if lower.get(start..).is_some_and(|r| r.starts_with(' '))
            && lower.as_bytes().get(at) == Some(&b':')
        {
            start += 1;
        }
        let tail = lower.get(start..)?;
        let end =
            start + tail.find([',', ';', ' ', '&', '"', '\'', '\n', '\t']).unwrap_or(tail.len());
        if end > start && start >= done {
            out.push_str(text.get(done..start)?);
            out.push_str(MASK);
            done = end;
            from = end;
        }
    }
    if done == 0 {
        return None;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Applies a rule to each word; `None` where it held for none.
fn mask_words(text: &str, rule: impl Fn(&str) -> Option<String>) -> Option<String> {
    let ends =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '<' | '>' | '(' | ')');
    let mut out = String::new();
    let mut found = false;
    for piece in text.split_inclusive(ends) {
        let word = piece.trim_end_matches(ends);
        match rule(word) {
            Some(masked) => {
                found = true;
                out.push_str(&masked);
                out.push_str(piece.get(word.len()..)?);
            }
            None => out.push_str(piece),
        }
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor() -> Redactor {
        Redactor { own: vec!["0b1c2d3e-aaaa-4bbb-8ccc-123456789abc".to_owned().into()] }
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
            ("ö password=ä,ü", "ö password=***,ü"),
        ] {
            let got = redactor().text(text).unwrap_or_else(|| text.to_owned());
            assert_eq!(got, want, "{text}");
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
}
