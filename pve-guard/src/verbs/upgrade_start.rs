//! `upgrade-start`: begin the upgrade that was agreed to.

use crate::apt;
use crate::client::Client;
use crate::policy::Policy;
use crate::protocol::{Code, Refused, UpgradeStarted};

/// Hexadecimal digits of a plan.
const DIGITS: usize = 64;

pub(super) fn run(
    plan: &str,
    policy: &Policy,
    client: &mut Client,
) -> Result<UpgradeStarted, Refused> {
    // It becomes an argument of the unit, so nothing else may be one.
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if plan.len() != DIGITS || !plan.chars().all(is_digit) {
        return Err(Refused::new(Code::Argument, "plan is not what upgrade-simulate gives"));
    }
    let _starting = super::only_one("upgrade-start")?;
    if apt::status::show(client)?.is_running() {
        return Err(
            Refused::new(Code::Busy, "an upgrade is running").hint("follow it with upgrade-status")
        );
    }
    drop(super::only_one(crate::lock::NODE_CHANGE)?);
    super::wait_for_locks(policy, client)?;
    apt::agree(&apt::plan(None, client)?, plan)?;
    apt::unit::start(plan, client)
}
