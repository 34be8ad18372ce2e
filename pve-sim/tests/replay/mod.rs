//! Replaying recorded exchanges: a raw client, and comparing shapes.

pub mod client;
pub mod fixture;
pub mod shape;
