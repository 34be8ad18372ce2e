//! Secrets are masked at one place on the way out: by the name of the member
//! that holds them, by their form inside text, and this server's own wherever
//! they occur.

mod forms;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use self::forms::{
    ASSIGNED, FORMS, PEM, PEM_END, TICKETS, TOKEN_HEADER, has_token_id, has_user_information,
    hash_at,
};
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

/// Masks secrets in answers, errors, logs and records.
pub struct Redactor {
    own: Vec<SecretString>,
    /// Finds those in one pass.
    own_marks: Option<AhoCorasick>,
}

/// What finds a secret holds it, so nothing of either is shown.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
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
        let texts: Vec<&str> = own.iter().map(ExposeSecret::expose_secret).collect();
        let own_marks = finder(&texts);
        Self { own, own_marks }
    }

    /// Whether there may be a secret in a text: never no where [`Self::text`] finds one.
    fn suspects(&self, text: &[u8]) -> bool {
        let stands = |marks: &Option<AhoCorasick>| marks.as_ref().is_none_or(|m| m.is_match(text));
        stands(&self.own_marks)
            || stands(&MARKS)
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
        for form in FORMS {
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

/// What must stand in a text for one of the forms to match: nearly every text holds none of it,
/// and files of guests can be large.
static MARKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut marks: Vec<String> =
        [PEM, PEM_END, TOKEN_HEADER, "-object secret", "chpasswd:"].map(str::to_owned).into();
    marks.extend(TICKETS.iter().map(|head| format!("{head}:")));
    for name in ASSIGNED {
        // What stands between the name and its sign can be a quote.
        marks.extend([(*name).to_owned(), name.replace('-', "_")]);
    }
    finder(&marks)
});

/// Finds any of these texts in any case; `None` where it cannot be made, and every text is then
/// looked at with all care.
fn finder(texts: &[impl AsRef<[u8]>]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(texts)
        .ok()
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

#[cfg(test)]
mod tests;
