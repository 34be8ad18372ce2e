//! What would be done, as a plan for the caller and as a form for the person.

use serde_json::{Value, json};

use crate::{
    config::{Approval, Config},
    safety::{
        binding::needs_approval,
        gate::{Caller, Plan},
        judge::Judgement,
        shown::quoted,
        subject::{Judged, Shown},
    },
};

/// Everything that is told about a change.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub judged: &'a Judged,
    pub shown: &'a Shown,
    pub caller: &'a Caller<'a>,
}

impl View<'_> {
    /// What would be sent, and what it would do.
    pub fn plan(&self, config: &Config) -> Plan {
        let Judged { judgement, state, impact, .. } = self.judged;
        let class = &judgement.class;
        let category = class.category().map(|f| f.category());
        let json = json!({
            "class": class.class_text(),
            "category": category,
            "categories": class.categories.iter().map(|f| f.category()).collect::<Vec<_>>(),
            "flags": class.categories.iter().map(|f| f.variable()).collect::<Vec<_>>(),
            "confirm": self.judged.confirm,
            "request": self.shown.request(),
            "reasons": class.reasons,
            "vmids": judgement.touched.vmids.iter().map(|v| v.get()).collect::<Vec<_>>(),
            "vmids_open": judgement.touched.open,
            "state": state,
            "impact": impact,
            "undo": self.judged.undo,
            "may_cut_access": class.may_cut_access,
            "needs_approval": config.approval != Approval::Confirm && needs_approval(judgement, config),
        });
        Plan { class: class.class_text(), category, json }
    }

    /// The form: fixed facts first, one line each, then what hangs on it, then the values.
    pub fn form(&self) -> String {
        let Judged { judgement, state, impact, .. } = self.judged;
        let class = &judgement.class;
        let mut lines = vec![format!("{}: {}", describe(judgement), what(judgement))];
        if !self.caller.purpose.is_empty() {
            lines.push(format!("What is done: {}", self.caller.purpose));
        }
        lines.push(format!("Request: {} {}", self.shown.method, quoted(&self.shown.path)));
        if let Some(guest) = state {
            lines.push(guest_line(guest));
        }
        let vmids: Vec<String> = judgement.touched.vmids.iter().map(ToString::to_string).collect();
        if !vmids.is_empty() {
            lines.push(format!("Guests touched ({}): {}", vmids.len(), vmids.join(", ")));
        }
        if let Some(open) = &judgement.touched.open {
            lines.push(format!("Guests touched that cannot be listed: {}", quoted(open)));
        }
        if class.may_cut_access {
            lines.push("This can cut this server's own way to the node.".to_owned());
        }
        lines.push(format!("Undo: {}", self.judged.undo));
        let Caller { client, tool, .. } = self.caller;
        lines.push(format!("Asked by: {} for {}", quoted(client), quoted(tool)));
        lines.extend(self.shown.lines.iter().cloned());
        lines.extend(impact.iter().map(|line| format!("Depends on it: {line}")));
        lines.extend(class.reasons.iter().map(|reason| format!("Why: {reason}")));
        if self.shown.lines.is_empty() {
            self.parameters(&mut lines);
        }
        lines.join("\n")
    }

    fn parameters(&self, lines: &mut Vec<String>) {
        for (name, value) in self.shown.params.as_object().into_iter().flatten() {
            let shown = match value {
                Value::String(text) => quoted(text),
                Value::Array(items) => {
                    let items: Vec<String> =
                        items.iter().filter_map(Value::as_str).map(quoted).collect();
                    items.join(", ")
                }
                other => other.to_string(),
            };
            lines.push(format!("Parameter {} = {shown}", quoted(name)));
        }
    }
}

/// The class with its categories.
pub(super) fn describe(judgement: &Judgement) -> String {
    let categories: Vec<&str> = judgement.class.categories.iter().map(|f| f.category()).collect();
    match categories.as_slice() {
        [] => judgement.class.class_text().to_owned(),
        names => format!("{} ({})", judgement.class.class_text(), names.join(", ")),
    }
}

/// What happens, in plain words.
fn what(judgement: &Judgement) -> String {
    match judgement.class.category() {
        Some(flag) => flag.explanation().to_owned(),
        None => {
            // The reason that made it what it is.
            let class = format!("({})", judgement.class.class_text());
            let reasons = &judgement.class.reasons;
            let own = reasons.iter().find(|reason| reason.ends_with(&class));
            own.or(reasons.first()).cloned().unwrap_or_else(|| "a change".to_owned())
        }
    }
}

fn guest_line(guest: &Value) -> String {
    let text = |key: &str| guest.get(key).and_then(Value::as_str);
    let kind = if text("kind") == Some("lxc") { "container" } else { "VM" };
    let vmid = guest.get("vmid").map(ToString::to_string).unwrap_or_default();
    let mut line = format!("On: {kind} {vmid}");
    for (key, word) in
        [("name", "called"), ("node", "on node"), ("status", "now"), ("lock", "locked by")]
    {
        if let Some(value) = text(key) {
            line.push_str(&format!(", {word} {}", quoted(value)));
        }
    }
    line
}
