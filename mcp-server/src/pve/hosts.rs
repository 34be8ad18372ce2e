//! The hosts of one cluster, and which of them is asked first.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::config::HostPort;

/// How long a host that failed is asked last.
const ASIDE: Duration = Duration::from_secs(30);

/// Hosts in the order of the configuration, those that failed lately at the end.
pub(crate) struct Hosts {
    all: Vec<HostPort>,
    failed: Mutex<Vec<Option<Instant>>>,
}

impl Hosts {
    pub fn new(all: Vec<HostPort>) -> Self {
        let failed = Mutex::new(vec![None; all.len()]);
        Self { all, failed }
    }

    /// Every host once, in the order in which to try them.
    pub fn in_order(&self) -> Vec<(usize, &HostPort)> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let aside =
            |at: usize| failed.get(at).copied().flatten().filter(|since| since.elapsed() < ASIDE);
        let mut order: Vec<(usize, &HostPort)> = self.all.iter().enumerate().collect();
        // Among those that failed, the one that failed first has had most time to come back.
        order.sort_by_key(|(at, _)| aside(*at));
        order
    }

    /// Remembers that a host could not be used.
    pub fn failed(&self, at: usize) {
        self.note(at, Some(Instant::now()));
    }

    /// Remembers that a host answered.
    pub fn answered(&self, at: usize) {
        self.note(at, None);
    }

    fn note(&self, at: usize, value: Option<Instant>) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = failed.get_mut(at) {
            *slot = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(hosts: &Hosts) -> Vec<&str> {
        hosts.in_order().into_iter().map(|(_, h)| h.host.as_str()).collect()
    }

    #[test]
    fn what_failed_is_tried_last_until_it_answers() {
        let parse = |t: &&str| HostPort::parse(t).unwrap();
        let hosts = Hosts::new(["a", "b", "c"].iter().map(parse).collect());
        assert_eq!(order(&hosts), ["a", "b", "c"]);
        hosts.failed(0);
        assert_eq!(order(&hosts), ["b", "c", "a"]);
        hosts.failed(1);
        assert_eq!(order(&hosts), ["c", "a", "b"]);
        hosts.answered(0);
        assert_eq!(order(&hosts), ["a", "c", "b"]);
    }
}
