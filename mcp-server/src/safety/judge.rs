//! The checks that need no caller: from the endpoint to the node list (1 to 8).

use serde_json::{Value, json};

use super::{
    Class, Classification, Facts, Flag, Method, Operation, State,
    api::API,
    class::classify,
    conditions::Call,
    guests::{self, Touched},
    lockout, nodes,
};
use crate::{
    Code, Error, Result,
    config::{Config, Mode},
    pve::{ApiPath, Params, Vmid},
};

/// What the rules and the configuration make of an operation.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Class, categories and reasons.
    pub class: Classification,
    /// The guests that it touches.
    pub touched: Touched,
    /// The first of the checks that refuses.
    pub refusal: Option<Error>,
}

impl Judgement {
    /// The text that `confirm` has to be, where one is needed.
    #[must_use]
    pub fn confirm<'a>(&self, path: &'a ApiPath) -> Option<&'a str> {
        (self.class.class == Class::Critical && self.class.never.is_none()).then(|| path.as_str())
    }
}

/// Runs the checks over what is known so far.
#[must_use]
pub fn judge(op: &Operation, config: &Config, facts: &Facts) -> Judgement {
    let mut class = classify(op, facts);
    protect(&op.path, config, &mut class);
    for path in other_names(op) {
        protect(&path, config, &mut class);
    }
    let endpoint = API.find(&op.path);
    let known = endpoint.and_then(|e| e.action(op.method).map(|a| (e, a)));
    let params = class.params.clone().unwrap_or_else(|_| op.params.clone());
    let call = known.map(|(endpoint, action)| Call {
        method: op.method,
        path: &op.path,
        endpoint,
        action,
        params: &params,
        facts,
    });
    let touched = match &call {
        Some(call) => {
            let limited = config.allowed_vmids.is_some() || !config.denied_vmids.is_empty();
            guests::touched(call, limited)
        }
        None => guests_of_unknown(op),
    };
    let refusal = check(op, config, &class, call.as_ref(), &touched).err();
    Judgement { class, touched, refusal }
}

fn check(
    op: &Operation,
    config: &Config,
    class: &Classification,
    call: Option<&Call<'_>>,
    touched: &Touched,
) -> Result<()> {
    if let Some(never) = &class.never {
        return Err(never.clone());
    }
    if let Err(error) = &class.params {
        return Err(error.clone());
    }
    if class.class == Class::Read {
        return hidden_from_reads(op, config);
    }
    if config.mode == Mode::ReadOnly {
        return Err(Error::new(
            Code::ReadOnly,
            format!("this is {}, and the server is read-only", class.class_text()),
        )
        .hint("the owner of this server allows changes with PROXMOX_MODE=write")
        .with("class", class.class_text()));
    }
    match call {
        Some(call) => lockout::check(config, call, class.class, touched)?,
        None => lockout::check_unknown(config, op)?,
    }
    guests::check(config, touched)?;
    flags(config, class)?;
    match call {
        Some(call) => nodes::check(config, call),
        None => nodes::check_unknown(config, &op.path),
    }
}

/// Each category needs its flag.
pub(super) fn flags(config: &Config, class: &Classification) -> Result<()> {
    let off: Vec<Flag> =
        class.categories.iter().copied().filter(|f| !config.flags.is_on(*f)).collect();
    let Some(first) = off.first() else { return Ok(()) };
    let variables: Vec<&str> = off.iter().map(|f| f.variable()).collect();
    let file = config.critical_file.display().to_string();
    Err(Error::new(
        Code::FlagDisabled,
        format!("{} is off: {}", variables.join(" and "), first.explanation().trim_end_matches('.')),
    )
    .hint(format!(
        "the owner of this server turns it on with {}=enabled in {file}, and starts the server anew",
        first.variable()
    ))
    .with("flag", first.variable())
    .with("flags", variables)
    .with("file", file)
    .with("class", class.class_text())
    .with("category", first.category()))
}

/// A change on a path of `PROXMOX_EXTRA_PROTECTED_PATHS` is CRITICAL in addition.
pub(super) fn protect(path: &ApiPath, config: &Config, class: &mut Classification) {
    if class.class == Class::Read {
        return;
    }
    for pattern in &config.extra_protected {
        if matches(pattern, path) {
            let reason = format!("{pattern} is in PROXMOX_EXTRA_PROTECTED_PATHS");
            class.critical(Flag::CustomProtected, reason);
            return;
        }
    }
}

/// Other paths to the object of a call: pools that a parameter names, and HA ids in both forms.
fn other_names(op: &Operation) -> Vec<ApiPath> {
    let segments: Vec<&str> = op.path.segments().collect();
    let path = |segments: &[&str]| ApiPath::of(segments).ok();
    match segments.as_slice() {
        ["pools"] => {
            let named = ["poolid", "pools"].iter().flat_map(|name| op.params.members(name));
            // A nested pool is below the one that it is in.
            named
                .filter_map(|pool| {
                    let parts: Vec<&str> =
                        std::iter::once("pools").chain(pool.split('/')).collect();
                    path(&parts)
                })
                .collect()
        }
        ["cluster", "ha", "resources", rest @ ..] => {
            let given = op.params.text("sid");
            let sid = rest.first().copied().or(given).unwrap_or_default();
            let number = sid.rsplit(':').next().unwrap_or_default();
            let below = rest.get(1..).unwrap_or_default();
            ["vm:", "ct:", ""]
                .iter()
                .filter_map(|kind| {
                    let sid = format!("{kind}{number}");
                    let mut all = vec!["cluster", "ha", "resources", sid.as_str()];
                    all.extend(below);
                    path(&all)
                })
                .filter(|_| !number.is_empty())
                .collect()
        }
        // A volume is named with its storage or without.
        ["nodes", node, "storage", storage, "content", volume] => {
            let other = match volume.split_once(':') {
                Some((_, name)) => name.to_owned(),
                None => format!("{storage}:{volume}"),
            };
            path(&["nodes", node, "storage", storage, "content", &other]).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a pattern, `*` for one segment and `**` for the rest, fits a path.
fn matches(pattern: &str, path: &ApiPath) -> bool {
    let pattern = pattern.trim().trim_matches('/');
    let pattern: Vec<&str> =
        pattern.strip_prefix("api2/json/").unwrap_or(pattern).split('/').collect();
    // A volume is one segment of the path; a pattern may name it with its slash.
    let whole: Vec<&str> = path.segments().collect();
    let split: Vec<&str> = path.as_str().split('/').skip(1).collect();
    fits(&pattern, &whole) || fits(&pattern, &split)
}

fn fits(pattern: &[&str], segments: &[&str]) -> bool {
    for (place, part) in pattern.iter().enumerate() {
        if *part == "**" {
            return true;
        }
        match segments.get(place) {
            // localhost is whichever node we are connected to.
            Some(segment) if *part == "*" || part == segment => {}
            Some(&"localhost") if place == 1 && segments.first() == Some(&"nodes") => {}
            _ => return false,
        }
    }
    pattern.len() == segments.len()
}

/// `PROXMOX_READ_VMIDS=allowed` hides the other guests.
fn hidden_from_reads(op: &Operation, config: &Config) -> Result<()> {
    let segments: Vec<&str> = op.path.segments().collect();
    let vmid = match segments.as_slice() {
        ["nodes", _, "qemu" | "lxc", vmid, ..] => Vmid::parse(vmid).ok(),
        _ => None,
    };
    match vmid {
        Some(vmid) if config.read_allowed_only && !sees(config, vmid) => {
            Err(Error::new(Code::VmidDenied, format!("guest {vmid} is hidden from reads"))
                .hint("PROXMOX_READ_VMIDS=allowed shows only the guests of PROXMOX_ALLOWED_VMIDS")
                .with("vmid", vmid.get()))
        }
        _ => Ok(()),
    }
}

fn sees(config: &Config, vmid: Vmid) -> bool {
    config.allowed_vmids.as_ref().is_none_or(|set| set.contains(vmid))
        && !config.denied_vmids.contains(vmid)
}

/// What an endpoint that is not known touches cannot be known either.
fn guests_of_unknown(op: &Operation) -> Touched {
    let segments: Vec<&str> = op.path.segments().collect();
    let vmids = match segments.as_slice() {
        ["nodes", _, "qemu" | "lxc", vmid, ..] => Vmid::parse(vmid).into_iter().collect(),
        _ => std::collections::BTreeSet::new(),
    };
    Touched {
        vmids,
        open: Some("this version does not know the endpoint".to_owned()),
        ..Touched::default()
    }
}

/// Everything that `pve_classify_operation` answers.
#[derive(Debug, Clone)]
pub struct Explanation {
    path: Option<ApiPath>,
    judgement: Option<Judgement>,
    refusal: Option<Error>,
}

impl Explanation {
    /// The answer: `path`, `class`, `category`, `categories`, `flag`, `flags`,
    /// `allowed`, `confirm`, `reasons`, `refusal`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let class = self.judgement.as_ref().map(|j| &j.class);
        let flags: Vec<Flag> =
            class.map(|c| c.categories.iter().copied().collect()).unwrap_or_default();
        let first = flags.first();
        let confirm =
            self.judgement.as_ref().zip(self.path.as_ref()).and_then(|(j, p)| j.confirm(p));
        let refusal = self.refusal.as_ref().and_then(|e| e.to_json().get("error").cloned());
        json!({
            "path": self.path.as_ref().map(ApiPath::as_str),
            "class": class.map(Classification::class_text),
            "category": first.map(|f| f.category()),
            "categories": flags.iter().map(|f| f.category()).collect::<Vec<_>>(),
            "flag": first.map(|f| f.variable()),
            "flags": flags.iter().map(|f| f.variable()).collect::<Vec<_>>(),
            "allowed": self.refusal.is_none(),
            "confirm": confirm,
            "reasons": class.map(|c| c.reasons.clone()).unwrap_or_default(),
            "may_cut_access": class.is_some_and(|c| c.may_cut_access),
            "refusal": refusal,
        })
    }
}

/// Says what a call would be and whether checks 1 to 8 let it through, for any
/// input: a method, path or parameters that cannot be read are a refusal in
/// the answer, not an error.
pub async fn explain(
    method: &str,
    path: &str,
    params: &Value,
    config: &Config,
    state: &impl State,
) -> Explanation {
    let path = match ApiPath::parse(path) {
        Ok(path) => path,
        Err(error) => return Explanation { path: None, judgement: None, refusal: Some(error) },
    };
    let method = match Method::read(method) {
        Ok(method) => method,
        Err(error) => {
            return Explanation { path: Some(path), judgement: None, refusal: Some(error) };
        }
    };
    let (params, bad) = match Params::from_json(params) {
        Ok(params) => (params, None),
        Err(error) => (Params::new(), Some(error)),
    };
    let op = Operation { method, path, params };
    let mut facts = Facts::default();
    let judgement = facts.settle(state, |facts| judge(&op, config, facts)).await;
    let refusal = bad.or_else(|| judgement.refusal.clone());
    Explanation { path: Some(op.path), judgement: Some(judgement), refusal }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
