//! What must hold for any bytes. The fuzz target calls it, and a test of the
//! crate does so with every file of the corpus.

use pve_guard::protocol::{Code, Input, Reply, Request};

/// Reads the bytes as everything that they could be.
pub fn check(data: &[u8]) {
    if let Ok(request) = Request::parse(data) {
        // What was understood is understood the same when it is sent on.
        let line = request.to_line().expect("a request that was read can be written");
        assert_eq!(Request::parse(line.trim_end().as_bytes()), Ok(request));
        assert_eq!(line.matches('\n').count(), 1, "one line");
    } else if let Err(refused) = Request::parse(data) {
        assert_ne!(refused.code, Code::Unknown);
        assert!(!refused.message.is_empty());
    }
    if let Ok(input) = Input::parse(data) {
        assert_eq!(Input::parse(input.to_line().trim_end().as_bytes()), Ok(input));
    }
    if let Ok(reply) = Reply::parse(data) {
        assert_eq!(Reply::parse(reply.to_line().trim_end().as_bytes()), Ok(reply));
    }
}
