//! Aliases, IP sets and security groups.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    place::{ClusterOrGuest, Place, checked},
    uses::{self, to_json},
};
use crate::{
    Code, Error, Result,
    pve::{Params, loose},
    render::{Answer, Page, Table},
    safety::{
        Method,
        impact::firewall::{What, in_words},
    },
    tools::{
        Ctx,
        across::{members, named, same, same_digest, unchanged},
        change::Asked,
        outcome::{Did, switch, told},
    },
};

/// Arguments of `pve_firewall_aliases` and `pve_firewall_ipsets`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct List {
    #[serde(flatten)]
    scope: ClusterOrGuest,
    name: Option<String>,
}

fn everything() -> Page {
    Page { limit: usize::MAX, ..Page::new(None, None) }
}

/// `pve_firewall_aliases`
pub async fn aliases(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let all = ctx.get(&place.below(&["aliases"])).await?;
    if let Some(name) = &args.name {
        let alias = find(&all, name, "alias", &place)?;
        let uses = uses::of(ctx, What::Alias, name, args.scope.vmid).await;
        let answer = Answer::new(json!({"alias": members(alias, &[]), "uses": to_json(&uses)}));
        let heading = format!("alias {name}, in {} rules and IP sets", uses.found.len());
        return Ok(answer.heading(heading).untrusted(&["alias", "uses"]));
    }
    let rows = loose::rows(&all);
    let table = Table::new(["name", "cidr", "comment"]).fill(rows.iter(), everything(), |a| {
        ["name", "cidr", "comment"].map(|key| loose::text(a, key).into()).to_vec()
    });
    let digest = rows.iter().find_map(|a| loose::text(a, "digest"));
    Ok(table
        .into_answer(&format!("aliases of {}", place.name))
        .with("digest", digest)
        .untrusted(&["rows"]))
}

/// `pve_firewall_ipsets`
pub async fn ipsets(ctx: Ctx<'_>, args: List) -> Result<Answer> {
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let all = ctx.get(&place.below(&["ipset"])).await?;
    if let Some(name) = &args.name {
        let set = find(&all, name, "IP set", &place)?;
        let entries = ctx.get(&place.below(&["ipset", name])).await?;
        let uses = uses::of(ctx, What::IpSet, name, args.scope.vmid).await;
        let answer = Answer::new(json!({
            "ipset": members(set, &["digest"]),
            "entries": entry_rows(&entries),
            "uses": to_json(&uses),
            "digest": loose::rows(&entries).iter().find_map(|e| loose::text(e, "digest")),
        }));
        let heading = format!(
            "IP set {name}: {} entries, in {} rules",
            loose::rows(&entries).len(),
            uses.found.len()
        );
        return Ok(answer.heading(heading).untrusted(&["ipset", "entries", "uses"]));
    }
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for set in loose::rows(&all) {
        let Some(name) = loose::text(set, "name") else { continue };
        let entries = ctx.get(&place.below(&["ipset", &name])).await;
        let shown = match &entries {
            Ok(entries) => Value::from(short(entries)),
            Err(error) => {
                missing.push(format!("IP set {name}: {}", error.message));
                Value::Null
            }
        };
        let count = entries.ok().map(|e| loose::rows(&e).len());
        let comment = loose::text(set, "comment");
        rows.push(vec![name.into(), json!(count), shown, comment.into()]);
    }
    let table = Table::new(["name", "entries", "cidrs", "comment"])
        .fill(rows.into_iter(), everything(), |row| row)
        .missing(missing);
    Ok(table.into_answer(&format!("IP sets of {}", place.name)).untrusted(&["rows"]))
}

fn entry_rows(entries: &Value) -> Vec<Value> {
    loose::rows(entries).iter().map(|e| members(e, &["digest"])).collect()
}

/// The first entries of a set; `!` before one that is left out of it.
fn short(entries: &Value) -> String {
    const SHOWN: usize = 20;
    let rows = loose::rows(entries);
    let mut text: Vec<String> = rows
        .iter()
        .take(SHOWN)
        .filter_map(|e| {
            let not = if loose::flag(e, "nomatch") { "!" } else { "" };
            Some(format!("{not}{}", loose::text(e, "cidr")?))
        })
        .collect();
    if rows.len() > SHOWN {
        text.push(format!("… {} more", rows.len() - SHOWN));
    }
    text.join(" ")
}

fn find<'v>(all: &'v Value, name: &str, kind: &str, place: &Place) -> Result<&'v Value> {
    named(all, "name", name).ok_or_else(|| {
        let names: Vec<String> =
            loose::rows(all).iter().filter_map(|a| loose::text(a, "name")).collect();
        Error::new(Code::NotFound, format!("{} has no {kind} {name:?}", place.name)).hint(
            if names.is_empty() {
                "there is none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            },
        )
    })
}

/// Arguments of `pve_firewall_alias_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AliasSet {
    #[serde(flatten)]
    scope: ClusterOrGuest,
    name: String,
    cidr: Option<String>,
    comment: Option<String>,
    rename: Option<String>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_alias_set`
pub async fn alias_set(ctx: Ctx<'_>, args: AliasSet) -> Result<Answer> {
    let name = checked("name", &args.name, 64)?;
    if let Some(cidr) = &args.cidr
        && !is_address(cidr)
    {
        return Err(Error::argument(format!("argument `cidr` cannot be {cidr:?}"))
            .hint("an address or a network, as 192.0.2.7 or 192.0.2.0/24")
            .with("argument", "cidr"));
    }
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let all = ctx.fresh(&place.below(&["aliases"]), Params::new()).await?;
    let now = named(&all, "name", name);
    let what = format!("alias {name} of {}", place.name);
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let Some(now) = now else {
        if args.rename.is_some() {
            return Err(Error::new(Code::NotFound, format!("there is no {what} to rename")));
        }
        let cidr = args
            .cidr
            .ok_or_else(|| Error::argument("a new alias needs `cidr`").with("argument", "cidr"))?;
        let params =
            Params::new().with("name", name).with("cidr", cidr).with_some("comment", args.comment);
        let done =
            ctx.submit(place.operation(Method::Post, &["aliases"], params)?, &args.asked).await?;
        let after = alias_now(ctx, &place, name);
        return Ok(told(done, Value::Null, after, what).await.with("did", did.as_str()));
    };
    let before = members(now, &["digest", "ipversion"]);
    // The API wants the address in every update.
    let cidr = args.cidr.or_else(|| loose::text(now, "cidr")).unwrap_or_default();
    let comment = args.comment.or_else(|| loose::text(now, "comment"));
    let idle = args.rename.as_deref().is_none_or(|r| r == name)
        && same(now.get("cidr"), &cidr)
        && same(now.get("comment"), comment.as_deref().unwrap_or_default());
    if idle {
        return Ok(unchanged(before));
    }
    if let Some(rename) = &args.rename {
        checked("rename", rename, 64)?;
    }
    let digest =
        same_digest(args.digest, loose::text(now, "digest"), &what, "pve_firewall_aliases")?;
    let uses = uses::of(ctx, What::Alias, name, args.scope.vmid).await;
    let params = Params::new()
        .with("cidr", cidr)
        .with_some("comment", comment)
        .with_some("rename", args.rename.as_deref())
        .with_some("digest", digest);
    let operation = place.operation(Method::Put, &["aliases", name], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let new_name = args.rename.as_deref().unwrap_or(name).to_owned();
    let after = alias_now(ctx, &place, &new_name);
    let answer = told(done, before, after, what).await;
    Ok(answer.with("did", did.as_str()).with("uses", to_json(&uses)))
}

async fn alias_now(ctx: Ctx<'_>, place: &Place, name: &str) -> Value {
    let all = ctx.fresh(&place.below(&["aliases"]), Params::new()).await;
    all.ok()
        .and_then(|all| named(&all, "name", name).map(|a| members(a, &["ipversion"])))
        .unwrap_or(Value::Null)
}

fn is_address(text: &str) -> bool {
    text.parse::<ipnet::IpNet>().is_ok() || text.parse::<std::net::IpAddr>().is_ok()
}

/// Arguments of `pve_firewall_alias_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AliasDelete {
    #[serde(flatten)]
    scope: ClusterOrGuest,
    name: String,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_alias_delete`
pub async fn alias_delete(ctx: Ctx<'_>, args: AliasDelete) -> Result<Answer> {
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let all = ctx.fresh(&place.below(&["aliases"]), Params::new()).await?;
    let now = find(&all, &args.name, "alias", &place)?;
    let what = format!("alias {} of {}", args.name, place.name);
    let digest =
        same_digest(args.digest, loose::text(now, "digest"), &what, "pve_firewall_aliases")?;
    let uses = uses::of(ctx, What::Alias, &args.name, args.scope.vmid).await;
    let params = Params::new().with_some("digest", digest);
    let operation = place.operation(Method::Delete, &["aliases", &args.name], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let before = members(now, &["digest", "ipversion"]);
    let answer = told(done, before, async { Value::Null }, what).await;
    Ok(broken(answer.with("uses", to_json(&uses)), uses.found.len()))
}

/// What uses a thing that is gone breaks.
fn broken(answer: Answer, uses: usize) -> Answer {
    if uses == 0 {
        return answer;
    }
    answer.with("warning", format!("{uses} rules or IP sets name it; such a rule no longer works"))
}

/// Arguments of `pve_firewall_ipset_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct IpsetSet {
    #[serde(flatten)]
    scope: ClusterOrGuest,
    name: String,
    /// One entry.
    cidr: Option<String>,
    nomatch: Option<bool>,
    comment: Option<String>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_ipset_set`
pub async fn ipset_set(ctx: Ctx<'_>, args: IpsetSet) -> Result<Answer> {
    let name = checked("name", &args.name, 64)?;
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let all = ctx.fresh(&place.below(&["ipset"]), Params::new()).await?;
    if let Some(cidr) = args.cidr.clone() {
        find(&all, name, "IP set", &place)?;
        return entry_set(ctx, &place, &cidr, args).await;
    }
    if args.nomatch.is_some() {
        return Err(Error::argument("`nomatch` belongs to an entry: give its `cidr`")
            .with("argument", "nomatch"));
    }
    let now = named(&all, "name", name);
    let what = format!("IP set {name} of {}", place.name);
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let before = now.map_or(Value::Null, |n| members(n, &["digest"]));
    let mut params = Params::new().with("name", name).with_some("comment", args.comment.as_deref());
    if let Some(now) = now {
        let comment = args.comment.as_deref().unwrap_or_default();
        if args.comment.is_none() || same(now.get("comment"), comment) {
            return Ok(unchanged(before));
        }
        let digest =
            same_digest(args.digest, loose::text(now, "digest"), &what, "pve_firewall_ipsets")?;
        // A new name that is the old one is how the API changes a comment.
        params = params.with("rename", name).with_some("digest", digest);
    }
    let operation = place.operation(Method::Post, &["ipset"], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let all = ctx.fresh(&place.below(&["ipset"]), Params::new()).await;
        all.ok()
            .and_then(|all| named(&all, "name", name).map(|s| members(s, &[])))
            .unwrap_or(Value::Null)
    };
    Ok(told(done, before, after, what).await.with("did", did.as_str()))
}

async fn entry_set(ctx: Ctx<'_>, place: &Place, cidr: &str, args: IpsetSet) -> Result<Answer> {
    let name = &args.name;
    let entries = ctx.fresh(&place.below(&["ipset", name]), Params::new()).await?;
    let now = named(&entries, "cidr", cidr);
    let what = format!("{cidr} in IP set {name} of {}", place.name);
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let uses = uses::of(ctx, What::IpSet, name, args.scope.vmid).await;
    let before = now.map_or(Value::Null, |n| members(n, &["digest"]));
    let params = switch(
        Params::new().with_some("comment", args.comment.as_deref()),
        "nomatch",
        args.nomatch,
    );
    let operation = if let Some(now) = now {
        let idle = args.nomatch.is_none_or(|n| n == loose::flag(now, "nomatch"))
            && args.comment.as_deref().is_none_or(|c| same(now.get("comment"), c));
        if idle {
            return Ok(unchanged(before));
        }
        let digest =
            same_digest(args.digest, loose::text(now, "digest"), &what, "pve_firewall_ipsets")?;
        place.operation(Method::Put, &["ipset", name, cidr], params.with_some("digest", digest))?
    } else {
        place.operation(Method::Post, &["ipset", name], params.with("cidr", cidr))?
    };
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let entries = ctx.fresh(&place.below(&["ipset", name]), Params::new()).await;
        entries
            .ok()
            .and_then(|e| named(&e, "cidr", cidr).map(|e| members(e, &["digest"])))
            .unwrap_or(Value::Null)
    };
    let answer = told(done, before, after, what).await;
    Ok(answer.with("did", did.as_str()).with("uses", to_json(&uses)))
}

/// Arguments of `pve_firewall_ipset_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct IpsetDelete {
    #[serde(flatten)]
    scope: ClusterOrGuest,
    name: String,
    /// One entry.
    cidr: Option<String>,
    /// Also a set that has entries.
    force: Option<bool>,
    digest: Option<String>,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_ipset_delete`
pub async fn ipset_delete(ctx: Ctx<'_>, args: IpsetDelete) -> Result<Answer> {
    let place = Place::cluster_or_guest(ctx, &args.scope).await?;
    let name = &args.name;
    let all = ctx.fresh(&place.below(&["ipset"]), Params::new()).await?;
    let set = find(&all, name, "IP set", &place)?;
    let entries = ctx.fresh(&place.below(&["ipset", name]), Params::new()).await?;
    let uses = uses::of(ctx, What::IpSet, name, args.scope.vmid).await;
    let (operation, before, what) = if let Some(cidr) = &args.cidr {
        let now = named(&entries, "cidr", cidr).ok_or_else(|| {
            Error::new(Code::NotFound, format!("IP set {name} has no entry {cidr:?}"))
                .hint(format!("it has: {}", short(&entries)))
        })?;
        let what = format!("{cidr} in IP set {name} of {}", place.name);
        let digest =
            same_digest(args.digest, loose::text(now, "digest"), &what, "pve_firewall_ipsets")?;
        let params = Params::new().with_some("digest", digest);
        (
            place.operation(Method::Delete, &["ipset", name, cidr], params)?,
            members(now, &["digest"]),
            what,
        )
    } else {
        let held = loose::rows(&entries).len();
        let what = format!("IP set {name} of {}", place.name);
        if held > 0 && args.force != Some(true) {
            return Err(Error::new(Code::Conflict, format!("{what} has {held} entries"))
                .hint("`force` deletes them with it")
                .with("entries", entry_rows(&entries)));
        }
        let params = switch(Params::new(), "force", args.force.filter(|f| *f));
        let before = json!({"ipset": members(set, &["digest"]), "entries": entry_rows(&entries)});
        (place.operation(Method::Delete, &["ipset", name], params)?, before, what)
    };
    let whole = args.cidr.is_none();
    let done = ctx.submit(operation, &args.asked).await?;
    let answer = told(done, before, async { Value::Null }, what).await.with("uses", to_json(&uses));
    Ok(if whole { broken(answer, uses.found.len()) } else { answer })
}

/// Arguments of `pve_firewall_group_set`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GroupSet {
    group: String,
    comment: Option<String>,
    rename: Option<String>,
    digest: Option<String>,
    must_exist: Option<bool>,
    must_not_exist: Option<bool>,
    #[serde(flatten)]
    asked: Asked,
}

const GROUPS: [&str; 3] = ["cluster", "firewall", "groups"];

/// `pve_firewall_group_set`
pub async fn group_set(ctx: Ctx<'_>, args: GroupSet) -> Result<Answer> {
    let group = checked("group", &args.group, 18)?;
    let all = ctx.fresh(&GROUPS, Params::new()).await?;
    let now = named(&all, "group", group);
    let what = format!("security group {group}");
    let did = Did::of(now.is_some(), args.must_exist, args.must_not_exist, &what)?;
    let before = now.map_or(Value::Null, |n| members(n, &["digest"]));
    let new_name = args.rename.as_deref().unwrap_or(group);
    checked("rename", new_name, 18)?;
    let mut params =
        Params::new().with("group", new_name).with_some("comment", args.comment.as_deref());
    match now {
        Some(now) => {
            let idle = new_name == group
                && args.comment.as_deref().is_none_or(|c| same(now.get("comment"), c));
            if idle {
                return Ok(unchanged(before));
            }
            let digest = same_digest(
                args.digest,
                loose::text(now, "digest"),
                &what,
                "pve_firewall_options",
            )?;
            params = params.with("rename", group).with_some("digest", digest);
            if args.comment.is_none() {
                params = params.with_some("comment", loose::text(now, "comment"));
            }
        }
        None if args.rename.is_some() => {
            return Err(Error::new(Code::NotFound, format!("there is no {what} to rename")));
        }
        None => {}
    }
    let uses = match now {
        Some(_) => to_json(&uses::of(ctx, What::Group, group, None).await),
        None => Value::Null,
    };
    let operation = Place::cluster().operation(Method::Post, &["groups"], params)?;
    let done = ctx.submit(operation, &args.asked).await?;
    let after = async {
        let all = ctx.fresh(&GROUPS, Params::new()).await;
        all.ok()
            .and_then(|all| named(&all, "group", new_name).map(|g| members(g, &[])))
            .unwrap_or(Value::Null)
    };
    let answer = told(done, before, after, what).await.with("did", did.as_str());
    Ok(if uses.is_null() { answer } else { answer.with("uses", uses) })
}

/// Arguments of `pve_firewall_group_delete`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GroupDelete {
    group: String,
    #[serde(flatten)]
    asked: Asked,
}

/// `pve_firewall_group_delete`
pub async fn group_delete(ctx: Ctx<'_>, args: GroupDelete) -> Result<Answer> {
    let group = &args.group;
    let all = ctx.fresh(&GROUPS, Params::new()).await?;
    let what = format!("security group {group}");
    let now = named(&all, "group", group)
        .ok_or_else(|| Error::new(Code::NotFound, format!("there is no {what}")))?;
    let rules = ctx.fresh(&Place::of_group(group).rules(None), Params::new()).await?;
    let rules: Vec<String> = loose::rows(&rules).iter().map(in_words).collect();
    if !rules.is_empty() {
        return Err(Error::new(Code::Conflict, format!("{what} has {} rules", rules.len()))
            .hint("delete its rules first: pve_firewall_rule_delete with `group`")
            .with("rules", rules));
    }
    let uses = uses::of(ctx, What::Group, group, None).await;
    let operation =
        Place::cluster().operation(Method::Delete, &["groups", group], Params::new())?;
    let done = ctx.submit(operation, &args.asked).await?;
    let answer = told(done, members(now, &["digest"]), async { Value::Null }, what).await;
    Ok(broken(answer.with("uses", to_json(&uses)), uses.found.len()))
}
