//! Masking on the way out: values that are secret by where they stand, and this
//! server's own secrets wherever they occur inside other text.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::api::API;
use crate::{
    Error,
    config::Config,
    pve::{ApiPath, Params},
};

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Names whose value is secret wherever they stand, folded: lower case, `_` as `-`.
const SECRET_NAMES: [&str; 34] = [
    "password", "new-password", "confirmation-password", "cipassword", "ssh-password", "passwd",
    "secret", "client-secret", "client-key", "api-token", "ticket", "vncticket",
    "csrfpreventiontoken", "private-key", "privatekey", "certkey", "encryption-key", "keyring",
    "authkey", "otp", "totp", "tfa-challenge", "challenge", "recovery", "recovery-codes",
    "eab-hmac-key", "authorization", "cookie", "set-cookie", "proxy-authorization",
    "otel-headers", "x-api-key", "bind-password", "secret-access-key",
];

/// Names that are secret on some paths only: the start of the path template, and the names there.
const SECRET_THERE: [(&str, &[&str]); 14] = [
    ("/access/users/{userid}/token", &["value"]),
    ("/access/tfa", &["value", "id", "secret", "url"]),
    ("/access/users", &["keys"]),
    ("/access/domains", &["client-key", "password"]),
    ("/cluster/acme/plugins", &["data"]),
    ("/cluster/acme/account", &["eab-kid"]),
    ("/cluster/sdn/dns", &["key"]),
    ("/cluster/sdn/ipams", &["token"]),
    ("/cluster/notifications", &["token", "secret", "header"]),
    ("/cluster/metrics/server", &["token", "otel-headers"]),
    ("/nodes/{node}/certificates", &["key"]),
    ("/nodes/{node}/subscription", &["key"]),
    ("/nodes/{node}/lxc", &["env", "password"]),
    ("/nodes/{node}/ceph", &["key"]),
];

/// Masks secrets in results, error texts, logs and records.
#[derive(Debug)]
pub struct Redactor {
    secrets: Vec<SecretString>,
}

impl Redactor {
    /// From the secrets of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let secrets = config.token.iter().map(|t| t.secret.clone());
        let secrets = secrets.chain(config.http.token.clone());
        Self { secrets: secrets.filter(|s| s.expose_secret().len() >= 8).collect() }
    }

    /// Text without secrets; `None` when it had none.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let mut found = None::<String>;
        for secret in &self.secrets {
            let secret = secret.expose_secret();
            for form in [secret.to_owned(), secret.to_uppercase(), secret.to_lowercase()] {
                let now = found.as_deref().unwrap_or(text);
                if now.contains(&form) {
                    found = Some(now.replace(&form, MASK));
                }
            }
        }
        for mask in [private_keys, credentials] {
            let now = found.as_deref().unwrap_or(text);
            if let Some(masked) = mask(now) {
                found = Some(masked);
            }
        }
        found
    }

    /// Masks inside a value, in place: by the names of members, and inside texts.
    pub fn value(&self, value: &mut Value) {
        self.walk(value, &[]);
    }

    /// Masks inside what a call answered, in place; some names are secret on some paths only.
    pub fn answer(&self, path: &ApiPath, value: &mut Value) {
        let template = template_of(path);
        if template.starts_with("/cluster/config/join") || template.ends_with("/cloudinit/dump") {
            self.all(value, template.ends_with("/dump"));
            return;
        }
        self.walk(value, &names_there(template));
    }

    /// Masks inside an error, in place.
    pub fn error(&self, error: &mut Error) {
        for text in [&mut error.message, &mut error.hint] {
            if let Some(masked) = self.text(text) {
                *text = masked;
            }
        }
        for value in error.details.values_mut() {
            self.value(value);
        }
    }

    /// Parameters as they may be shown and recorded.
    #[must_use]
    pub fn params(&self, path: &ApiPath, params: &Params) -> Value {
        let mut value = params.to_json();
        self.walk(&mut value, &names_there(template_of(path)));
        value
    }

    fn walk(&self, value: &mut Value, there: &[&str]) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|v| self.walk(v, there)),
            Value::Object(map) => self.object(map, there),
            _ => {}
        }
    }

    fn object(&self, map: &mut Map<String, Value>, there: &[&str]) {
        // Rows of pending changes name their option in `key`.
        let row_of_secret = map
            .get("key")
            .and_then(Value::as_str)
            .is_some_and(|key| is_secret(key, there) && (map.contains_key("value") || map.contains_key("pending")));
        for (name, value) in map.iter_mut() {
            let of_row = row_of_secret && matches!(name.as_str(), "value" | "pending");
            let of_name = is_secret(name, there) && !(name == "key" && row_of_secret);
            if (of_row || of_name) && !value.is_null() && !value.is_boolean() {
                cover(value);
            } else {
                self.walk(value, there);
            }
        }
    }

    /// Masks every text; of cloud-init data only the lines that hold a password.
    fn all(&self, value: &mut Value, cloudinit: bool) {
        match value {
            Value::String(text) if cloudinit => {
                let lines: Vec<String> = text.lines().map(cloudinit_line).collect();
                *text = lines.join("\n");
                self.walk(value, &[]);
            }
            Value::String(text) => MASK.clone_into(text),
            Value::Array(items) => items.iter_mut().for_each(|v| self.all(v, cloudinit)),
            Value::Object(map) => map.values_mut().for_each(|v| self.all(v, cloudinit)),
            _ => {}
        }
    }
}

fn cover(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(cover),
        other => *other = MASK.into(),
    }
}

fn template_of(path: &ApiPath) -> &str {
    API.find(path).map_or(path.as_str(), |endpoint| endpoint.template)
}

fn names_there(template: &str) -> Vec<&'static str> {
    SECRET_THERE
        .iter()
        .filter(|(start, _)| template.starts_with(start))
        .flat_map(|(_, names)| names.iter().copied())
        .collect()
}

fn is_secret(name: &str, there: &[&str]) -> bool {
    let folded = name.to_ascii_lowercase().replace('_', "-");
    SECRET_NAMES.contains(&folded.as_str()) || there.contains(&folded.as_str())
}

/// A line of cloud-init user data without the password that it may hold.
fn cloudinit_line(line: &str) -> String {
    match line.split_once(':') {
        Some((key, _)) if key.trim().trim_start_matches("- ").contains("passw") => {
            format!("{key}: {MASK}")
        }
        _ => line.to_owned(),
    }
}

/// Covers PEM private keys.
fn private_keys(text: &str) -> Option<String> {
    const BEGIN: &str = "-----BEGIN ";
    const LABEL: &str = "PRIVATE KEY-----";
    if !text.contains(LABEL) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let Some(head) = from.find(LABEL).filter(|at| !from.get(..*at).unwrap_or_default().contains('\n'))
        else {
            out.push_str(BEGIN);
            rest = from.get(BEGIN.len()..).unwrap_or_default();
            continue;
        };
        out.push_str(MASK);
        let body = from.get(head + LABEL.len()..).unwrap_or_default();
        // A key that is cut off is covered to its end.
        rest = body.find(LABEL).and_then(|end| body.get(end + LABEL.len()..)).unwrap_or_default();
    }
    out.push_str(rest);
    Some(out)
}

/// What announces a credential inside a text, and it runs to the next blank or quote.
const ANNOUNCED: [&str; 6] =
    ["pveapitoken=", "pveapitoken ", "pveauthcookie=", "csrfpreventiontoken: ", "authorization: bearer ", "authorization: basic "];

/// Covers credentials of HTTP headers.
fn credentials(text: &str) -> Option<String> {
    let mut found = None::<String>;
    for announced in ANNOUNCED {
        let now = found.as_deref().unwrap_or(text);
        let lower = now.to_ascii_lowercase();
        if !lower.contains(announced) {
            continue;
        }
        let (mut out, mut at) = (String::with_capacity(now.len()), 0);
        while let Some(start) = lower.get(at..).and_then(|l| l.find(announced)).map(|i| at + i + announced.len()) {
            out.push_str(now.get(at..start).unwrap_or_default());
            let rest = now.get(start..).unwrap_or_default();
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | ',')).unwrap_or(rest.len());
            out.push_str(MASK);
            at = start + end;
        }
        out.push_str(now.get(at..).unwrap_or_default());
        found = Some(out);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::safety::testing::config;

    fn redactor() -> Redactor {
        Redactor::new(&config())
    }

    fn answered(path: &str, mut value: Value) -> Value {
        redactor().answer(&ApiPath::parse(path).unwrap(), &mut value);
        value
    }

    #[test]
    fn secrets_are_masked_where_they_stand() {
        for (path, given, want) in [
            ("/access/users/a@pve/token/t", json!({"full-tokenid": "a@pve!t", "value": "s3cret-value"}),
                json!({"full-tokenid": "a@pve!t", "value": "***"})),
            ("/access/ticket", json!({"ticket": "PVE:x", "CSRFPreventionToken": "y", "username": "a"}),
                json!({"ticket": "***", "CSRFPreventionToken": "***", "username": "a"})),
            ("/storage", json!([{"storage": "s", "encryption-key": "k", "password": "p"}]),
                json!([{"storage": "s", "encryption-key": "***", "password": "***"}])),
            ("/cluster/acme/plugins/x", json!({"data": "API_KEY=1", "api": "cf"}), json!({"data": "***", "api": "cf"})),
            ("/cluster/notifications/endpoints/webhook", json!({"secret": ["name=a,value=Yg=="], "header": ["name=X,value=Yg=="]}),
                json!({"secret": ["***"], "header": ["***"]})),
            ("/cluster/sdn/dns/d", json!({"key": "k", "url": "u"}), json!({"key": "***", "url": "u"})),
            ("/nodes/n/qemu/100/config", json!({"cipassword": "x", "name": "web"}), json!({"cipassword": "***", "name": "web"})),
            ("/nodes/n/qemu/100/pending", json!([{"key": "cipassword", "value": "x"}, {"key": "cores", "value": 2}]),
                json!([{"key": "cipassword", "value": "***"}, {"key": "cores", "value": 2}])),
            ("/nodes/n/lxc/200/config", json!({"env": "A=1", "hostname": "h"}), json!({"env": "***", "hostname": "h"})),
            ("/cluster/config/join", json!({"nodelist": [{"pve_fp": "AA"}], "n": 1}), json!({"nodelist": [{"pve_fp": "***"}], "n": 1})),
            ("/nodes/n/qemu/100/cloudinit/dump", json!("user: a\npassword: $5$x\nchpasswd:\n  x"),
                json!("user: a\npassword: ***\nchpasswd: ***\n  x")),
            ("/nodes/n/tasks/U/log", json!([{"n": 1, "t": "key: -----BEGIN RSA PRIVATE KEY-----\nAB\n-----END RSA PRIVATE KEY----- end"}]),
                json!([{"n": 1, "t": "key: *** end"}])),
            ("/version", json!({"x": "Authorization: PVEAPIToken=a@pve!t=uuid-x, ok"}), json!({"x": "Authorization: PVEAPIToken=***, ok"})),
            ("/version", json!({"a": "at 5ec7e7aa-0000-4000-8000-00000000beef."}), json!({"a": "at ***."})),
            ("/version", json!({"a": "at 5EC7E7AA-0000-4000-8000-00000000BEEF."}), json!({"a": "at ***."})),
            ("/version", json!({"password": null, "key": "k"}), json!({"password": null, "key": "k"})),
        ] {
            assert_eq!(answered(path, given), want, "{path}");
        }
    }

    #[test]
    fn parameters_and_errors_are_masked() {
        let params = Params::new().with("password", "x").with("data", "y").with("id", "p");
        let path = ApiPath::parse("/cluster/acme/plugins").unwrap();
        assert_eq!(redactor().params(&path, &params), json!({"password": "***", "data": "***", "id": "p"}));
        let mut error = Error::internal("with 5ec7e7aa-0000-4000-8000-00000000beef").with("ticket", "t");
        redactor().error(&mut error);
        assert_eq!((error.message.as_str(), &error.details["ticket"]), ("with ***", &json!("t")));
    }

    #[test]
    fn a_key_that_is_cut_off_is_covered_to_its_end() {
        let text = redactor().text("a -----BEGIN PRIVATE KEY-----\nMIIE").unwrap();
        assert_eq!(text, "a ***");
        assert_eq!(redactor().text("-----BEGIN CERTIFICATE-----\nx"), None);
    }
}
