//! The pool over links that do as they are told.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::node::link::Step;

/// Counts what the pool does, and holds running commands back.
#[derive(Default)]
struct Stage {
    connected: AtomicUsize,
    running: Mutex<Running>,
    changed: Condvar,
    /// How the next commands end; empty means well.
    script: Mutex<VecDeque<Result<(), bool>>>,
    refuses: bool,
}

#[derive(Default)]
struct Running {
    now: usize,
    most: usize,
    begun: usize,
    released: usize,
}

struct Fake(Arc<Stage>);
struct FakeLink(Arc<Stage>);

impl Connector for Fake {
    fn connect(&self) -> Result<Box<dyn Link>> {
        self.0.connected.fetch_add(1, Ordering::SeqCst);
        if self.0.refuses {
            return Err(Step::Reach.failed("nobody there"));
        }
        Ok(Box::new(FakeLink(self.0.clone())))
    }
}

impl Link for FakeLink {
    fn exec(&mut self, _: &mut Streams) -> Result<Exit, Failure> {
        let stage = &self.0;
        let ends = stage.script.lock().unwrap().pop_front().unwrap_or(Ok(()));
        let mut running = stage.running.lock().unwrap();
        running.now += 1;
        running.begun += 1;
        running.most = running.most.max(running.now);
        let mine = running.begun;
        stage.changed.notify_all();
        while running.released < mine {
            running = stage.changed.wait(running).unwrap();
        }
        running.now -= 1;
        drop(running);
        let failure = |sent| Failure { error: Step::Guard.failed("cut"), sent };
        ends.map(|()| Exit::default()).map_err(failure)
    }

    fn keep_alive(&mut self) -> bool {
        true
    }
}

impl Stage {
    fn release(&self, count: usize) {
        self.running.lock().unwrap().released += count;
        self.changed.notify_all();
    }

    fn wait_begun(&self, count: usize) {
        let running = self.running.lock().unwrap();
        drop(self.changed.wait_while(running, |r| r.begun < count).unwrap());
    }
}

fn pool(stage: &Arc<Stage>) -> Pool {
    Pool::new("test", Box::new(Fake(stage.clone())))
}

fn end(mut exec: Exec) -> Result<Exit, Failure> {
    match exec.output.blocking_recv() {
        Some(Output::End(end)) => end,
        other => panic!("{other:?}"),
    }
}

fn start(pool: &Pool) -> Exec {
    pool.exec(Duration::from_secs(60)).unwrap()
}

#[test]
fn no_more_than_the_most_run_at_once_and_the_rest_waits() {
    let stage = Arc::new(Stage::default());
    let pool = pool(&stage);
    let execs: Vec<_> = (0..64).map(|_| start(&pool)).collect();
    stage.wait_begun(MAX_LINKS);
    assert_eq!(stage.running.lock().unwrap().now, MAX_LINKS);
    stage.release(64);
    for exec in execs {
        end(exec).unwrap();
    }
    assert_eq!(stage.running.lock().unwrap().most, MAX_LINKS);
    assert_eq!(stage.connected.load(Ordering::SeqCst), MAX_LINKS);
}

#[test]
fn one_after_the_other_uses_one_connection() {
    let stage = Arc::new(Stage::default());
    stage.release(100);
    let pool = pool(&stage);
    for _ in 0..50 {
        end(start(&pool)).unwrap();
    }
    assert_eq!(stage.connected.load(Ordering::SeqCst), 1);
}

#[test]
fn a_dead_connection_is_replaced_only_while_nothing_was_sent() {
    for (sent, connections, well) in [(false, 2, true), (true, 1, false)] {
        let stage = Arc::new(Stage::default());
        stage.release(100);
        *stage.script.lock().unwrap() = [Ok(()), Err(sent)].into();
        let pool = pool(&stage);
        end(start(&pool)).unwrap();
        assert_eq!(end(start(&pool)).is_ok(), well, "sent: {sent}");
        assert_eq!(stage.connected.load(Ordering::SeqCst), connections, "sent: {sent}");
    }
}

#[test]
fn a_fresh_connection_that_fails_is_not_tried_again() {
    let stage = Arc::new(Stage::default());
    stage.release(100);
    *stage.script.lock().unwrap() = [Err(false)].into();
    let pool = pool(&stage);
    assert!(!end(start(&pool)).unwrap_err().sent);
    assert_eq!(stage.connected.load(Ordering::SeqCst), 1);
}

#[test]
fn who_cannot_connect_hears_why() {
    let stage = Arc::new(Stage { refuses: true, ..Stage::default() });
    let failure = end(start(&pool(&stage))).unwrap_err();
    assert_eq!((failure.error.ssh_step(), failure.sent), (Some(Step::Reach), false));
}

#[test]
fn what_nobody_waits_for_is_not_begun() {
    let stage = Arc::new(Stage::default());
    let pool = pool(&stage);
    let first: Vec<_> = (0..MAX_LINKS).map(|_| start(&pool)).collect();
    stage.wait_begun(MAX_LINKS);
    drop(start(&pool));
    let last = start(&pool);
    stage.release(64);
    for exec in first {
        end(exec).unwrap();
    }
    end(last).unwrap();
    assert_eq!(stage.running.lock().unwrap().begun, MAX_LINKS + 1);
}
