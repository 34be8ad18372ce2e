//! Firewall rules. A rule is known by its place alone, so that a change by
//! place has to say which list of rules the caller saw: its digest.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::{Place, Scope};
use crate::{
    Code, Error, Result,
    pve::{ApiPath, Params, loose},
    render::{Answer, Page, Table},
    safety::{Method, Operation},
    tools::{
        Ctx,
        across::{members, same, same_digest, unchanged},
        change::Asked,
        outcome::{switch, told},
    },
};

/// Arguments of `pve_firewall_rules`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    #[serde(flatten)]
    scope: Scope,
}

/// The columns of a rule, with the names that the API gives them.
const COLUMNS: [(&str, &str); 14] = [
    ("pos", "pos"),
    ("enable", "enable"),
    ("type", "type"),
    ("action", "action"),
    ("macro", "macro"),
    ("source", "source"),
    ("dest", "dest"),
    ("proto", "proto"),
    ("dport", "dport"),
    ("sport", "sport"),
    ("icmp-type", "icmp_type"),
    ("iface", "iface"),
    ("log", "log"),
    ("comment", "comment"),
];

/// `pve_firewall_rules`
pub async fn list(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let place = Place::of(ctx, &args.scope).await?;
    let rules = ctx.get(&place.rules(None)).await.map_err(|e| missing(e, &place))?;
    let rows = loose::rows(&rules);
    let table = Table::new(COLUMNS.map(|(_, name)| name)).fill(
        rows.iter(),
        Page { limit: usize::MAX, ..Page::new(None, None) },
        |rule| {
            COLUMNS
                .iter()
                .map(|(key, _)| match *key {
                    "pos" => loose::int(rule, key).into(),
                    "enable" => loose::flag(rule, key).into(),
                    _ => loose::text(rule, key).into(),
                })
                .collect()
        },
    );
    let answer = table.into_answer(&format!("rules of {}", place.name));
    Ok(match rows.iter().find_map(|r| loose::text(r, "digest")) {
        Some(digest) => answer.with("digest", digest),
        None => answer,
    }
    .untrusted(&["rows"]))
}

/// A security group that is not there is an error of its own.
fn missing(error: Error, place: &Place) -> Error {
    if place.is_group() && error.message.contains("no such security group") {
        return Error::new(Code::NotFound, error.message.trim().to_owned())
            .hint("pve_firewall_options without arguments names the groups");
    }
    error
}

/// Directions of a rule.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    In,
    Out,
    Forward,
    Group,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Kind::In => "in",
            Kind::Out => "out",
            Kind::Forward => "forward",
            Kind::Group => "group",
        }
    }
}

/// Arguments of `pve_firewall_rule_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Set {
    #[serde(flatten)]
    scope: Scope,
    /// Of an existing rule; none makes a new one.
    #[schemars(range(min = 0))]
    pos: Option<u64>,
    /// Needed with `pos`.
    digest: Option<String>,
    r#type: Option<Kind>,
    /// ACCEPT, DROP, REJECT or a group's name.
    action: Option<String>,
    enable: Option<bool>,
    source: Option<String>,
    dest: Option<String>,
    proto: Option<String>,
    dport: Option<String>,
    sport: Option<String>,
    r#macro: Option<String>,
    iface: Option<String>,
    icmp_type: Option<String>,
    log: Option<super::options::Level>,
    comment: Option<String>,
    /// Moves an existing one.
    #[schemars(range(min = 0))]
    moveto: Option<u64>,
    delete: Option<Vec<String>>,
    #[serde(flatten)]
    asked: Asked,
}

impl Set {
    /// The fields that are given, as the API names them.
    fn fields(&self) -> Params {
        let params = Params::new()
            .with_some("type", self.r#type.map(Kind::as_str))
            .with_some("action", self.action.as_deref())
            .with_some("source", self.source.as_deref())
            .with_some("dest", self.dest.as_deref())
            .with_some("proto", self.proto.as_deref())
            .with_some("dport", self.dport.as_deref())
            .with_some("sport", self.sport.as_deref())
            .with_some("macro", self.r#macro.as_deref())
            .with_some("iface", self.iface.as_deref())
            .with_some("icmp-type", self.icmp_type.as_deref())
            .with_some("log", self.log.map(super::options::Level::as_str))
            .with_some("comment", self.comment.as_deref());
        switch(params, "enable", self.enable)
    }
}

/// `pve_firewall_rule_set`
pub async fn set(ctx: Ctx<'_>, args: Set) -> Result<Answer> {
    let place = Place::of(ctx, &args.scope).await?;
    match args.pos {
        Some(pos) => update(ctx, &place, pos, args).await,
        None => create(ctx, &place, args).await,
    }
}

async fn create(ctx: Ctx<'_>, place: &Place, args: Set) -> Result<Answer> {
    if args.delete.is_some() {
        return Err(Error::argument("a new rule has nothing to delete").with("argument", "delete"));
    }
    for (name, given) in [("type", args.r#type.is_some()), ("action", args.action.is_some())] {
        if !given {
            return Err(Error::argument(format!("a new rule needs `{name}`"))
                .hint("to change a rule that is there, give its `pos` and the list's `digest`")
                .with("argument", name));
        }
    }
    let params =
        args.fields().with_some("pos", args.moveto).with_some("digest", args.digest.as_deref());
    let operation =
        Operation { method: Method::Post, path: ApiPath::of(&place.rules(None))?, params };
    let off = args.enable != Some(true);
    let at = args.moveto.unwrap_or(0);
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async { rule_at(ctx, place, at).await };
    let answer = told(done, Value::Null, after, format!("new rule of {}", place.name)).await;
    let answer = answer.with("did", "created");
    Ok(if off { answer.with("note", "the rule is off until `enable` is true") } else { answer })
}

async fn update(ctx: Ctx<'_>, place: &Place, pos: u64, args: Set) -> Result<Answer> {
    let fields = args.fields();
    let delete = args.delete.as_deref().unwrap_or_default();
    if args.moveto.is_some() && (!fields.is_empty() || !delete.is_empty()) {
        return Err(Error::argument("`moveto` moves a rule and changes nothing else of it")
            .hint("Proxmox drops what else is given with it; make two calls")
            .with("argument", "moveto"));
    }
    if args.moveto.is_none() && fields.is_empty() && delete.is_empty() {
        return Err(Error::argument("nothing to change: give a field, `moveto` or `delete`"));
    }
    if let Some(odd) = delete.iter().find(|d| !is_clearable(d)) {
        return Err(Error::argument(format!("argument `delete` names no field {odd:?}"))
            .hint("comment, dest, dport, icmp_type, iface, log, macro, proto, source, sport")
            .with("argument", "delete"));
    }
    let (before, digest) = seen(ctx, place, pos, args.digest, &args.asked).await?;
    let idle = args.moveto.is_none()
        && delete.iter().all(|d| before.get(d.replace('_', "-")).is_none())
        && fields.iter().all(|(k, v)| same(before.get(k), &v.values().join(",")));
    if idle || args.moveto == Some(pos) {
        return Ok(unchanged(before));
    }
    let mut params = fields.with_some("moveto", args.moveto).with_some("digest", digest);
    if !delete.is_empty() {
        params = params.with("delete", delete.join(",").replace('_', "-"));
    }
    let text = pos.to_string();
    let operation =
        Operation { method: Method::Put, path: ApiPath::of(&place.rules(Some(&text)))?, params };
    // A rule that moves down takes the place that opens when it leaves its own.
    let at = match args.moveto {
        Some(to) if to > pos => to - 1,
        Some(to) => to,
        None => pos,
    };
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async { rule_at(ctx, place, at).await };
    let answer = told(done, before, after, format!("rule {pos} of {}", place.name)).await;
    Ok(answer.with("did", if args.moveto.is_some() { "moved" } else { "updated" }))
}

fn is_clearable(name: &str) -> bool {
    [
        "comment",
        "dest",
        "dport",
        "icmp_type",
        "icmp-type",
        "iface",
        "log",
        "macro",
        "proto",
        "source",
        "sport",
    ]
    .contains(&name)
}

/// Arguments of `pve_firewall_rule_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Delete {
    #[serde(flatten)]
    scope: Scope,
    #[schemars(range(min = 0))]
    pos: u64,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_rule_delete`
pub async fn delete(ctx: Ctx<'_>, args: Delete) -> Result<Answer> {
    let place = Place::of(ctx, &args.scope).await?;
    let (before, digest) = seen(ctx, &place, args.pos, args.digest, &args.asked).await?;
    let text = args.pos.to_string();
    let operation = Operation {
        method: Method::Delete,
        path: ApiPath::of(&place.rules(Some(&text)))?,
        params: Params::new().with_some("digest", digest),
    };
    let done = ctx.submit(operation, &args.asked).await?;
    let left = async {
        let rules = ctx.fresh(&place.rules(None), Params::new()).await;
        rules.map_or(Value::Null, |rules| json!({"rules_left": loose::rows(&rules).len()}))
    };
    Ok(told(done, before, left, format!("rule {} of {}", args.pos, place.name)).await)
}

/// The rule at a place and the digest to send, when the caller's list is still
/// the present one. Without the caller's digest only a dry run goes on: a place
/// alone may by now be another rule's.
async fn seen(
    ctx: Ctx<'_>,
    place: &Place,
    pos: u64,
    digest: Option<String>,
    asked: &Asked,
) -> Result<(Value, Option<String>)> {
    let rules =
        ctx.fresh(&place.rules(None), Params::new()).await.map_err(|e| missing(e, place))?;
    let rows = loose::rows(&rules);
    let now = rows.iter().find_map(|r| loose::text(r, "digest"));
    let found = rows.iter().find(|r| loose::uint(r, "pos") == Some(pos)).ok_or_else(|| {
        Error::new(Code::NotFound, format!("{} has no rule at place {pos}", place.name))
            .hint(format!("it has {} rules; pve_firewall_rules lists them", rows.len()))
    })?;
    let rule = members(found, &["pos", "digest"]);
    if digest.is_none() && asked.dry_run != Some(true) {
        return Err(Error::argument("argument `digest` is missing")
            .hint("a place alone may be another rule's by now: see whether `rule` is the one you mean, and give the `digest` that stood with it")
            .with("argument", "digest")
            .with("rule", rule)
            .with("digest", now));
    }
    let what = format!("the list of rules of {}", place.name);
    let digest = same_digest(digest, now, &what, "pve_firewall_rules")?;
    Ok((rule, digest))
}

async fn rule_at(ctx: Ctx<'_>, place: &Place, pos: u64) -> Value {
    let Ok(rules) = ctx.fresh(&place.rules(None), Params::new()).await else { return Value::Null };
    let found = loose::rows(&rules).iter().find(|r| loose::uint(r, "pos") == Some(pos));
    found.map_or(Value::Null, |r| members(r, &["digest"]))
}
