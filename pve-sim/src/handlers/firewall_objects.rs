//! What firewall rules refer to: aliases and IP sets, of the cluster and of guests.

use serde_json::{Map, Value, json};

use super::Route;
use super::firewall::{address, check_digest, firewall, firewall_mut};
use crate::api::call::{Answer, Call, done};
use crate::api::failure::Failure;
use crate::api::params;
use crate::state::firewall::{Firewall, IpSet};

macro_rules! object_routes {
    ($($base:literal)+) => { &[$(
        ("GET", concat!($base, "/aliases"), aliases),
        ("POST", concat!($base, "/aliases"), add_alias),
        ("GET", concat!($base, "/aliases/{name}"), alias),
        ("PUT", concat!($base, "/aliases/{name}"), set_alias),
        ("DELETE", concat!($base, "/aliases/{name}"), delete_alias),
        ("GET", concat!($base, "/ipset"), ipsets),
        ("POST", concat!($base, "/ipset"), add_ipset),
        ("GET", concat!($base, "/ipset/{name}"), ipset),
        ("POST", concat!($base, "/ipset/{name}"), add_entry),
        ("DELETE", concat!($base, "/ipset/{name}"), delete_ipset),
        ("GET", concat!($base, "/ipset/{name}/{cidr}"), entry),
        ("PUT", concat!($base, "/ipset/{name}/{cidr}"), set_entry),
        ("DELETE", concat!($base, "/ipset/{name}/{cidr}"), delete_entry),
        ("GET", concat!($base, "/refs"), refs),
    )+] };
}

/// Aliases, IP sets and what can be referred to.
pub(crate) const ROUTES: &[Route] = object_routes!(
    "/cluster/firewall"
    "/nodes/{node}/qemu/{vmid}/firewall"
    "/nodes/{node}/lxc/{vmid}/firewall"
);

fn show_alias(name: &str, alias: &Map<String, Value>) -> Map<String, Value> {
    let mut row = alias.clone();
    let six = alias.get("cidr").is_some_and(|a| params::text(a).contains(':'));
    row.insert("name".to_owned(), json!(name));
    row.insert("ipversion".to_owned(), json!(if six { 6 } else { 4 }));
    row
}

fn aliases(c: &mut Call<'_>) -> Answer {
    let fw = firewall(c);
    let row = |(name, alias): (&String, &Map<String, Value>)| {
        let mut row = show_alias(name, alias);
        row.insert("digest".to_owned(), json!(fw.digest("aliases")));
        Value::Object(row)
    };
    Ok(fw.aliases.iter().map(row).collect::<Value>().into())
}

fn no_alias(name: &str) -> Failure {
    Failure::parameter("name", format!("no such alias '{name}'"))
}

fn alias(c: &mut Call<'_>) -> Answer {
    let name = c.need("name");
    let fw = firewall(c);
    let found = fw.aliases.get(&name).ok_or_else(|| no_alias(&name))?;
    Ok(Value::Object(show_alias(&name, found)).into())
}

fn alias_of(c: &Call<'_>) -> Map<String, Value> {
    c.params
        .iter()
        .filter(|(n, _)| *n == "cidr" || *n == "comment")
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect()
}

fn add_alias(c: &mut Call<'_>) -> Answer {
    let (name, value) = (c.need("name"), alias_of(c));
    let fw = firewall_mut(c);
    if fw.aliases.contains_key(&name) {
        return Err(Failure::parameter("name", format!("alias '{name}' already exists")));
    }
    fw.aliases.insert(name, value);
    done()
}

fn set_alias(c: &mut Call<'_>) -> Answer {
    check_digest(c, "aliases")?;
    let (name, value, rename) = (c.need("name"), alias_of(c), c.text("rename"));
    let fw = firewall_mut(c);
    let old = fw.aliases.remove(&name).ok_or_else(|| no_alias(&name))?;
    let mut next = old;
    next.extend(value);
    fw.aliases.insert(rename.unwrap_or(name), next);
    done()
}

fn delete_alias(c: &mut Call<'_>) -> Answer {
    check_digest(c, "aliases")?;
    let name = c.need("name");
    firewall_mut(c).aliases.remove(&name).ok_or_else(|| no_alias(&name))?;
    done()
}

fn no_set(name: &str) -> Failure {
    Failure::died(format!("no such IPSet '{name}'"))
}

fn ipsets(c: &mut Call<'_>) -> Answer {
    let fw = firewall(c);
    let rows = fw.ipsets.iter().map(|(name, set)| {
        let mut row = Map::new();
        row.insert("name".to_owned(), json!(name));
        row.insert("digest".to_owned(), json!(fw.digest(name)));
        if !set.comment.is_empty() {
            row.insert("comment".to_owned(), json!(set.comment));
        }
        Value::Object(row)
    });
    Ok(rows.collect::<Value>().into())
}

fn add_ipset(c: &mut Call<'_>) -> Answer {
    let (name, comment, rename) =
        (c.need("name"), c.text("comment").unwrap_or_default(), c.text("rename"));
    let fw = firewall_mut(c);
    if let Some(old) = rename {
        let mut set = fw.ipsets.remove(&old).ok_or_else(|| no_set(&old))?;
        set.comment = comment;
        fw.ipsets.insert(name, set);
        return done();
    }
    if fw.ipsets.contains_key(&name) {
        return Err(Failure::parameter("name", format!("IPSet '{name}' already exists")));
    }
    fw.ipsets.insert(name, IpSet { comment, entries: Vec::new() });
    done()
}

fn ipset(c: &mut Call<'_>) -> Answer {
    let (fw, name) = (firewall(c), c.need("name"));
    let set = fw.ipsets.get(&name).ok_or_else(|| no_set(&name))?;
    let digest = fw.digest(&name);
    let rows = set.entries.iter().map(|e| {
        let mut row = e.clone();
        row.insert("digest".to_owned(), json!(digest));
        Value::Object(row)
    });
    Ok(rows.collect::<Value>().into())
}

fn delete_ipset(c: &mut Call<'_>) -> Answer {
    let (name, force) = (c.need("name"), c.flag("force"));
    let fw = firewall_mut(c);
    let set = fw.ipsets.get(&name).ok_or_else(|| no_set(&name))?;
    if !set.entries.is_empty() && !force {
        return Err(Failure::died(format!("IPSet '{name}' is not empty")));
    }
    fw.ipsets.remove(&name);
    done()
}

fn entry_of(c: &Call<'_>) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("cidr".to_owned(), json!(c.need("cidr")));
    if c.flag("nomatch") {
        entry.insert("nomatch".to_owned(), json!(1));
    }
    if let Some(comment) = c.text("comment") {
        entry.insert("comment".to_owned(), json!(comment));
    }
    entry
}

fn place(set: &IpSet, cidr: &str) -> Option<usize> {
    set.entries.iter().position(|e| e.get("cidr").is_some_and(|v| v == cidr))
}

fn add_entry(c: &mut Call<'_>) -> Answer {
    let (name, entry, cidr) = (c.need("name"), entry_of(c), c.need("cidr"));
    address(c, &cidr).map_err(|text| Failure::parameter("cidr", text))?;
    let set = firewall_mut(c).ipsets.get_mut(&name).ok_or_else(|| no_set(&name))?;
    if place(set, &cidr).is_some() {
        return Err(Failure::parameter("cidr", format!("address '{cidr}' already exists")));
    }
    set.entries.insert(0, entry);
    done()
}

fn no_entry() -> Failure {
    Failure::parameter("cidr", "no such IP/Network")
}

fn entry(c: &mut Call<'_>) -> Answer {
    let (fw, name, cidr) = (firewall(c), c.need("name"), c.need("cidr"));
    let set = fw.ipsets.get(&name).ok_or_else(|| no_set(&name))?;
    let found = place(set, &cidr).and_then(|at| set.entries.get(at)).ok_or_else(no_entry)?;
    let mut row = found.clone();
    row.insert("digest".to_owned(), json!(fw.digest(&name)));
    Ok(Value::Object(row).into())
}

fn set_entry(c: &mut Call<'_>) -> Answer {
    let (name, entry, cidr) = (c.need("name"), entry_of(c), c.need("cidr"));
    check_digest(c, &name)?;
    let set = firewall_mut(c).ipsets.get_mut(&name).ok_or_else(|| no_set(&name))?;
    let at = place(set, &cidr).ok_or_else(no_entry)?;
    if let Some(old) = set.entries.get_mut(at) {
        *old = entry;
    }
    done()
}

fn delete_entry(c: &mut Call<'_>) -> Answer {
    let (name, cidr) = (c.need("name"), c.need("cidr"));
    check_digest(c, &name)?;
    let set = firewall_mut(c).ipsets.get_mut(&name).ok_or_else(|| no_set(&name))?;
    let at = place(set, &cidr).ok_or_else(no_entry)?;
    set.entries.remove(at);
    done()
}

fn refs(c: &mut Call<'_>) -> Answer {
    let wanted = c.text("type");
    let mut rows = Vec::new();
    let cluster = c.state.firewalls.get("cluster").cloned().unwrap_or_default();
    let own = if c.text("vmid").is_some() { firewall(c) } else { Firewall::default() };
    for (scope, fw) in [("dc", &cluster), ("guest", &own)] {
        let sets = fw.ipsets.keys().map(|n| ("ipset", n, format!("+{n}")));
        let names = fw.aliases.keys().map(|n| ("alias", n, n.clone()));
        for (kind, name, reference) in names.chain(sets) {
            if wanted.as_deref().is_none_or(|w| w == kind) {
                rows.push(json!({"type": kind, "name": name, "ref": reference, "scope": scope}));
            }
        }
    }
    Ok(Value::Array(rows).into())
}
