use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;

use super::*;

/// Answers every question after having been polled twice; `slow` ones never, `down` ones with a no.
#[derive(Default)]
struct Counting {
    asked: Mutex<Vec<String>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    impatient: bool,
}

impl State for Counting {
    async fn get(&self, path: &ApiPath, _: &Params) -> Result<Arc<Value>> {
        self.asked.lock().unwrap().push(path.to_string());
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let mut waited = false;
        future::poll_fn(|cx| {
            if std::mem::replace(&mut waited, true) {
                return std::task::Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
        if path.as_str().contains("slow") {
            future::pending::<()>().await;
        }
        if path.as_str().contains("down") {
            return Err(Error::new(Code::Unauthorized, "no such token"));
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        Ok(Arc::new(json!(path.to_string())))
    }

    async fn patience(&self) {
        if !self.impatient {
            future::pending::<()>().await;
        }
    }
}

fn settle<T>(state: &Counting, check: impl Fn(&Facts) -> T) -> T {
    futures::executor::block_on(Facts::default().settle(state, check))
}

#[test]
fn a_few_questions_are_under_way_at_once_and_each_goes_out_once() {
    for ask in [Facts::ask, Facts::look] {
        let state = Counting::default();
        let names: Vec<String> = (0..100).map(|n| format!("n{n:03}")).collect();
        let answered = settle(&state, |facts| {
            names.iter().filter(|name| ask(facts, &["x", name], Params::new()).is_ok()).count()
        });
        assert_eq!(answered, 100);
        assert_eq!(state.most.load(Ordering::SeqCst), AT_ONCE);
        assert_eq!(state.asked.lock().unwrap().len(), 100);
    }
}

#[test]
fn what_decides_is_asked_before_what_is_only_told() {
    let state = Counting::default();
    settle(&state, |facts| {
        for name in ["a", "c"] {
            let _ = facts.look(&[name], Params::new());
        }
        let _ = facts.ask(&["b"], Params::new());
        // Asked in both ways it decides.
        let _ = facts.ask(&["c"], Params::new());
        let _ = facts.look(&["c"], Params::new());
    });
    assert_eq!(*state.asked.lock().unwrap(), ["/b", "/c", "/a"]);
}

#[test]
fn patience_ends_for_what_is_told_and_never_for_what_decides() {
    let state = Counting { impatient: true, ..Counting::default() };
    let (decided, told, later) = settle(&state, |facts| {
        let decided = facts.ask(&["a"], Params::new()).is_ok();
        let told = facts.look(&["slow"], Params::new()).map_err(|e| e.code);
        // What an answer raises after that is not asked any more.
        let later = facts.look(&["later"], Params::new()).map_err(|e| e.code);
        (decided, told.err(), if decided { later.err() } else { None })
    });
    assert!(decided);
    assert_eq!((told, later), (Some(Code::Timeout), Some(Code::Timeout)));
}

#[test]
fn nothing_is_looked_up_where_nobody_lets_us_in() {
    let state = Counting::default();
    let told = settle(&state, |facts| {
        let _ = facts.ask(&["down"], Params::new());
        facts.look(&["a"], Params::new()).map_err(|e| e.code).err()
    });
    assert_eq!(told, Some(Code::Unauthorized));
    assert_eq!(*state.asked.lock().unwrap(), ["/down"]);
}
