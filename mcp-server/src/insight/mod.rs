//! Pure functions over snapshots of the estate.

pub mod estate;
