//! `upgrade-simulate`: what an upgrade would do.

use crate::apt;
use crate::client::Client;
use crate::policy::Policy;
use crate::protocol::{Plan, Progress, Refused, Reply};

pub(super) fn run(refresh: bool, policy: &Policy, client: &mut Client) -> Result<Plan, Refused> {
    if refresh {
        super::wait_for_locks(policy, client)?;
        client.queue(&Reply::Progress(Progress {
            phase: "refreshing".into(),
            message: "fetching the package lists".into(),
        }));
        client.flush();
        apt::refresh(client)?;
    }
    apt::plan(None, client)
}
