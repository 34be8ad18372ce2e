//! Pure functions over snapshots of the estate.
