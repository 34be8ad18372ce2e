//! Answers that are kept for a few seconds, and reads that share one request.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use super::{ApiPath, Params};
use crate::Result;

/// Most answers kept; a large estate is a few dozen keys.
const MAX_KEPT: usize = 256;

type Running<T> = Shared<BoxFuture<'static, Result<T>>>;

/// What is asked for: path and parameters.
pub(crate) type Key = (ApiPath, Params);

/// Kept answers and running reads. A change makes it forget both.
pub(crate) struct Cache<T> {
    ttl: Duration,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Counts the changes; an answer asked for before one is not kept after it.
    generation: u64,
    kept: HashMap<Key, (Instant, T)>,
    running: HashMap<Key, WeakShared<BoxFuture<'static, Result<T>>>>,
}

impl<T: Clone + Send + Sync + 'static> Cache<T> {
    pub fn new(ttl: Duration) -> Self {
        let state = State { generation: 0, kept: HashMap::new(), running: HashMap::new() };
        Self { ttl, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A poisoned cache is still a cache: nothing in it spans two updates.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kept answer that is still fresh.
    pub fn fresh(&self, key: &Key) -> Option<T> {
        let state = self.lock();
        let (since, answer) = state.kept.get(key)?;
        (since.elapsed() < self.ttl).then(|| answer.clone())
    }

    /// Runs `read`, or joins the same read that is already running. The answer
    /// is kept when `keep` says so and nothing was changed meanwhile.
    pub async fn share<F>(&self, key: &Key, keep: bool, read: F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (running, generation) = self.join(key, read);
        let answer = running.await;
        let mut state = self.lock();
        if state.generation == generation {
            if state
                .running
                .get(key)
                .is_some_and(|r| r.upgrade().is_none_or(|r| r.peek().is_some()))
            {
                state.running.remove(key);
            }
            if let Ok(answer) = &answer
                && keep
                && !self.ttl.is_zero()
            {
                state.keep(key.clone(), answer.clone(), self.ttl);
            }
        }
        answer
    }

    fn join<F>(&self, key: &Key, read: F) -> (Running<T>, u64)
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut state = self.lock();
        let generation = state.generation;
        // A finished read is not joined: whoever asks after the end gets a new answer.
        let same = state.running.get(key).and_then(WeakShared::upgrade);
        if let Some(running) = same.filter(|r| r.peek().is_none()) {
            return (running, generation);
        }
        let running = read.boxed().shared();
        state.running.retain(|_, r| r.upgrade().is_some());
        if let Some(weak) = running.downgrade() {
            state.running.insert(key.clone(), weak);
        }
        (running, generation)
    }

    /// Forgets everything, because something was changed.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.kept.clear();
        state.running.clear();
    }
}

impl<T> State<T> {
    fn keep(&mut self, key: Key, answer: T, ttl: Duration) {
        if self.kept.len() >= MAX_KEPT {
            self.kept.retain(|_, (since, _)| since.elapsed() < ttl);
        }
        if self.kept.len() >= MAX_KEPT {
            self.kept.clear();
        }
        self.kept.insert(key, (Instant::now(), answer));
    }
}

/// Whether the answers of a path are kept: the lists that nearly every tool
/// reads, never the live state of one guest.
pub(crate) fn is_kept(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    matches!(
        segments.as_slice(),
        ["version" | "nodes" | "storage" | "pools"]
            | ["cluster", "resources" | "status" | "options" | "backup" | "replication"]
            | ["cluster", "ha", "resources" | "groups" | "rules"]
            | ["cluster", "backup-info", "not-backed-up"]
            | ["access", "permissions" | "roles"]
            | ["pools", _]
            | ["nodes", _, "status" | "storage" | "version" | "subscription"]
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::Error;

    fn key(path: &str) -> Key {
        (ApiPath::parse(path).unwrap(), Params::new())
    }

    fn counted(count: &Arc<AtomicUsize>) -> impl Future<Output = Result<usize>> + Send + 'static {
        let count = Arc::clone(count);
        async move {
            // Long enough for all that are started together to join.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Ok(count.fetch_add(1, Ordering::SeqCst) + 1)
        }
    }

    #[tokio::test]
    async fn identical_reads_share_one_request_and_its_error() {
        let cache = Cache::new(Duration::from_secs(60));
        let count = Arc::new(AtomicUsize::new(0));
        let k = key("/nodes");
        let (a, b, c) = tokio::join!(
            cache.share(&k, false, counted(&count)),
            cache.share(&k, false, counted(&count)),
            cache.share(&k, false, counted(&count)),
        );
        assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (1, 1, 1));
        assert_eq!(cache.share(&k, false, counted(&count)).await.unwrap(), 2, "none is kept");
        let failing = || async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Err::<usize, _>(Error::internal("x"))
        };
        let (a, b) =
            tokio::join!(cache.share(&k, true, failing()), cache.share(&k, true, counted(&count)));
        assert!(a.is_err() && b.is_err(), "the error is shared");
        assert_eq!(cache.share(&k, true, counted(&count)).await.unwrap(), 3, "and not kept");
    }

    #[tokio::test]
    async fn answers_are_kept_until_a_change() {
        let cache = Cache::new(Duration::from_secs(60));
        let count = Arc::new(AtomicUsize::new(0));
        let k = key("/nodes");
        cache.share(&k, true, counted(&count)).await.unwrap();
        assert_eq!(cache.fresh(&k), Some(1));
        assert_eq!(cache.fresh(&key("/storage")), None);
        cache.forget();
        assert_eq!(cache.fresh(&k), None);
    }

    #[tokio::test]
    async fn a_read_begun_before_a_change_is_neither_joined_nor_kept() {
        let cache = Arc::new(Cache::new(Duration::from_secs(60)));
        let count = Arc::new(AtomicUsize::new(0));
        let (go, gate) = tokio::sync::oneshot::channel::<()>();
        let k = key("/nodes");
        let old = tokio::spawn({
            let (cache, k) = (Arc::clone(&cache), k.clone());
            async move {
                let slow = async move {
                    gate.await.unwrap();
                    Ok(100)
                };
                cache.share(&k, true, slow).await
            }
        });
        while cache.lock().running.is_empty() {
            tokio::task::yield_now().await;
        }
        cache.forget();
        assert_eq!(cache.share(&k, true, counted(&count)).await.unwrap(), 1);
        go.send(()).unwrap();
        assert_eq!(old.await.unwrap().unwrap(), 100);
        assert_eq!(cache.fresh(&k), Some(1), "the old answer does not replace the new one");
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_takes_nobody_with_it() {
        let cache = Cache::new(Duration::ZERO);
        let count = Arc::new(AtomicUsize::new(0));
        let k = key("/nodes");
        let given_up = cache.share(&k, true, counted(&count)).now_or_never();
        assert!(given_up.is_none());
        assert_eq!(cache.share(&k, true, counted(&count)).await.unwrap(), 1);
        assert_eq!(cache.fresh(&k), None, "a time of zero keeps nothing");
    }

    #[test]
    fn lists_are_kept_and_live_states_are_not() {
        for path in ["/nodes", "/cluster/resources", "/nodes/pve1/status", "/version"] {
            assert!(is_kept(path), "{path}");
        }
        for path in [
            "/nodes/pve1/qemu/100/status/current",
            "/nodes/pve1/qemu/100/config",
            "/cluster/tasks",
            "/nodes/pve1/tasks",
            "/cluster/nextid",
        ] {
            assert!(!is_kept(path), "{path}");
        }
    }
}
