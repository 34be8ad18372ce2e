//! One request: read, judged, journaled, done, answered.

use serde_json::Value;

use crate::caller::Caller;
use crate::client::{Client, say};
use crate::journal::Journal;
use crate::policy::Policy;
use crate::protocol::{Code, Input, Refused, Reply, Request, Verb};
use crate::{node, verbs};

/// What a person sees who came here without a request.
pub(crate) const USAGE: &str =
    "usage: pve-guard reads one request as a JSON line from standard input; see pve-guard(8)";

const CANCEL: &[u8] = br#"{"cancel":true}"#;

/// Serves the one request of this process; says its exit status.
pub(crate) fn serve() -> u8 {
    let mut client = Client::default();
    let mut journal = Journal::new(&Caller::find());
    let answer = answer(&mut client, &mut journal);
    if client.said_nothing() && matches!(&answer, Err(refused) if refused.code == Code::BadRequest)
    {
        say(USAGE);
    }
    let journaled = journal.outcome(&answer);
    let status = match &answer {
        Ok(_) => 0,
        Err(refused) => refused.code.exit_status(),
    };
    client.queue(&match answer {
        Ok(done) => Reply::Done(done),
        Err(refused) => Reply::Refused(refused),
    });
    client.flush();
    // The client need not wait for the disk.
    if let Err(error) = journaled.and_then(|()| journal.sync()) {
        say(&format!("pve-guard: the outcome could not be journaled: {error}"));
    }
    status
}

fn answer(client: &mut Client, journal: &mut Journal) -> Result<Value, Refused> {
    let line = client.request_line()?;
    let request = Request::parse(&line)?;
    journal.learn(&request);
    nothing_else(client, &request)?;
    check_node(&request)?;
    let policy = Policy::load()?;
    check_verb(&policy, &request)?;
    if request.verb.changes() {
        journal.request().map_err(|error| {
            Refused::new(Code::JournalUnavailable, error.to_string())
                .hint("nothing is changed on a node that cannot record it")
        })?;
    }
    let answer = verbs::run(&request.verb, &policy, client)?;
    if !request.verb.changes() {
        nothing_else(client, &request)?;
    }
    Ok(answer)
}

/// Refuses what came behind the request and does not belong to it.
fn nothing_else(client: &mut Client, request: &Request) -> Result<(), Refused> {
    client.read_waiting();
    let has_input = matches!(&request.verb, Verb::PctExec(exec) if exec.stdin);
    let mut lines = client.unread().split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let whole = lines.peek().is_some();
        let belongs = match Input::parse(line) {
            Ok(Input::Cancel) => true,
            Ok(_) => has_input,
            // The rest of a line may still come.
            Err(_) => !whole && (has_input || CANCEL.starts_with(line)),
        };
        if !belongs {
            return Err(Refused::new(
                Code::BadRequest,
                "something came behind the request that does not belong to it",
            )
            .hint("one request a process"));
        }
    }
    Ok(())
}

fn check_node(request: &Request) -> Result<(), Refused> {
    let here = node::name()
        .map_err(|error| Refused::new(Code::Internal, format!("the node's name: {error}")))?;
    match &request.node {
        Some(meant) if *meant != here => {
            Err(Refused::new(Code::WrongNode, format!("this is {here} and not {meant}"))
                .hint("nothing was run; check the address that is configured for the node"))
        }
        _ => Ok(()),
    }
}

fn check_verb(policy: &Policy, request: &Request) -> Result<(), Refused> {
    let name = request.verb.name();
    let hint = format!("the node's administrator can allow it in {}", crate::policy::FILE);
    if !policy.allows(name) {
        return Err(Refused::new(
            Code::VerbDenied,
            format!("the policy does not allow {}", name.as_str()),
        )
        .hint(hint));
    }
    if request.verb == (Verb::UpgradeSimulate { refresh: true }) && !policy.upgrade.refresh {
        return Err(Refused::new(
            Code::VerbDenied,
            "the policy does not allow upgrade-simulate to fetch package lists",
        )
        .hint(hint));
    }
    Ok(())
}
