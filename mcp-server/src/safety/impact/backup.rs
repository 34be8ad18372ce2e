//! Backup jobs: which back a guest up, and which guests a job is the only one for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{guest::Guest, ids, list, unseen_guests};
use crate::{
    pve::{loose, params::split_list},
    safety::{Method, conditions::Call, shown::quoted},
};

/// The guests that a job backs up, before it is deleted.
pub(super) fn lines(call: &Call<'_>, out: &mut Vec<String>) {
    if call.endpoint.template != "/cluster/backup/{id}" || call.method != Method::Delete {
        return;
    }
    let (Some(jobs), Ok(guests)) = (list(call, &["cluster", "backup"]), call.facts.guests()) else {
        out.push("the guests of the job: cannot be seen".to_owned());
        return;
    };
    let is_it = |job: &Value| loose::text(job, "id").as_deref() == call.variable("id");
    let (mut backed, mut only) = (BTreeSet::new(), BTreeSet::new());
    for row in guests {
        let (Some(vmid), pool) = (loose::uint(row, "vmid"), loose::str(row, "pool")) else {
            continue;
        };
        let (number, node) = (vmid.to_string(), loose::str(row, "node").unwrap_or_default());
        let has = |job: &&Value| backs_up(job, &number, pool) && runs_on(job, node);
        if jobs.iter().filter(|job| is_it(job)).any(|job| has(&job)) {
            backed.insert(vmid);
            if !jobs.iter().filter(|job| !is_it(job)).any(|job| has(&job)) {
                only.insert(vmid);
            }
        }
    }
    match backed.len() {
        0 => out.push("it backs up no guest that can be seen".to_owned()),
        count => out.push(format!("it backs up {count} guests: {}", ids(&backed))),
    }
    if !only.is_empty() {
        out.push(format!("in no other backup job: {}", ids(&only)));
    }
    if let Some(what) = unseen_guests(call.facts) {
        out.push(format!("{what} are not counted"));
    }
}

/// Whether a job runs on a node: those that name one back up its guests alone.
fn runs_on(job: &Value, node: &str) -> bool {
    loose::str(job, "node").is_none_or(|only| only == node)
}

/// The jobs that back a guest up.
pub(super) fn of_guest(
    call: &Call<'_>,
    guest: &Guest<'_>,
    pool: Option<&str>,
    out: &mut Vec<String>,
) {
    let Some(rows) = list(call, &["cluster", "backup"]) else {
        out.push("backup jobs: cannot be seen".to_owned());
        return;
    };
    let at = call.facts.guest(guest.vmid).and_then(|g| loose::str(g, "node"));
    let at = at.unwrap_or(guest.node);
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for job in rows.iter().filter(|job| backs_up(job, &guest.number, pool)) {
        let id = quoted(&loose::text(job, "id").unwrap_or_default());
        match loose::str(job, "node") {
            Some(node) if at != "localhost" && node != at => {
                elsewhere.push(format!("{id} on {}", quoted(node)));
            }
            _ => here.push(id),
        }
    }
    out.push(match here.as_slice() {
        [] => "in no backup job".to_owned(),
        jobs => format!("backed up by {}", jobs.join(", ")),
    });
    if !elsewhere.is_empty() {
        let jobs = elsewhere.join(", ");
        out.push(format!("named by backup jobs that run on another node alone: {jobs}"));
    }
}

fn backs_up(job: &Value, vmid: &str, pool: Option<&str>) -> bool {
    let names =
        |key: &str| loose::text(job, key).is_some_and(|l| split_list(&l).any(|m| m == vmid));
    if job.get("enabled").is_some() && !loose::flag(job, "enabled") {
        return false;
    }
    names("vmid")
        || (loose::flag(job, "all") && !names("exclude"))
        || loose::str(job, "pool").is_some_and(|p| Some(p) == pool)
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
