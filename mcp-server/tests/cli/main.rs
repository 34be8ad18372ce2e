//! The built program, as a person at a shell sees it.

// Helpers of tests fail the test; Clippy knows that only inside test functions.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod local;
mod manual;
mod place;
mod remote;
mod secrets;
