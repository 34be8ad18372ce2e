//! Who staged the changes that a call applies, as far as this server's own records tell.

use super::Gate;
use crate::safety::{
    Method,
    audit::{Query, Step, search},
    impact,
    subject::{Judged, Shown},
};

impl Gate {
    /// Which of the changes that a call applies were made through this server: Proxmox keeps no
    /// record of who did.
    pub(super) fn who_staged(&self, judged: &Judged, shown: &Shown) -> Option<String> {
        if judged.impact.is_empty() {
            return None;
        }
        let method = Method::parse(shown.method)?;
        let template = judged.judgement.class.template.unwrap_or_default();
        let place = impact::place(method, template, &shown.path)?;
        let query = Query { text: Some(shown.path.clone()), limit: 200, ..Query::default() };
        let records = search(self.audit.path()?, &query).unwrap_or_default();
        let made: Vec<String> = records
            .iter()
            .filter(|r| r.entry.outcome == Step::Sent)
            // Nothing older than the last time that they were applied or taken back.
            .take_while(|r| {
                r.entry.path.as_deref() != Some(&shown.path)
                    || r.entry.method.as_deref() == Some("POST")
            })
            .filter(|r| {
                r.entry.path.as_deref().is_some_and(|p| p == shown.path || p.starts_with(&place))
            })
            .map(|r| format!("{} at {}", r.entry.of.unwrap_or(r.seq), r.time))
            .collect();
        Some(match made.as_slice() {
            [] => "none of it was staged through this server; Proxmox does not record by whom"
                .to_owned(),
            made => format!(
                "staged through this server by audit record {}; anything else by others",
                made.join(", ")
            ),
        })
    }
}
