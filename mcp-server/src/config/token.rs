//! The grammar of API tokens, and what people paste instead.

use secrecy::{ExposeSecret, SecretString};

use super::ApiToken;
use crate::{Code, Error, Result};

/// Where a token is made and what it looks like; the end of every hint here.
const HOW: &str = "a token looks like mcp@pve!full; `proxmox-mcp init` prints the commands that \
                   make one";

/// What was set for the token, before it is put together.
///
/// Nothing in here is ever repeated in an error: people paste the secret into either field.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// `PROXMOX_TOKEN_ID`.
    pub id: Option<SecretString>,
    /// `PROXMOX_TOKEN_SECRET`, or what stood in the secret file.
    pub secret: Option<SecretString>,
}

/// A token and whether its secret has the usual form.
#[derive(Debug, Clone)]
pub struct Read {
    /// The token.
    pub token: ApiToken,
    /// Whether the secret is a UUID, as every secret that Proxmox makes.
    pub secret_is_uuid: bool,
}

impl Parts {
    /// Puts id and secret together; `None` when neither is set.
    ///
    /// # Errors
    /// `config` for a token that cannot be meant, with what is wrong with it.
    pub fn read(&self) -> Result<Option<Read>> {
        let id = self.id.as_ref().map(|id| Pasted::of(id.expose_secret()));
        let secret = self.secret.as_ref().map(|s| Pasted::of(s.expose_secret()));
        if let (Some(Pasted::Secret(_)), Some(Pasted::Id(_))) = (&id, &secret) {
            return Err(bad("the token's id and secret are swapped", "exchange the two values"));
        }
        let (mut ids, mut secrets) = (Vec::new(), Vec::new());
        match id {
            None => {}
            Some(Pasted::Id(id)) => ids.push(id),
            Some(Pasted::Secret(text)) if !is_uuid(text) => ids.push(text),
            Some(Pasted::Secret(_)) => {
                let hint = "the id goes here, the secret into PROXMOX_TOKEN_SECRET";
                return Err(bad("PROXMOX_TOKEN_ID holds a secret and not an id", hint));
            }
            Some(Pasted::Both(id, secret)) => {
                ids.push(id);
                secrets.push(secret);
            }
        }
        match secret {
            None => {}
            Some(Pasted::Secret(secret)) => secrets.push(secret),
            Some(Pasted::Id(_)) => {
                let hint = "the secret is what Proxmox showed once when the token was made";
                return Err(bad("PROXMOX_TOKEN_SECRET holds a token id and not a secret", hint));
            }
            Some(Pasted::Both(id, secret)) => {
                ids.push(id);
                secrets.push(secret);
            }
        }
        ids.dedup();
        secrets.dedup();
        let (id, secret) = match (ids.as_slice(), secrets.as_slice()) {
            ([], []) => return Ok(None),
            ([id], [secret]) => (*id, *secret),
            ([_], []) => return Err(incomplete("PROXMOX_TOKEN_SECRET")),
            ([], _) => return Err(incomplete("PROXMOX_TOKEN_ID")),
            _ => {
                let hint = "remove one of them";
                return Err(bad("two different tokens are set", hint));
            }
        };
        check_id(id)?;
        check_secret(secret)?;
        let token = ApiToken { id: id.to_owned(), secret: secret.into() };
        Ok(Some(Read { token, secret_is_uuid: is_uuid(secret) }))
    }
}

/// What a pasted text turns out to be.
enum Pasted<'a> {
    Id(&'a str),
    Secret(&'a str),
    Both(&'a str, &'a str),
}

impl<'a> Pasted<'a> {
    /// Reads an id, a secret, `id=secret`, or the whole `Authorization` header.
    fn of(text: &'a str) -> Self {
        let text = unquoted(text.trim());
        let text = after(text, "Authorization:").unwrap_or(text).trim();
        let text = match after(text, "PVEAPIToken") {
            Some(rest) if rest.starts_with(['=', ' ']) => rest.get(1..).unwrap_or_default().trim(),
            _ => text,
        };
        match text.split_once('=') {
            Some((id, secret)) if id.contains(['@', '!']) => Pasted::Both(id.trim(), secret.trim()),
            _ if text.contains(['@', '!']) => Pasted::Id(text),
            _ => Pasted::Secret(text),
        }
    }
}

/// What stands behind a prefix, whose case does not matter.
fn after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..)).flatten()
}

/// Without the quotes that an `env` file of Docker or systemd left around a value.
fn unquoted(text: &str) -> &str {
    ['"', '\''].iter().find_map(|q| text.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(text)
}

fn check_id(id: &str) -> Result<()> {
    let Some((user, name)) = id.split_once('!') else {
        let hint = format!(
            "{HOW}; in a shell write it between single quotes, or the shell takes the `!` for itself"
        );
        return Err(Error::new(Code::Config, "token id has no !name").hint(hint));
    };
    let Some((login, realm)) = user.rsplit_once('@') else {
        return Err(bad("token id has no @realm before its !name", HOW));
    };
    let word = |text: &str| {
        text.len() > 1
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
    };
    if login.is_empty()
        || login.chars().any(|c| c.is_whitespace() || c.is_control() || ":/".contains(c))
    {
        return Err(bad("the user in the token id is not one", HOW));
    }
    if !word(realm) {
        return Err(bad("the realm in the token id is not one", HOW));
    }
    if !word(name) {
        let message =
            "the token's name after `!` is not one (a letter, then letters, digits, . - _)";
        return Err(bad(message, HOW));
    }
    Ok(())
}

fn check_secret(secret: &str) -> Result<()> {
    if secret.is_empty() || !secret.bytes().all(|b| b.is_ascii_graphic()) {
        let hint = "the secret is a UUID of 36 characters, shown once when the token was made";
        return Err(bad("the token secret has characters that no secret has", hint));
    }
    Ok(())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

fn incomplete(missing: &str) -> Error {
    Error::new(Code::Config, format!("{missing} is missing, half of the token is set"))
        .hint(format!("set {missing} as well; {HOW}"))
        .with("variable", missing)
}

fn bad(message: &str, hint: &str) -> Error {
    Error::new(Code::Config, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0f5e1c3a-1111-4222-8333-444455556666";

    fn read(id: &str, secret: &str) -> Result<Option<Read>> {
        let part = |text: &str| (!text.is_empty()).then(|| SecretString::from(text));
        Parts { id: part(id), secret: part(secret) }.read()
    }

    #[test]
    fn tokens_are_taken_as_people_paste_them() {
        let both = format!("mcp@pve!full={UUID}");
        for (id, secret) in [
            ("mcp@pve!full", UUID),
            (" mcp@pve!full\n", &format!("{UUID}\r\n")),
            (&format!("PVEAPIToken={both}"), ""),
            ("", &format!("PVEAPIToken={both}")),
            (&format!("pveapitoken {both}"), ""),
            (&format!("Authorization: PVEAPIToken={both}"), ""),
            ("", &format!("authorization:PVEAPIToken={both}")),
            (&both, ""),
            ("mcp@pve!full", &both),
            (&both, UUID),
            (&both, &both),
            ("\"mcp@pve!full\"", &format!("'{UUID}'")),
            (&format!("\"PVEAPIToken={both}\""), ""),
        ] {
            let read = read(id, secret).unwrap().unwrap();
            assert_eq!(read.token.id, "mcp@pve!full", "{id}");
            assert_eq!(read.token.secret.expose_secret(), UUID, "{id}");
            assert!(read.secret_is_uuid);
        }
        let users = ["root@pam!a1", "eva.b@corp.example@ldap-1!ci_2.x", "Ü@pve!full"];
        for id in users {
            assert_eq!(read(id, UUID).unwrap().unwrap().token.id, id);
        }
        assert!(!read("mcp@pve!full", "short").unwrap().unwrap().secret_is_uuid);
        assert!(read("", "").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_meant_is_told_without_repeating_it() {
        let other = "9f5e1c3a-1111-4222-8333-444455556666";
        for (id, secret, message) in [
            ("mcp@pve", UUID, "token id has no !name"),
            ("mcp!full", UUID, "no @realm"),
            ("mcp@pve!", UUID, "name after `!`"),
            ("mcp@pve!1x", UUID, "name after `!`"),
            ("mcp@pve!a b", UUID, "name after `!`"),
            ("mcp@pve!a!b", UUID, "name after `!`"),
            ("@pve!full", UUID, "user"),
            ("m/p@pve!full", UUID, "user"),
            ("mcp@!full", UUID, "realm"),
            (UUID, "mcp@pve!full", "swapped"),
            (UUID, "", "holds a secret"),
            ("mcp", UUID, "token id has no !name"),
            ("short", "mcp@pve!full", "swapped"),
            (UUID, "mcp@pve", "swapped"),
            ("", UUID, "PROXMOX_TOKEN_ID is missing"),
            ("mcp@pve!full", "", "PROXMOX_TOKEN_SECRET is missing"),
            ("mcp@pve!full", "mcp@pve!full", "holds a token id"),
            ("mcp@pve!full", "a\tb", "characters"),
            ("mcp@pve!full", "geheim-ü", "characters"),
            (&format!("mcp@pve!full={UUID}"), other, "two different"),
            ("mcp@pve!full", &format!("mcp@pve!other={UUID}"), "two different"),
            ("mcp@pve!full=", "", "characters"),
        ] {
            let error = read(id, secret).unwrap_err();
            let text = format!("{error} {}", error.to_json());
            assert_eq!(error.code, Code::Config);
            assert!(text.contains(message), "{id} / {secret}: {text}");
            assert!(!text.contains(UUID) && !text.contains(other), "{text}");
            assert!(!error.hint.is_empty(), "{text}");
        }
    }
}
