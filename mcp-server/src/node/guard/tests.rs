//! The client against guards that answer as they are told.

use std::io;

use pve_guard::protocol::PctExec;
use serde_json::json;

use super::*;
use crate::{
    Code,
    node::link::{Exit, Failure, Link, Streams},
};

/// Answers a request: gets it, may read further lines, gives the answer.
type Play = dyn Fn(&Value, &mut dyn FnMut() -> Option<String>) -> String + Send + Sync;

struct Fake {
    play: Arc<Play>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Connector for Fake {
    fn connect(&self) -> Result<Box<dyn Link>> {
        Ok(Box::new(Fake { play: self.play.clone(), seen: self.seen.clone() }))
    }
}

impl Link for Fake {
    fn exec(&mut self, streams: &mut Streams) -> Result<Exit, Failure> {
        let mut next =
            || streams.input.blocking_recv().map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(streams.start.begin());
        let request: Value = serde_json::from_str(&next().unwrap()).unwrap();
        self.seen.lock().unwrap().push(request.clone());
        let answer = match request["verb"].as_str() {
            Some("hello") if request["node"].is_null() => hello("pve1", &[1]),
            _ => (self.play)(&request, &mut next),
        };
        let _ = streams.output.blocking_send(Output::Stdout(answer.into_bytes()));
        Ok(Exit::default())
    }

    fn keep_alive(&mut self) -> bool {
        true
    }
}

fn hello(node: &str, protocols: &[u64]) -> String {
    let done = json!({
        "version": "0.1.0", "protocols": protocols, "sha256": "", "node": node,
        "policy_sha256": "", "verbs": [], "pve_manager": null, "kernel": "6.14.8-2-pve",
    });
    format!("{}\n", json!({ "done": done }))
}

fn kernels() -> String {
    let done = json!({
        "installed": [], "pinned": null, "next_boot": null, "running": "x", "newest": null,
    });
    format!("{}\n", json!({ "done": done }))
}

type Seen = Arc<Mutex<Vec<Value>>>;

fn guard(
    play: impl Fn(&Value, &mut dyn FnMut() -> Option<String>) -> String + Send + Sync + 'static,
) -> (Guard, Seen) {
    let (play, seen) = (Arc::new(play) as Arc<Play>, Seen::default());
    let kept = seen.clone();
    let make = move |_: Option<&NodeName>| -> Box<dyn Connector> {
        Box::new(Fake { play: play.clone(), seen: kept.clone() })
    };
    (Guard::with(make), seen)
}

fn verbs(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    seen.iter().map(|request| request["verb"].as_str().unwrap().to_owned()).collect()
}

fn node(name: &str) -> NodeName {
    NodeName::parse(name).unwrap()
}

fn pin() -> Verb {
    Verb::KernelPin { version: "6.14.8-2-pve".into(), next_boot: false }
}

fn exec(stdin: bool) -> Verb {
    Verb::PctExec(PctExec {
        vmid: 200,
        hostname: None,
        argv: vec!["cat".into()],
        timeout_s: 5,
        max_output: 1024,
        stdin,
    })
}

#[tokio::test]
async fn a_guard_is_asked_its_name_once_before_anything_else() {
    let (guard, seen) = guard(|request, _| {
        assert_eq!(request["node"], "pve1");
        kernels()
    });
    for _ in 0..2 {
        guard.kernel_list(&node("pve1")).await.unwrap();
    }
    assert_eq!(verbs(&seen), ["hello", "kernel-list", "kernel-list"]);
}

#[tokio::test]
async fn nothing_is_asked_of_another_node_s_guard() {
    let (guard, seen) = guard(|_, _| kernels());
    let permit = GuardPermit::grant(node("pve2"), pin()).unwrap();
    let error = guard.kernel_change(permit).await.unwrap_err();
    assert_eq!(error.code, Code::GuardRefused);
    assert_eq!(error.details["guard_code"], "wrong_node");
    assert!(error.message.contains("pve1") && error.message.contains("pve2"), "{error}");
    assert_eq!(verbs(&seen), ["hello"]);
}

#[test]
fn a_guard_that_cannot_be_trusted_or_understood_is_not_used() {
    let answer = |text: &str| {
        let line: Value = serde_json::from_str(text).unwrap();
        serde_json::from_value::<Hello>(line["done"].clone()).unwrap()
    };
    let pve1 = node("pve1");
    meet(Some(&pve1), &answer(&hello("pve1", &[1, 2]))).unwrap();
    meet(None, &answer(&hello("any", &[1]))).unwrap();
    let newer = meet(Some(&pve1), &answer(&hello("pve1", &[2]))).unwrap_err();
    assert_eq!(newer.details["guard_code"], "protocol_unsupported");
    if cfg!(not(feature = "test-support")) {
        let testing = Hello { test_programs: true, ..answer(&hello("pve1", &[1])) };
        assert!(meet(Some(&pve1), &testing).is_err());
    }
}

#[tokio::test]
async fn a_permit_is_good_for_its_own_verb_alone() {
    let (guard, seen) = guard(|_, _| kernels());
    let permit = |verb| GuardPermit::grant(node("pve1"), verb).unwrap();
    let refresh = Verb::UpgradeSimulate { refresh: true };
    assert!(guard.kernel_change(permit(exec(false))).await.is_err());
    assert!(guard.pct_exec(permit(pin()), Io::default()).await.is_err());
    assert!(guard.pct_exec(permit(exec(true)), Io::default()).await.is_err(), "input is missing");
    assert!(guard.upgrade_start(permit(refresh.clone()), Io::default()).await.is_err());
    assert!(guard.upgrade_refresh(permit(pin()), Io::default()).await.is_err());
    assert!(guard.read(&node("pve1"), refresh, Io::default()).await.is_err());
    assert_eq!(verbs(&seen), [""; 0]);
}

#[tokio::test]
async fn what_the_permit_says_is_what_is_sent() {
    let (guard, seen) = guard(|_, _| kernels());
    let permit = GuardPermit::grant(node("pve1"), pin()).unwrap();
    let id = permit.id().to_owned();
    guard.kernel_change(permit).await.unwrap();
    let sent = seen.lock().unwrap()[1].clone();
    let wanted = json!({
        "v": 1, "id": id, "verb": "kernel-pin", "node": "pve1",
        "version": "6.14.8-2-pve", "next_boot": false,
    });
    assert_eq!(sent, wanted);
}

#[tokio::test]
async fn input_that_cannot_be_read_ends_the_command_and_not_just_the_input() {
    type Lines = Arc<Mutex<Vec<String>>>;

    /// Four bytes, and once the guard has them, nothing more.
    struct Broken(bool, Lines);
    impl AsyncRead for Broken {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            if !std::mem::replace(&mut self.0, true) {
                buffer.put_slice(b"half");
            } else if self.1.lock().unwrap().is_empty() {
                context.waker().wake_by_ref();
                return std::task::Poll::Pending;
            } else {
                return std::task::Poll::Ready(Err(io::Error::other("torn")));
            }
            std::task::Poll::Ready(Ok(()))
        }
    }
    let lines = Lines::default();
    let heard = lines.clone();
    let (guard, _) = guard(move |_, next| {
        loop {
            let line = next().expect("the input stays open until the answer");
            heard.lock().unwrap().push(line.clone());
            if line.contains("cancel") {
                let done = ExecDone { cancelled: true, ..ExecDone::default() };
                return format!("{}\n", json!({ "done": done }));
            }
        }
    });
    let permit = GuardPermit::grant(node("pve1"), exec(true)).unwrap();
    let io = Io { stdin: Some(Box::pin(Broken(false, lines.clone()))), ..Io::default() };
    let error = guard.pct_exec(permit, io).await.unwrap_err();
    assert!(error.message.ends_with("torn"), "{error}");
    let lines = lines.lock().unwrap();
    assert_eq!(*lines, ["{\"stdin\":\"aGFsZg==\"}\n", "{\"cancel\":true}\n"]);
}

#[tokio::test]
async fn an_answer_of_another_form_is_no_answer() {
    let (guard, _) = guard(|_, _| "{\"done\":{\"installed\":7}}\n".to_owned());
    let error = guard.kernel_list(&node("pve1")).await.unwrap_err();
    assert_eq!(error.ssh_step(), Some(crate::node::Step::Guard), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_while_it_waits_is_never_sent() {
    let gate = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let wait = gate.clone();
    let (guard, seen) = guard(move |_, _| {
        let open = wait.0.lock().unwrap();
        drop(wait.1.wait_while(open, |open| !*open).unwrap());
        kernels()
    });
    let guard = Arc::new(guard);
    guard.hello(Some(&node("pve1"))).await.unwrap();
    let busy: Vec<_> = (0..crate::node::MAX_LINKS)
        .map(|_| {
            let guard = guard.clone();
            tokio::spawn(async move { guard.kernel_list(&node("pve1")).await })
        })
        .collect();
    while seen.lock().unwrap().len() < 1 + busy.len() {
        tokio::task::yield_now().await;
    }
    let io = Io::default();
    let cancel = io.cancel.clone();
    let permit = GuardPermit::grant(node("pve1"), exec(false)).unwrap();
    let (ran, ()) = tokio::join!(guard.pct_exec(permit, io), async { cancel.cancel() });
    assert_eq!(ran.unwrap_err().code, Code::Cancelled);
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    for task in busy {
        task.await.unwrap().unwrap();
    }
    guard.kernel_list(&node("pve1")).await.unwrap();
    assert!(!verbs(&seen).contains(&"pct-exec".to_owned()), "{:?}", verbs(&seen));

    // And one that was cancelled before it began.
    let io = Io::default();
    io.cancel.cancel();
    let permit = GuardPermit::grant(node("pve1"), exec(false)).unwrap();
    assert_eq!(guard.pct_exec(permit, io).await.unwrap_err().code, Code::Cancelled);
}
