//! The built program, as a person at a shell sees it.

mod local;
mod place;
mod remote;
mod secrets;
