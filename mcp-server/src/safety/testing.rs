//! What the tests of this room share: operations from text, a configuration, an estate.

use serde_json::{Value, json};

use super::{Facts, Flag, Judgement, Method, Operation, facts::Table, judge::judge};
use crate::{
    config::{ApiToken, Config, Dirs, Mode},
    pve::{ApiPath, Params},
};

/// An operation from `PUT /path` and parameters.
pub fn operation(call: &str, params: Value) -> Operation {
    let (method, path) = call.split_once(' ').unwrap();
    Operation {
        method: Method::parse(method).unwrap(),
        path: ApiPath::parse(path).unwrap(),
        params: Params::from_json(&params).unwrap(),
    }
}

/// Write mode with every flag on, and the token `mcp@pve!full`.
pub fn config() -> Config {
    let place = std::env::temp_dir();
    let mut config = Config::minimal(Dirs { config: place.clone(), state: place });
    config.mode = Mode::Write;
    config.token = Some(ApiToken {
        id: "mcp@pve!full".to_owned(),
        secret: "5ec7e7aa-0000-4000-8000-00000000beef".to_owned().into(),
    });
    for flag in Flag::ALL {
        config.flags.set(*flag, "on");
    }
    config
}

/// An estate in which `mcp@pve` is in the group ops, which holds the role Ops on `/`,
/// and its token holds PoolAdmin on a pool.
pub fn identity(table: Table) -> Table {
    table
        .with("/access/users/mcp@pve", json!({"groups": ["ops"], "enable": 1}))
        .with("/access/permissions", json!({"/": {"Sys.Audit": 1}, "/access": {"Sys.Audit": 1}}))
        .with("/access/acl", json!([
            {"path": "/", "ugid": "ops", "type": "group", "roleid": "Ops", "propagate": 1},
            {"path": "/pool/prod", "ugid": "mcp@pve!full", "type": "token", "roleid": "PoolAdmin"},
            {"path": "/vms/100", "ugid": "alice@pve", "type": "user", "roleid": "PVEVMUser"},
        ]))
}

/// Runs checks 1 to 8 against a table of answers.
pub fn judged(config: &Config, state: &Table, call: &str, params: Value) -> Judgement {
    let op = operation(call, params);
    let mut facts = Facts::default();
    futures::executor::block_on(facts.settle(state, |facts| judge(&op, config, facts)))
}

/// The code of the refusal, or `allowed`.
pub fn outcome(config: &Config, state: &Table, call: &str, params: Value) -> &'static str {
    judged(config, state, call, params).refusal.map_or("allowed", |e| e.code.as_str())
}

/// What hangs on the object of a call.
pub fn impact(state: &Table, call: &str, params: Value) -> Vec<String> {
    futures::executor::block_on(super::impact::of(&operation(call, params), state))
}
