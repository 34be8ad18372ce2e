//! Faults that tests inject: what goes wrong, for which requests, how often.

use std::time::Duration;

/// What happens to a request that a [`Fault`] matches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The answer comes this much later; the call is carried out at once.
    Latency(Duration),
    /// The connection ends when the head was read, before the body; nothing is done.
    CutBeforeBody,
    /// The connection ends when the body was read; with `apply` the call is carried out first.
    CutAfterBody {
        /// Whether the call is carried out.
        apply: bool,
    },
    /// The call is carried out and half of the answer's bytes are sent, then the connection ends.
    CutInAnswer,
    /// The call is not carried out; this status line and an empty body come back,
    /// as pveproxy does for 401, 595 and 596.
    Status(u16, String),
    /// The call is not carried out; this status with a JSON error body
    /// (`{"data":null,"message":…}`).
    Error(u16, String),
    /// The call is not carried out; this JSON text comes back as if it were.
    Answer(String),
    /// The call is carried out, then this status line comes back with an empty
    /// body: what a proxy in between does when it loses its backend.
    StatusAfter(u16, String),
    /// The call is not carried out; an HTML page of a proxy with this status comes back.
    Html(u16),
    /// The call is not carried out; bytes that are not HTTP come back.
    Garbage,
    /// The call is carried out; a 200 with JSON that ends too early, and a matching length.
    BrokenJson,
    /// The call is carried out; its answer is sent in pieces of `chunk` bytes with a pause between.
    Drip {
        /// Bytes per piece, at least 1.
        chunk: usize,
        /// Pause between pieces.
        every: Duration,
    },
    /// The call is carried out; the answer is JSON of about this many bytes.
    Huge(usize),
    /// No answer ever; with `apply` the call is carried out.
    NeverAnswer {
        /// Whether the call is carried out.
        apply: bool,
    },
}

impl Effect {
    /// 401 with an empty body and the reason the real one gives for a bad token.
    pub fn unauthorized() -> Self {
        Self::Status(401, "Authentication failed!".to_owned())
    }

    /// 595, as pveproxy answers when another node refuses the connection.
    pub fn no_route() -> Self {
        Self::Status(595, "No route to host".to_owned())
    }

    /// 596, as pveproxy answers when a worker died or did not answer in 30 s.
    pub fn broken_pipe() -> Self {
        Self::Status(596, "Broken pipe".to_owned())
    }
}

/// A fault: an [`Effect`], the requests it hits and how often it does.
#[derive(Debug, Clone)]
pub struct Fault {
    effect: Effect,
    method: Option<String>,
    path: Option<String>,
    left: Option<usize>,
}

impl Fault {
    /// A fault that hits the next request of any kind, once.
    pub fn new(effect: Effect) -> Self {
        Self { effect, method: None, path: None, left: Some(1) }
    }

    /// Only requests with this method.
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Only requests whose decoded path below `/api2/json` matches: a glob where
    /// `*` stands for any characters; without `*` a prefix.
    pub fn path(mut self, glob: &str) -> Self {
        self.path = Some(glob.to_owned());
        self
    }

    /// Hit this many requests, then go.
    pub fn times(mut self, n: usize) -> Self {
        self.left = Some(n);
        self
    }

    /// Hit every matching request until cleared.
    pub fn always(mut self) -> Self {
        self.left = None;
        self
    }

    fn hits(&self, method: &str, path: &str) -> bool {
        self.left != Some(0)
            && self.method.as_deref().is_none_or(|m| m == method)
            && self.path.as_deref().is_none_or(|glob| matches(glob, path))
    }
}

/// Takes the first matching fault, counts it, and drops it when it is used up.
pub(crate) fn take(faults: &mut Vec<Fault>, method: &str, path: &str) -> Option<Effect> {
    let at = faults.iter().position(|f| f.hits(method, path))?;
    let fault = faults.get_mut(at)?;
    let effect = fault.effect.clone();
    if let Some(left) = fault.left.as_mut() {
        *left -= 1;
        if *left == 0 {
            faults.remove(at);
        }
    }
    Some(effect)
}

fn matches(glob: &str, path: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else { return path.starts_with(glob) };
    let Some(mut left) = path.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        match left.find(piece) {
            Some(at) => left = left.get(at + piece.len()..).unwrap_or(""),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, path, expected) in [
            ("/nodes", "/nodes/pve1/status", true),
            ("/nodes", "/cluster", false),
            ("/nodes/*/qemu/*/status/start", "/nodes/pve1/qemu/100/status/start", true),
            ("/nodes/*/qemu/*/status/start", "/nodes/pve1/qemu/100/status/stop", false),
            ("*/config", "/nodes/a/qemu/1/config", true),
            ("*", "/anything", true),
            ("/a*b*c", "/axbyc", true),
            ("/a*b*c", "/axc", false),
        ] {
            assert_eq!(matches(glob, path), expected, "{glob} on {path}");
        }
    }

    #[test]
    fn a_fault_goes_after_its_count() {
        let mut faults = vec![Fault::new(Effect::Garbage).method("GET").times(2)];
        assert_eq!(take(&mut faults, "POST", "/x"), None);
        assert_eq!(take(&mut faults, "GET", "/x"), Some(Effect::Garbage));
        assert_eq!(take(&mut faults, "GET", "/x"), Some(Effect::Garbage));
        assert_eq!(take(&mut faults, "GET", "/x"), None);
        assert!(faults.is_empty());
    }
}
