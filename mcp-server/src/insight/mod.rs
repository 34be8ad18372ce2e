//! Pure functions over snapshots of the estate.

pub mod attention;
pub mod calendar;
pub mod coverage;
pub mod estate;
pub mod overview;

#[cfg(test)]
mod fixture;
