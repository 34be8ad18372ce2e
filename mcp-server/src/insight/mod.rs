//! Pure functions over snapshots of the estate.

pub mod attention;
pub mod calendar;
pub mod coverage;
pub mod diagnose;
pub mod estate;
pub mod forecast;
pub mod overview;

#[cfg(test)]
mod fixture;
