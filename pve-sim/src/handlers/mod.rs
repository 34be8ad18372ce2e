//! What each endpoint does. The tables of all modules make up the API that is
//! here; the rest answers 501.

pub(crate) mod calendar;
mod cluster;
mod guests;
mod index;
mod nodes;
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
        index::ROUTES,
        cluster::ROUTES,
        nodes::ROUTES,
        guests::ROUTES,
        storages::ROUTES,
        tasks::ROUTES,
    ];
    all.into_iter().flatten().map(|&(method, path, handler)| ((method, path), handler)).collect()
});

/// All handlers by method and path.
pub(crate) fn table() -> &'static Table {
    &TABLE
}
