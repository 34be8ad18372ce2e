//! Secrets that are known by their form inside a text.

use super::MASK;

/// Masks secrets of one form inside a text; `None` where there was none.
pub(super) type Form = fn(&str) -> Option<String>;

/// Names before `=` or `:` in a text whose value is a secret; `_` counts as `-`.
pub(super) const ASSIGNED: &[&str] = &[
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
pub(super) const TICKETS: &[&str] = &["PVE", "PVEVNC", "PVEADM", "PMG", "PBS"];

pub(super) const PEM: &str = "-----BEGIN ";
pub(super) const PEM_END: &str = "-----END ";
pub(super) const TOKEN_HEADER: &str = "PVEAPIToken=";

/// Every form, in the order in which they are looked for.
pub(super) const FORMS: [Form; 7] =
    [private_keys, tickets, api_tokens, assignments, user_information, hashes, qemu_secrets];

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
pub(super) fn hash_at(text: &[u8], from: usize) -> Option<(usize, usize)> {
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
pub(super) fn has_user_information(text: &[u8]) -> bool {
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
        // `PVE:user@realm:HEX::…`, and no name of a module (`PVE::Auth`).
        let (before, signature) = word.split_once("::")?;
        let is_ticket = TICKETS.contains(&head) && before.contains(':') && !signature.is_empty();
        is_ticket.then(|| format!("{head}:{MASK}"))
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
pub(super) fn has_token_id(text: &[u8]) -> bool {
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
