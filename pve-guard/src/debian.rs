//! Debian's package database and versions, read from their files.

mod status;
mod version;

pub(crate) use status::{Package, installed_version, read_status};
pub(crate) use version::compare;
