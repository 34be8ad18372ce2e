//! What each endpoint does. The tables of all modules make up the API that is
//! here; the rest answers 501.

mod access;
mod accounts;
mod agent;
pub(crate) mod backup;
pub(crate) mod calendar;
mod cluster;
mod create;
mod disks;
mod firewall;
mod firewall_objects;
mod guests;
mod ha;
mod index;
mod journal;
mod lifecycle;
mod machine;
mod migrate;
mod network;
mod nodes;
mod options;
mod pools;
mod power;
mod qga;
mod sdn;
mod shell;
mod snapshots;
mod storage_admin;
mod storages;
mod system;
mod tasks;
mod vzdump;
mod windows;
mod windows_files;

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
        create::ROUTES,
        disks::ROUTES,
        firewall::ROUTES,
        firewall_objects::ROUTES,
        firewall::OTHERS,
        guests::ROUTES,
        ha::ROUTES,
        index::ROUTES,
        lifecycle::ROUTES,
        machine::ROUTES,
        migrate::ROUTES,
        network::ROUTES,
        nodes::ROUTES,
        journal::ROUTES,
        options::ROUTES,
        pools::ROUTES,
        power::ROUTES,
        sdn::ROUTES,
        sdn::OTHERS,
        snapshots::ROUTES,
        storage_admin::ROUTES,
        storages::ROUTES,
        system::ROUTES,
        tasks::ROUTES,
        vzdump::ROUTES,
    ];
    all.into_iter().flatten().map(|&(method, path, handler)| ((method, path), handler)).collect()
});

/// All handlers by method and path.
pub(crate) fn table() -> &'static Table {
    &TABLE
}
