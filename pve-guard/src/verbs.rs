//! The verbs, one file each. To add one: a variant in `protocol::Verb`, a file
//! here, a line below, and a line in the manual.

mod hello;
mod kernel_list;
mod kernel_pin;
mod kernel_unpin;
mod pct_exec;
mod upgrade_simulate;
mod upgrade_start;
mod upgrade_status;

use serde::Serialize;
use serde_json::Value;

use crate::apt;
use crate::client::Client;
use crate::lock::{self, Held};
use crate::policy::Policy;
use crate::protocol::{Code, Progress, Refused, Reply, Verb};

/// Does what is asked; the answer is what stands in `done`.
pub(crate) fn run(verb: &Verb, policy: &Policy, client: &mut Client) -> Result<Value, Refused> {
    match verb {
        Verb::Hello => done(hello::run(policy)?),
        Verb::PctExec(exec) => done(pct_exec::run(exec, policy, client)?),
        Verb::UpgradeSimulate { refresh } => done(upgrade_simulate::run(*refresh, policy, client)?),
        Verb::UpgradeStart { plan } => done(upgrade_start::run(plan, policy, client)?),
        Verb::UpgradeStatus { cursor } => done(upgrade_status::run(cursor.as_deref(), client)?),
        Verb::KernelList => done(kernel_list::run(client)?),
        Verb::KernelPin { version, next_boot } => {
            done(kernel_pin::run(version, *next_boot, client)?)
        }
        Verb::KernelUnpin { next_boot } => done(kernel_unpin::run(*next_boot, client)?),
    }
}

fn done(answer: impl Serialize) -> Result<Value, Refused> {
    serde_json::to_value(answer).map_err(|error| Refused::new(Code::Internal, error.to_string()))
}

/// Waits for another package manager, as long as policy and client let it.
fn wait_for_locks(policy: &Policy, client: &mut Client) -> Result<(), Refused> {
    apt::wait_until_free(policy.upgrade.lock_wait_s, &mut |who| {
        if let Some(who) = who {
            client.queue(&Reply::Progress(Progress {
                phase: "waiting_for_lock".into(),
                message: who.to_owned(),
            }));
            client.flush();
        }
        !client.gives_up()
    })
}

/// A lock for what must not be done twice at a time.
fn only_one(name: &str) -> Result<Held, Refused> {
    match lock::try_hold(name) {
        Ok(Some(held)) => Ok(held),
        Ok(None) => Err(Refused::new(Code::Busy, "an upgrade or a change of kernels is going on")),
        Err(error) => Err(Refused::new(Code::Internal, format!("lock file: {error}"))),
    }
}
