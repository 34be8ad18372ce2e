//! The uses of a firewall object as a member of an answer.

use serde_json::{Value, json};

use crate::{
    pve::Vmid,
    safety::impact::firewall::{Object, Uses, What, uses_of},
    tools::{Ctx, hidden::Shown},
};

/// Looks a name up in every firewall that can name it, of what the caller may see.
pub async fn of(ctx: Ctx<'_>, what: What, name: &str, guest: Option<Vmid>) -> Uses {
    let mut uses = uses_of(&Shown(ctx), Object { what, name, guest }).await;
    if ctx.app.config.read_allowed_only && guest.is_none() {
        uses.left_out("the guests that PROXMOX_READ_VMIDS hides", "not looked at");
    }
    uses
}

/// As a member of an answer: nothing is said of what is missing only where all was seen.
pub fn to_json(uses: &Uses) -> Value {
    let found = uses.found.iter().map(|u| {
        let rule = if u.in_set { format!("IP set {}", u.words) } else { u.words.clone() };
        json!({"firewall": u.place.name, "pos": u.pos, "enable": u.enable, "rule": rule})
    });
    let found: Vec<Value> = found.collect();
    let mut value = json!({"count": found.len(), "rules": found});
    let missing = uses.missing();
    if let (Value::Object(map), false) = (&mut value, missing.is_empty()) {
        map.insert("partial".into(), true.into());
        map.insert("missing".into(), missing.into());
    }
    value
}
