//! Pure functions over snapshots of the estate.

pub mod calendar;
pub mod coverage;
pub mod estate;
