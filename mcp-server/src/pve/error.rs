//! What an answer other than success means: status line, message, field errors.
//!
//! Proxmox answers most failures with 500 and a sentence, so the sentence has
//! to be read; the phrases are those of the real code.

use serde_json::{Map, Value};

use super::transport::Reply;
use crate::{Code, Error, config::HostPort, safety::Method};

/// Longest text taken over from an answer, in characters.
const MAX_TEXT: usize = 400;

/// The call an answer belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub method: Method,
    /// Canonical path.
    pub path: &'a str,
    pub host: &'a HostPort,
    /// `user@realm!name`, empty when there is no token.
    pub token_id: &'a str,
}

/// Turns an answer with a status of 300 or more into an error.
pub(crate) fn of_reply(call: Call<'_>, reply: &Reply) -> Error {
    let said = Said::read(reply);
    let error = match reply.status {
        300..=399 => redirected(call, reply),
        401 => unauthorized(call, &said.text),
        403 if !said.html => forbidden(&said.text),
        595..=599 => proxy_failed(call, reply.status, &said.text),
        502..=504 => Error::new(
            Code::BadAnswer,
            format!("a proxy in front of {} answered {} {}", call.host, reply.status, said.text),
        )
        .hint("check the reverse proxy, or name the node itself in PROXMOX_HOST"),
        _ if said.html => Error::new(
            Code::BadAnswer,
            format!("{} answered {} with a web page", call.host, reply.status),
        )
        .hint(PROXY_HINT),
        501 if said.text.contains("data too large") => {
            Error::argument("the node takes at most 512 KiB in one call")
        }
        501 => Error::new(
            Code::NotFound,
            format!("no such endpoint or method: {} {}", call.method.as_str(), call.path),
        )
        .hint("pve_api_explore lists what this node has"),
        status => said.refusal(call, status),
    };
    error.with("http_status", reply.status)
}

/// A success whose body is not `{"data":…}`.
pub(crate) fn not_an_answer(host: &HostPort, reply: &Reply, why: &str) -> Error {
    let error = if is_html(reply) {
        Error::new(Code::BadAnswer, format!("{host} answered with a web page instead of data"))
    } else {
        Error::new(Code::BadAnswer, format!("the answer of {host} is not the API's: {why}"))
    };
    error.hint(PROXY_HINT).with("http_status", reply.status)
}

/// Whether a refusal says that this node may not change anything now.
pub(crate) fn without_quorum(error: &Error) -> bool {
    error.details.contains_key("no_quorum")
}

/// Whether the far node certainly did not get the call (a write may say so).
pub(crate) fn never_arrived(status: u16, reason: &str) -> bool {
    // 595 is the failure to connect; 596 covers the whole exchange but for TLS.
    status == 595 || (status == 596 && reason.contains("certificate verify failed"))
}

/// Text from the network as one clean line of bounded length.
pub(crate) fn clean(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut out: String = line.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect();
    if line.chars().count() > MAX_TEXT {
        out.push('…');
    }
    without_source_place(out.trim()).to_owned()
}

/// Perl adds ` at FILE line N.` to what its authors did not mean for users.
fn without_source_place(text: &str) -> &str {
    match text.rfind(" at /usr/share/perl5/") {
        Some(at) if text.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit()) => {
            text.get(..at).unwrap_or(text)
        }
        _ => text,
    }
}

const ARGUMENT_HINT: &str = "pve_api_schema shows what the parameters may be";

const PROXY_HINT: &str = "something else than pveproxy answers there: check host and port, and any \
                          reverse proxy in between";

fn is_html(reply: &Reply) -> bool {
    let start = reply.body.get(..reply.body.len().min(256)).unwrap_or_default();
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    reply.content_type.to_ascii_lowercase().starts_with("text/html")
        || start.starts_with("<!doctype")
        || start.starts_with("<html")
}

/// What an answer says in words.
struct Said {
    /// The first line of `message`, else the reason phrase, else the first line of the body.
    text: String,
    /// Errors by parameter.
    fields: Map<String, Value>,
    html: bool,
}

impl Said {
    fn read(reply: &Reply) -> Self {
        let html = is_html(reply);
        let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
        let message = body.as_ref().and_then(|b| b.get("message")).and_then(Value::as_str);
        let mut fields = Map::new();
        if let Some(Value::Object(errors)) = body.as_ref().and_then(|b| b.get("errors")) {
            for (name, text) in errors.iter().take(50) {
                let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                fields.insert(clean(name), clean(&text).into());
            }
        }
        // Some calls put "400 Parameter verification failed.\nid: why" into a 500.
        let lines = message.unwrap_or_default().trim().lines();
        if fields.is_empty() && message.is_some_and(|m| m.contains("arameter verification failed"))
        {
            for (name, why) in lines.skip(1).filter_map(|l| l.split_once(": ")) {
                fields.insert(clean(name), clean(why).into());
            }
        }
        let reason = Some(clean(&reply.reason)).filter(|r| !r.is_empty() && r != "OK");
        let text = message
            .map(clean)
            .filter(|m| !m.is_empty())
            .or(reason)
            .or_else(|| {
                let body = String::from_utf8_lossy(&reply.body);
                Some(clean(&body)).filter(|b| !b.is_empty() && !html)
            })
            .unwrap_or_else(|| format!("status {}", reply.status));
        Self { text, fields, html }
    }

    /// A refusal by the API itself, recognised by its words.
    fn refusal(&self, call: Call<'_>, status: u16) -> Error {
        let mut text = self.text.clone();
        if !self.fields.is_empty() {
            let list: Vec<String> = self
                .fields
                .iter()
                .map(|(name, why)| format!("{name}: {}", why.as_str().unwrap_or_default()))
                .collect();
            text = format!("{} {}", text.trim_start_matches("400 "), list.join("; "));
        }
        let lower = text.to_lowercase();
        let rule = RULES.iter().find(|rule| (rule.applies)(&lower, call));
        let mut error = match rule {
            _ if status == 400 => Error::argument(text.clone()).hint(ARGUMENT_HINT),
            Some(rule) => Error::new(rule.code, text.clone()).hint(rule.hint),
            None if !self.fields.is_empty() => Error::argument(text.clone()).hint(ARGUMENT_HINT),
            None => Error::new(Code::ApiError, text.clone()),
        };
        if !self.fields.is_empty() {
            error = error.with("errors", Value::Object(self.fields.clone()));
        }
        if error.code == Code::Locked
            && let Some((_, lock)) = text.split_once("is locked (")
        {
            error = error.with("lock", lock.trim_end_matches(')'));
        }
        if let Some((node, vmid)) = missing_guest(&text) {
            error = error.with("node", node).with("vmid", vmid);
        }
        if lower.contains("no quorum") {
            error = error.with("no_quorum", true);
        }
        error
    }
}

/// `Configuration file 'nodes/NODE/qemu-server/VMID.conf' does not exist`.
fn missing_guest(text: &str) -> Option<(&str, u32)> {
    let rest = text.strip_prefix("Configuration file 'nodes/")?;
    let (path, _) = rest.split_once(".conf' does not exist")?;
    let mut parts = path.split('/');
    let node = parts.next()?;
    let vmid = parts.nth(1)?.parse().ok()?;
    Some((node, vmid))
}

struct Rule {
    applies: fn(&str, Call<'_>) -> bool,
    code: Code,
    hint: &'static str,
}

fn any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// The first rule that applies decides; texts are in lower case.
const RULES: &[Rule] = &[
    Rule {
        applies: |t, _| {
            any(t, &["only root may", "only root can", "need proper ticket", "user != root@pam"])
        },
        code: Code::Forbidden,
        hint: "this needs a password session of root@pam; no API token can do it, root@pam's neither",
    },
    Rule {
        applies: |t, c| {
            any(t, &["guest agent is not running", "no qemu guest agent configured", "qga command"])
                || (c.path.contains("/agent/") && t.contains("is not running"))
        },
        code: Code::AgentUnavailable,
        hint: "the guest must run, have qemu-guest-agent installed and started, and `agent: 1` in its configuration",
    },
    Rule {
        applies: |t, _| any(t, &["checksum mismatch", "detected modified configuration"]),
        code: Code::DigestChanged,
        hint: "somebody changed it since it was read: read it again and look at the difference",
    },
    Rule {
        applies: |t, _| {
            t.contains("is locked (")
                || (any(t, &["can't lock file", "lock request"]) && t.contains("timeout"))
        },
        code: Code::Locked,
        hint: "another operation holds it: pve_list_tasks shows which; wait for it to end",
    },
    Rule {
        applies: |t, _| {
            any(t, &["protection mode enabled", "is protected", "is marked as protected"])
        },
        code: Code::Protected,
        hint: "its owner protected it on purpose; ask before taking `protection` off",
    },
    Rule {
        applies: |t, _| t.contains("no quorum"),
        code: Code::Conflict,
        hint: "the node cannot see a majority of the cluster and is read-only until it does: pve_cluster_status shows which nodes are missing",
    },
    Rule {
        applies: |t, _| t.contains("hostname lookup '") || t.contains("no such cluster node"),
        code: Code::NotFound,
        hint: "nodes are named by their short names: pve_list_nodes lists them",
    },
    Rule {
        applies: |t, _| {
            any(t, &["already exists", "already defined", "already used", "already running"])
                || any(t, &["is running - destroy failed", "container is running", "is not empty"])
                || t.ends_with("not running")
        },
        code: Code::Conflict,
        hint: "",
    },
    Rule {
        applies: |t, _| t.starts_with("configuration file 'nodes/"),
        code: Code::NotFound,
        hint: "pve_list_vms lists the guests that this token can see",
    },
    Rule {
        applies: |t, _| any(t, &["does not exist", "no such ", "no rule at position", "not found"]),
        code: Code::NotFound,
        hint: "it does not exist, or not under this name: list what there is first",
    },
];

fn redirected(call: Call<'_>, reply: &Reply) -> Error {
    // Only the host: a query may carry what should not be repeated.
    let target = reply.location.as_deref().and_then(|l| reqwest::Url::parse(l).ok());
    let target = target.as_ref().and_then(reqwest::Url::host_str).unwrap_or("elsewhere");
    Error::new(
        Code::BadAnswer,
        format!("{} sends us on to {} ({})", call.host, clean(target), reply.status),
    )
    .hint("redirects are not followed, so that the token goes nowhere else; name the final host in PROXMOX_HOST")
}

fn unauthorized(call: Call<'_>, text: &str) -> Error {
    let id = if call.token_id.is_empty() { "none" } else { call.token_id };
    let lower = text.to_lowercase();
    let error = |message: String, hint: &str| Error::new(Code::Unauthorized, message).hint(hint);
    if call.token_id.is_empty() {
        error("no API token is set".into(), "set PROXMOX_TOKEN_ID and PROXMOX_TOKEN_SECRET")
    } else if any(&lower, &["no such token", "no such user"]) {
        error(
            format!("the node knows no token {id}"),
            "check PROXMOX_TOKEN_ID (user@realm!name); `pveum user token list USER` on the node lists them",
        )
    } else if any(&lower, &["invalid token", "token value", "invalid credentials"]) {
        error(
            format!("the secret of token {id} is wrong"),
            "check PROXMOX_TOKEN_SECRET; a lost secret cannot be shown again, only made anew",
        )
    } else if lower.contains("expired") {
        error(
            format!("token {id} or its user has expired"),
            "set a new expiry on the node: `pveum user token modify`",
        )
    } else if lower.contains("disabled") {
        error(format!("the user of token {id} is disabled"), "enable the user on the node")
    } else {
        error(
            format!("the node did not accept token {id}: {text}"),
            "Proxmox does not say why: the id or the secret is wrong, or token or user expired or is disabled; `proxmox-mcp check` goes through it",
        )
    }
}

fn forbidden(text: &str) -> Error {
    let inner = text.strip_prefix("Permission check failed").map(str::trim);
    let inner = inner.and_then(|t| t.strip_prefix('(')).map(|t| t.trim_end_matches(')'));
    if any(&text.to_lowercase(), &["only root", "user != root@pam", "need proper ticket"]) {
        return Error::new(Code::Forbidden, text).hint(
            "this needs a password session of root@pam; no API token can do it, root@pam's neither",
        );
    }
    let Some((path, privilege)) = inner.and_then(|t| t.rsplit_once(", ")) else {
        return Error::new(Code::Forbidden, text)
            .hint("pve_whoami and pve_permissions show what the token may do");
    };
    let path = if path.is_empty() { "/" } else { path };
    let first = privilege.split('|').next().unwrap_or(privilege);
    let role = role_with(first);
    let guest = path.strip_prefix("/vms/");
    let doubt = guest.map_or_else(String::new, |id| {
        format!("; a guest {id} that does not exist looks the same")
    });
    Error::new(Code::Forbidden, format!("the token lacks {privilege} on {path}"))
        .hint(format!(
            "role {role} has it: `pveum acl modify {path} --roles {role} --tokens 'USER@REALM!NAME'` on a \
             node (with privilege separation the user needs it too){doubt}"
        ))
        .with("privilege", privilege)
        .with("path", path)
        .with("role", role)
}

/// The smallest built-in role that holds a privilege.
#[must_use]
pub fn role_with(privilege: &str) -> &'static str {
    match privilege {
        "VM.Audit"
        | "Datastore.Audit"
        | "Sys.Audit"
        | "SDN.Audit"
        | "Pool.Audit"
        | "Mapping.Audit"
        | "VM.GuestAgent.Audit" => "PVEAuditor",
        "VM.Backup"
        | "VM.Config.CDROM"
        | "VM.Config.Cloudinit"
        | "VM.Console"
        | "VM.GuestAgent.FileRead"
        | "VM.GuestAgent.FileSystemMgmt"
        | "VM.GuestAgent.FileWrite"
        | "VM.PowerMgmt" => "PVEVMUser",
        "VM.Clone" => "PVETemplateUser",
        "Datastore.AllocateSpace" => "PVEDatastoreUser",
        "Datastore.Allocate" | "Datastore.AllocateTemplate" => "PVEDatastoreAdmin",
        "Sys.Console" | "Sys.Syslog" => "PVESysAdmin",
        "SDN.Use" => "PVESDNUser",
        "SDN.Allocate" => "PVESDNAdmin",
        "Pool.Allocate" => "PVEPoolAdmin",
        "Mapping.Use" => "PVEMappingUser",
        "Mapping.Modify" => "PVEMappingAdmin",
        "Group.Allocate" | "Realm.AllocateUser" | "User.Modify" => "PVEUserAdmin",
        _ if privilege.starts_with("VM.") => "PVEVMAdmin",
        _ => "Administrator",
    }
}

fn proxy_failed(call: Call<'_>, status: u16, text: &str) -> Error {
    let node = call.path.strip_prefix("/nodes/").and_then(|p| p.split('/').next());
    let to = node.map_or_else(|| "another node".to_owned(), |n| format!("node {n}"));
    let lower = text.to_lowercase();
    let hint = if lower.contains("certificate verify failed") {
        "this is about the cluster's own certificates, not ours: most often the node name is wrong \
         (a full name, an address, other case); pve_list_nodes lists the right ones"
            .to_owned()
    } else if lower.contains("timed out") && is_content(call.path) {
        let storage = call.path.split('/').nth(4).unwrap_or_default();
        format!(
            "listing storage {storage} took longer than the 30 s that a node gives another: \
             narrow it with `content` or `vmid`"
        )
    } else if lower.contains("timed out") {
        format!("{to} did not answer within the 30 s that a node gives another")
    } else if lower.contains("broken pipe") {
        format!("the worker on {to} died over its answer; what was asked for may have been done")
    } else {
        format!("{to} seems to be down or cut off: pve_cluster_status shows")
    };
    Error::new(Code::ProxyFailed, format!("{} could not reach {to}: {status} {text}", call.host))
        .hint(hint)
}

/// `/nodes/N/storage/S/content`.
pub(crate) fn is_content(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    parts.next() == Some("nodes")
        && parts.nth(1) == Some("storage")
        && parts.nth(1) == Some("content")
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
