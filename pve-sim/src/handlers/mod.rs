//! What each endpoint does. The tables of all modules make up the API that is
//! here; the rest answers 501.

mod access;
mod agent;
mod backup;
pub(crate) mod calendar;
mod cluster;
mod guests;
mod ha;
mod index;
mod network;
mod nodes;
mod pools;
mod power;
mod snapshots;
mod storages;
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
        agent::ROUTES,
        backup::ROUTES,
        cluster::ROUTES,
        guests::ROUTES,
        ha::ROUTES,
        index::ROUTES,
        network::ROUTES,
        nodes::ROUTES,
        pools::ROUTES,
        power::ROUTES,
        snapshots::ROUTES,
        storages::ROUTES,
        tasks::ROUTES,
    ];
    all.into_iter().flatten().map(|&(method, path, handler)| ((method, path), handler)).collect()
});

/// All handlers by method and path.
pub(crate) fn table() -> &'static Table {
    &TABLE
}
