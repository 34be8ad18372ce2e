//! What each endpoint does. The tables of all modules make up the API that is
//! here; the rest answers 501.

mod access;
mod accounts;
mod agent;
mod backup;
pub(crate) mod calendar;
mod cluster;
mod firewall;
mod guests;
mod ha;
mod index;
mod network;
mod nodes;
mod pools;
mod power;
mod sdn;
mod snapshots;
mod storages;
mod system;
mod tasks;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::api::call::Handler;

/// Method, path with `{variables}`, handler.
pub(crate) type Route = (&'static str, &'static str, Handler);

type Table = HashMap<(&'static str, &'static str), Handler>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let all = [
        access::ROUTES,
        accounts::ROUTES,
        agent::ROUTES,
        backup::ROUTES,
        cluster::ROUTES,
        firewall::ROUTES,
        firewall::OBJECTS,
        firewall::OTHERS,
        guests::ROUTES,
        ha::ROUTES,
        index::ROUTES,
        network::ROUTES,
        nodes::ROUTES,
        pools::ROUTES,
        power::ROUTES,
        sdn::ROUTES,
        sdn::OTHERS,
        snapshots::ROUTES,
        storages::ROUTES,
        system::ROUTES,
        tasks::ROUTES,
    ];
    all.into_iter().flatten().map(|&(method, path, handler)| ((method, path), handler)).collect()
});

/// All handlers by method and path.
pub(crate) fn table() -> &'static Table {
    &TABLE
}
