//! Secrets are masked at one place on the way out: by the name of the member
//! that holds them, by their form inside text, and this server's own wherever
//! they occur.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
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
    "otelheaders",
    "lxcenvironment",
    "lxcenvironmentruntime",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "hashedpasswd",
    "plaintextpasswd",
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

/// Names before `=` or `:` in a text whose value is a secret; `_` counts as `-`.
const ASSIGNED: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "pveauthcookie",
    "csrfpreventiontoken",
    "encryption-key",
    "client-key",
    "api-token",
    "token-secret",
    "cipassword",
    "hashed-passwd",
    "plain-text-passwd",
    "api-key",
    "apikey",
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
];

/// What a ticket of Proxmox begins with, before its colon.
const TICKETS: &[&str] = &["PVE", "PVEVNC", "PVEADM", "PMG", "PBS"];

const PEM: &str = "-----BEGIN ";
const PEM_END: &str = "-----END ";
const TOKEN_HEADER: &str = "PVEAPIToken=";

/// Masks secrets in answers, errors, logs and records.
#[derive(Debug)]
pub struct Redactor {
    own: Vec<SecretString>,
    /// Finds what must stand in a text for one of its forms to match, in one pass: nearly every
    /// text holds none of it, and files of guests can be large.
    marks: Option<AhoCorasick>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Redactor {
    /// One that knows this server's own secrets.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let own = config.token.iter().map(|t| t.secret.clone()).chain(config.http.token.clone());
        // What is too short to be told from ordinary text is not searched for.
        Self::of(own.filter(|s| s.expose_secret().len() >= 8).collect())
    }

    fn of(own: Vec<SecretString>) -> Self {
        let mut marks: Vec<String> = own.iter().map(|s| s.expose_secret().to_owned()).collect();
        marks
            .extend([PEM, PEM_END, TOKEN_HEADER, "-object secret", "chpasswd:"].map(str::to_owned));
        marks.extend(TICKETS.iter().map(|head| format!("{head}:")));
        for name in ASSIGNED {
            // What stands between the name and its sign can be a quote.
            marks.extend([(*name).to_owned(), name.replace('-', "_")]);
        }
        let built = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&marks);
        // Without it every text is looked at with all care.
        Self { own, marks: built.ok() }
    }

    /// Whether there may be a secret in a text: never no where [`Self::text`] finds one.
    fn suspects(&self, text: &[u8]) -> bool {
        self.marks.as_ref().is_none_or(|marks| marks.is_match(text))
            || has_token_id(text)
            || has_user_information(text)
            || hash_at(text, 0).is_some()
    }

    /// The text of bytes that hold secrets, with those masked; `None` where nothing was found.
    #[must_use]
    pub fn bytes(&self, bytes: &[u8]) -> Option<String> {
        self.suspects(bytes).then(|| self.look(&String::from_utf8_lossy(bytes))).flatten()
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
        self.suspects(text.as_bytes()).then(|| self.look(text)).flatten()
    }

    /// [`Self::text`] without the short way.
    fn look(&self, text: &str) -> Option<String> {
        let mut found: Option<String> = None;
        for secret in &self.own {
            let current = found.as_deref().unwrap_or(text);
            if let Some(masked) = replace(current, secret.expose_secret()) {
                found = Some(masked);
            }
        }
        let forms: [Form; 7] = [
            private_keys,
            tickets,
            api_tokens,
            assignments,
            user_information,
            hashes,
            qemu_secrets,
        ];
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

/// Takes one secret out of all texts of an error.
pub fn mask_in_error(error: &mut Error, secret: &str) {
    fn walk(value: &mut Value, secret: &str) {
        match value {
            Value::String(text) => {
                if let Some(masked) = replace(text, secret) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|v| walk(v, secret)),
            Value::Object(map) => map.values_mut().for_each(|v| walk(v, secret)),
            _ => {}
        }
    }
    for text in [&mut error.message, &mut error.hint] {
        if let Some(masked) = replace(text, secret) {
            *text = masked;
        }
    }
    error.details.values_mut().for_each(|value| walk(value, secret));
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
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    // The end of a key whose beginning is not in this piece.
    let end = text.find(PEM_END);
    if let Some(at) = end.filter(|at| text.find(PEM).is_none_or(|begin| begin > *at))
        && let Some(title) = text.get(at..).and_then(|t| t.lines().next())
        && title.contains("PRIVATE KEY")
    {
        found = true;
        out.push_str(MASK);
        rest = text.get(at + title.len()..)?;
    } else if !text.contains(PEM) {
        return None;
    }
    while let Some(start) = rest.find(PEM) {
        let head = rest.get(start..)?;
        let title = head.lines().next().unwrap_or_default();
        if !title.contains("PRIVATE KEY") {
            let end = start + PEM.len();
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

/// What the password of an account begins with when it is hashed.
const HASHES: [&[u8]; 9] =
    [b"$1$", b"$2a$", b"$2b$", b"$2y$", b"$5$", b"$6$", b"$7$", b"$y$", b"$argon2"];
/// Least length of a hash with its head, in bytes; the shortest is that of MD5.
const HASH_LENGTH: usize = 26;

/// The first hash of a password from a place on: where it begins and ends.
fn hash_at(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|b| *b == b'$')?;
        let rest = text.get(at..)?;
        if HASHES.iter().any(|head| rest.starts_with(head)) {
            let part = |b: &u8| b.is_ascii_alphanumeric() || b"$./=,+-".contains(b);
            let length = rest.iter().take_while(|b| part(b)).count();
            if length >= HASH_LENGTH {
                return Some((at, at + length));
            }
        }
        at += 1;
    }
}

/// Hashed passwords, and those that cloud-init is given as `user:password` below `chpasswd`.
fn hashes(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    while let Some((from, to)) = hash_at(text.as_bytes(), done) {
        out.push_str(text.get(done..from)?);
        out.push_str(MASK);
        done = to;
    }
    out.push_str(text.get(done..)?);
    let hashed = (done > 0).then_some(out);
    let current = hashed.as_deref().unwrap_or(text);
    let Some(from) = current.find("chpasswd:") else { return hashed };
    let (head, list) = current.split_at_checked(from)?;
    let mut found = false;
    let lines: Vec<String> = list
        .split('\n')
        .map(|line| {
            let entry = line.trim_start().trim_start_matches("- ");
            match entry.split_once(':') {
                Some((user, password))
                    if !password.is_empty()
                        && !password.starts_with(' ')
                        && password != MASK
                        && !user.contains(' ') =>
                {
                    found = true;
                    let indent = line.len() - entry.len();
                    format!("{}{user}:{MASK}", line.get(..indent).unwrap_or_default())
                }
                _ => line.to_owned(),
            }
        })
        .collect();
    if found { Some(format!("{head}{}", lines.join("\n"))) } else { hashed }
}

/// Whether an address with a password in it may stand in a text.
fn has_user_information(text: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.windows(3).position(|w| w == b"://"))
    {
        from += at + 3;
        let rest = text.get(from..).unwrap_or_default();
        let end = rest.iter().position(|b| b.is_ascii_whitespace() || b"/\"'<>?#".contains(b));
        let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let user = authority.iter().position(|b| *b == b':');
        if user.is_some_and(|at| authority.get(at..).is_some_and(|rest| rest.contains(&b'@'))) {
            return true;
        }
    }
    false
}

/// `scheme://user:password@host`.
fn user_information(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at_checked(at + 3)?;
        out.push_str(head);
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '<' | '>' | '?' | '#');
        let end = tail.find(ends).unwrap_or(tail.len());
        let authority = tail.get(..end)?;
        match authority
            .rsplit_once('@')
            .and_then(|(info, host)| Some((info.split_once(':')?, host)))
        {
            Some(((user, password), host)) if !password.is_empty() => {
                found = true;
                out.push_str(&format!("{user}:{MASK}@{host}"));
            }
            _ => out.push_str(authority),
        }
        rest = tail.get(end..)?;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// `-object secret,…,data=…` among the arguments of QEMU.
fn qemu_secrets(text: &str) -> Option<String> {
    if !text.to_ascii_lowercase().contains("-object secret") {
        return None;
    }
    let mut found = false;
    let parts: Vec<String> = text
        .split_inclusive([',', ' '])
        .map(|part| match part.strip_prefix("data=") {
            Some(value) => {
                found = true;
                let end = value.strip_suffix([',', ' ']).map_or(0, |kept| value.len() - kept.len());
                format!("data={MASK}{}", value.get(value.len() - end..).unwrap_or_default())
            }
            None => part.to_owned(),
        })
        .collect();
    found.then(|| parts.concat())
}

/// Tickets of Proxmox: `PVE:user@realm:HEX::base64`, `PVEVNC:…` and others.
fn tickets(text: &str) -> Option<String> {
    mask_words(text, |word| {
        let head = word.split(':').next()?;
        (TICKETS.contains(&head) && word.contains("::")).then(|| format!("{head}:{MASK}"))
    })
}

/// `user@realm!name=SECRET` and `PVEAPIToken=…`.
fn api_tokens(text: &str) -> Option<String> {
    mask_words(text, |word| {
        if let Some(rest) = word.strip_prefix(TOKEN_HEADER)
            && let Some((id, _)) = rest.split_once('=')
        {
            return Some(format!("{TOKEN_HEADER}{id}={MASK}"));
        }
        let (id, secret) = word.rsplit_once(['=', ':'])?;
        let is_id = id.contains('@') && id.contains('!');
        let uuid = secret.len() == 36
            && secret.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
            && secret.bytes().filter(|b| *b == b'-').count() == 4;
        (is_id && uuid).then(|| format!("{id}={MASK}"))
    })
}

/// `password=…` and its like inside property strings, command lines and URLs.
fn assignments(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut out = String::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(at) = lower.get(from..).and_then(|r| r.find(['=', ':'])).map(|n| n + from) {
        from = at + 1;
        // `"password":` has a quote before the colon.
        let name_end = lower.get(..at)?.trim_end_matches(['"', '\'', '\\']).len();
        let name_start = lower
            .get(..name_end)?
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
            .map_or(0, |n| {
                n + lower.get(n..).and_then(|r| r.chars().next()).map_or(1, char::len_utf8)
            });
        let name = lower.get(name_start..name_end)?.replace('_', "-");
        if !ASSIGNED.contains(&name.as_str()) {
            continue;
        }
        // After a colon only what follows at once or after one blank is a value.
        let mut start = at + 1;
        if lower.get(start..).is_some_and(|r| r.starts_with(' '))
            && lower.as_bytes().get(at) == Some(&b':')
        {
            start += 1;
        }
        // `"password": "…"`, with the quotes of a text within a text.
        let quotes = |c: char| matches!(c, '"' | '\'' | '\\');
        let opened = lower.get(start..)?;
        start += opened.len() - opened.trim_start_matches(quotes).len();
        let tail = lower.get(start..)?;
        // A header goes on to its end.
        let cookies = matches!(name.as_str(), "cookie" | "set-cookie");
        let header = cookies || name.ends_with("authorization");
        let ends: &[char] = match header {
            true => &['"', '\'', '\n', '\\'],
            false => &[',', ';', ' ', '&', '"', '\'', '\n', '\t', '\\'],
        };
        let end = start + tail.find(ends).unwrap_or(tail.len());
        // `authorization: enabled` is an option and no header.
        let schemes = ["bearer ", "basic ", "digest ", "negotiate ", "token ", "apikey ", "pve"];
        let value = lower.get(start..end)?;
        let is_header =
            schemes.iter().any(|s| value.starts_with(s)) || cookies && value.contains('=');
        if header && !is_header {
            continue;
        }
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

/// Bytes of a word that ends one, but for blanks beyond ASCII.
const WORD_ENDS: &[u8] = b"\"',;<>()";

/// Whether something like `user@realm!name=SECRET` may stand in a text: after a `!`, within the
/// word, a sign and the four dashes of a secret.
fn has_token_id(text: &[u8]) -> bool {
    let ends = |b: &u8| b.is_ascii_whitespace() || *b == 0x0b || WORD_ENDS.contains(b);
    let mut after = text.split(|b| *b == b'!');
    after.next();
    after.any(|rest| {
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let dashes = word.iter().filter(|b| **b == b'-').count();
        dashes >= 4 && word.iter().any(|b| matches!(b, b'=' | b':'))
    })
}

/// Applies a rule to each word; `None` where it held for none.
fn mask_words(text: &str, rule: impl Fn(&str) -> Option<String>) -> Option<String> {
    let ends =
        |c: char| c.is_whitespace() || u8::try_from(c).is_ok_and(|byte| WORD_ENDS.contains(&byte));
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
            for around in
                ["", " ", "\n", "!", "\u{2003}", "\"", "ö", "\0", "x y", "=", ":", "@", "-"]
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
}
