//! Which firewall rules and IP sets name an alias, an IP set or a security group: the one search,
//! for what hangs on a change and for the answers of the tools.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Place, unseen_guests};
use crate::{
    Code, Error,
    pve::{GuestRef, Params, Vmid, loose, params::split_list},
    safety::{Facts, Method, State, conditions::Call, facts::no_such_endpoint, shown::quoted},
};

/// A kind of object that rules name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A name for an address or network.
    Alias,
    /// A set of addresses.
    IpSet,
    /// Rules under one name; the cluster alone has them.
    Group,
}

/// What is looked for: an object of the cluster, or of one guest.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// Its kind.
    pub what: What,
    /// Its name, in any case.
    pub name: &'a str,
    /// The guest whose object it is; `None` for the cluster's.
    pub guest: Option<Vmid>,
}

/// One use.
#[derive(Debug, Clone)]
pub struct Use {
    /// The firewall.
    pub place: Place,
    /// Whether it stands in an IP set, and not in a rule.
    pub in_set: bool,
    /// The rule's position.
    pub pos: Option<i64>,
    /// Whether the rule is on.
    pub enable: bool,
    /// The rule in words, or the name of the IP set.
    pub words: String,
}

/// The uses of an object, and what could not be looked at.
#[derive(Debug, Default)]
pub struct Uses {
    /// By firewall and position.
    pub found: Vec<Use>,
    /// Why something was not seen, and what: a name of the estate stands in quotes.
    unseen: BTreeMap<Why, BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Refused(String),
    Offline,
    Late,
}

impl Uses {
    /// Notes what was left out of the search, and why.
    pub fn left_out(&mut self, what: &str, why: &str) {
        self.unseen.entry(Why::Refused(why.to_owned())).or_default().insert(what.to_owned());
    }

    /// What could not be looked at, one line each with the reason.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let line = |(why, what): (&Why, &BTreeSet<String>)| {
            let why = match why {
                Why::Refused(message) => message,
                Why::Offline => "the node is offline",
                Why::Late => "not read in time",
            };
            format!("{}: {why}", joined(what))
        };
        self.unseen.iter().map(line).collect()
    }

    /// The same for a form: one line each, and no sentence of the estate's.
    fn lines(&self) -> Vec<String> {
        let mut out: Vec<String> = self.found.iter().map(line).collect();
        if out.is_empty() && self.unseen.is_empty() {
            out.push("no rule and no IP set names it".to_owned());
        }
        let mut blind = BTreeSet::new();
        for (why, what) in &self.unseen {
            match why {
                Why::Refused(_) => blind.extend(what.iter().cloned()),
                Why::Offline => {
                    out.push(format!(
                        "uses in {}: cannot be seen, the node is offline",
                        joined(what)
                    ));
                }
                Why::Late => out.push(format!("uses in {}: not read in time", joined(what))),
            }
        }
        if !blind.is_empty() {
            out.push(format!("uses in {}: cannot be seen", joined(&blind)));
        }
        out
    }
}

fn line(found: &Use) -> String {
    let (place, words) = (found.place.quoted(), quoted(&found.words));
    if found.in_set {
        return format!("used in IP set {words} of {place}");
    }
    let pos = found.pos.map_or_else(String::new, |pos| format!(" {pos}"));
    let off = if found.enable { "" } else { ", which is off" };
    format!("used by rule{pos} of {place}{off}: {words}")
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Looks an object up in every firewall that can name it, asking `state`.
pub async fn uses_of(state: &impl State, object: Object<'_>) -> Uses {
    Facts::default().settle(state, |facts| uses(facts, object)).await
}

/// The firewall object that a call changes or removes, one line for each use.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    let Some(object) = object(call) else { return };
    out.extend(implicit(object).map(str::to_owned));
    out.extend(uses(call.facts, object).lines());
}

fn object<'a>(call: &'a Call<'_>) -> Option<Object<'a>> {
    let (before, below) = call.endpoint.template.split_once("/firewall/")?;
    let what = match below.split('/').next()? {
        "aliases" => What::Alias,
        "ipset" => What::IpSet,
        "groups" => What::Group,
        _ => return None,
    };
    // A call on the list makes a new one, or renames one.
    let renamed = || call.params.text("rename").filter(|_| call.method == Method::Post);
    let name = call.variable("name").or_else(|| call.variable("group")).or_else(renamed)?;
    let guest = match before {
        "/cluster" => None,
        _ => Some(Vmid::parse(call.variable("vmid")?).ok()?),
    };
    Some(Object { what, name, guest })
}

/// What Proxmox itself does with an object of this name.
fn implicit(object: Object<'_>) -> Option<&'static str> {
    let name = object.name.to_ascii_lowercase();
    match (object.what, object.guest, name.as_str()) {
        (What::IpSet, None, "management") => {
            Some("Proxmox lets these addresses reach the nodes' web interface and SSH")
        }
        (What::Alias, None, "local_network") => {
            Some("Proxmox lets this network reach the nodes' web interface and SSH")
        }
        (What::IpSet, Some(_), set) if set.starts_with("ipfilter-net") => {
            Some("Proxmox lets the guest's NIC of that number send from these addresses alone")
        }
        _ => None,
    }
}

/// The uses of an object, as far as is known.
#[must_use]
pub fn uses(facts: &Facts, object: Object<'_>) -> Uses {
    let mut search = Search { facts, object, uses: Uses::default() };
    for place in search.places() {
        search.look_in(&place);
    }
    let mut uses = search.uses;
    uses.found.sort_by(|a, b| (&a.place.name, a.pos).cmp(&(&b.place.name, b.pos)));
    uses
}

struct Search<'f, 'o> {
    facts: &'f Facts,
    object: Object<'o>,
    uses: Uses,
}

impl<'f> Search<'f, '_> {
    fn unseen(&mut self, why: Why, what: String) {
        self.uses.unseen.entry(why).or_default().insert(what);
    }

    /// The rows of a list. What cannot be read is noted; what this release does not have is empty.
    fn rows(&mut self, of: &str, segments: &[&str]) -> &'f [Value] {
        let error = match self.facts.look(segments, Params::new()) {
            Ok(answer) => return loose::rows(answer),
            Err(error) => error,
        };
        if !no_such_endpoint(&error) {
            self.unseen(why(error), of.to_owned());
        }
        &[]
    }

    /// The firewalls that can name the object.
    fn places(&mut self) -> Vec<Place> {
        let mut places = Vec::new();
        let nodes = self.rows("the nodes", &["nodes"]);
        let offline = |node: &str| {
            let row = nodes.iter().find(|row| loose::str(row, "node") == Some(node));
            row.and_then(|row| loose::str(row, "status")) == Some("offline")
        };
        if self.object.guest.is_none() {
            places.push(Place::cluster());
            let named = |rows: &'f [Value], key: &'static str| {
                rows.iter().filter_map(move |row| loose::str(row, key))
            };
            let groups = self.rows("the security groups", &["cluster", "firewall", "groups"]);
            places.extend(named(groups, "group").map(Place::of_group));
            let vnets = self.rows("the vnets", &["cluster", "sdn", "vnets"]);
            places.extend(named(vnets, "vnet").map(Place::of_vnet));
            for node in named(nodes, "node") {
                if offline(node) {
                    self.unseen(Why::Offline, Place::of_node(node).quoted());
                } else {
                    places.push(Place::of_node(node));
                }
            }
        }
        // A group holds for many firewalls, and so no object of a single guest.
        let guests = match self.facts.guests() {
            Ok(rows) => rows,
            Err(error) => {
                self.unseen(why(error), "the guests".to_owned());
                &[]
            }
        };
        let wanted = |guest: &GuestRef| self.object.guest.is_none_or(|vmid| vmid == guest.vmid);
        let guests: Vec<_> = guests.iter().filter_map(GuestRef::from_row).filter(wanted).collect();
        if guests.is_empty()
            && let Some(vmid) = self.object.guest
        {
            self.unseen(
                Why::Refused("it is not in the list of guests".to_owned()),
                format!("guest {vmid}"),
            );
        }
        for guest in guests {
            let place = Place::of_guest(guest.node.as_str(), guest.kind, guest.vmid);
            if offline(guest.node.as_str()) {
                self.unseen(Why::Offline, place.quoted());
            } else {
                places.push(place);
            }
        }
        if self.object.guest.is_none()
            && let Some(what) = unseen_guests(self.facts)
        {
            self.unseen(Why::Refused("the token lacks VM.Audit".to_owned()), what.to_owned());
        }
        places
    }

    fn look_in(&mut self, place: &Place) {
        let shown = place.quoted();
        for rule in self.rows(&shown, &place.rules(None)) {
            if self.rule_names(place, rule) {
                self.uses.found.push(Use {
                    place: place.clone(),
                    in_set: false,
                    pos: loose::int(rule, "pos"),
                    enable: loose::flag(rule, "enable"),
                    words: in_words(rule),
                });
            }
        }
        // An alias may stand in an IP set too.
        if self.object.what != What::Alias || !place.has_objects() {
            return;
        }
        for set in self.rows(&shown, &place.below(&["ipset"])) {
            let Some(name) = loose::str(set, "name") else { continue };
            let entries = self.rows(&shown, &place.below(&["ipset", name]));
            if entries
                .iter()
                .filter_map(|e| loose::str(e, "cidr"))
                .any(|cidr| self.named(place, cidr))
            {
                self.uses.found.push(Use {
                    place: place.clone(),
                    in_set: true,
                    pos: None,
                    enable: true,
                    words: name.to_owned(),
                });
            }
        }
    }

    fn rule_names(&mut self, place: &Place, rule: &Value) -> bool {
        if self.object.what == What::Group {
            return loose::str(rule, "type") == Some("group")
                && loose::str(rule, "action")
                    .is_some_and(|a| a.eq_ignore_ascii_case(self.object.name));
        }
        ["source", "dest"]
            .iter()
            .filter_map(|key| loose::str(rule, key))
            .flat_map(split_list)
            .any(|part| self.named(place, part))
    }

    /// Whether one address in a firewall is the object.
    fn named(&mut self, place: &Place, part: &str) -> bool {
        let of_guest = self.object.guest.is_some();
        match scope(part, self.object.what, self.object.name) {
            None => false,
            Some(Scope::Cluster) => !of_guest,
            Some(Scope::Guest) => of_guest,
            Some(Scope::Nearest) => of_guest || place.vmid.is_none() || !self.has_own(place),
        }
    }

    /// Whether a guest has an object of that name itself, which its rules then mean.
    fn has_own(&mut self, place: &Place) -> bool {
        let list = if self.object.what == What::Alias { "aliases" } else { "ipset" };
        let own = self.rows(&place.quoted(), &place.below(&[list]));
        own.iter()
            .filter_map(|o| loose::str(o, "name"))
            .any(|name| name.eq_ignore_ascii_case(self.object.name))
    }
}

fn why(error: Error) -> Why {
    if error.code == Code::Timeout { Why::Late } else { Why::Refused(error.message) }
}

/// Whose object a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Cluster,
    Guest,
    /// The guest's where it has one of that name, else the cluster's.
    Nearest,
}

/// Whether an address is the name, and whose: `lan`, `dc/lan`, `guest/lan`, for a set `+set`,
/// `+dc/set`, `+guest/set`, in any case, with `!` before it where it is left out of a set.
fn scope(part: &str, what: What, name: &str) -> Option<Scope> {
    let part = part.trim().trim_start_matches('!').trim_start();
    let bare = match (what, part.strip_prefix('+')) {
        (What::IpSet, Some(set)) => set,
        (What::Alias, None) => part,
        _ => return None,
    };
    let (scope, bare) = match bare.split_once('/') {
        Some((prefix, bare)) if prefix.eq_ignore_ascii_case("dc") => (Scope::Cluster, bare),
        Some((prefix, bare)) if prefix.eq_ignore_ascii_case("guest") => (Scope::Guest, bare),
        _ => (Scope::Nearest, bare),
    };
    bare.eq_ignore_ascii_case(name).then_some(scope)
}

/// `in ACCEPT tcp port 22 from +management`.
#[must_use]
pub fn in_words(rule: &Value) -> String {
    let mut words = Vec::new();
    for (key, before) in [
        ("type", ""),
        ("action", ""),
        ("macro", ""),
        ("proto", ""),
        ("dport", "port "),
        ("source", "from "),
        ("dest", "to "),
        ("iface", "on "),
    ] {
        if let Some(value) = loose::text(rule, key) {
            words.push(format!("{before}{value}"));
        }
    }
    words.join(" ")
}

#[cfg(test)]
#[path = "firewall_tests.rs"]
mod tests;
