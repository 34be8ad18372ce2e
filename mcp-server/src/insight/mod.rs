//! Pure functions over snapshots of the estate.

pub mod attention;
pub mod calendar;
pub mod coverage;
pub mod diagnose;
pub mod estate;
pub mod forecast;
pub mod inventory;
pub mod overview;
pub mod placement;
pub mod topology;

#[cfg(test)]
mod fixture;
