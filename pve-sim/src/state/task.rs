//! Tasks: work that goes on after the call has been answered.

use super::State;

/// What a task does when it ends: log lines, or the text it fails with.
pub type Work = Box<dyn FnOnce(&mut State, i64) -> Result<Vec<String>, String> + Send>;

/// A task.
pub struct Task {
    /// The node it runs on.
    pub node: String,
    /// Its process.
    pub pid: u32,
    /// When the process started, in ticks since boot.
    pub pstart: u64,
    /// Milliseconds since the Unix epoch.
    pub start_ms: i64,
    /// When it ends or ended, milliseconds since the Unix epoch.
    pub end_ms: i64,
    /// Its type, e.g. `qmstart`.
    pub kind: String,
    /// What it is about: a number, a name or nothing.
    pub id: String,
    /// `user@realm` or `user@realm!token`.
    pub user: String,
    /// `None` while it runs.
    pub exit: Option<String>,
    /// Its log.
    pub log: Vec<String>,
    /// What is done when it ends.
    work: Option<Work>,
    /// Guests whose lock it holds; given back when it ends or is stopped.
    pub holds: Vec<u32>,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("upid", &self.upid())
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl Task {
    /// Its unique id.
    pub fn upid(&self) -> String {
        format!(
            "UPID:{}:{:08X}:{:08X}:{:08X}:{}:{}:{}:",
            self.node,
            self.pid,
            self.pstart,
            self.start_ms.div_euclid(1000),
            self.kind,
            self.id,
            self.user
        )
    }

    /// Start in Unix seconds.
    pub fn start(&self) -> i64 {
        self.start_ms.div_euclid(1000)
    }

    /// End in Unix seconds.
    pub fn end(&self) -> i64 {
        self.end_ms.div_euclid(1000)
    }

    /// Whether it ended well, warnings included.
    pub fn succeeded(&self) -> bool {
        self.exit.as_deref().is_some_and(|e| e == "OK" || e.starts_with("WARNINGS"))
    }
}

/// What a call wants done in the background.
pub struct Plan {
    /// The task's type.
    pub kind: String,
    /// What it is about.
    pub id: String,
    /// The node it runs on.
    pub node: String,
    /// How long it takes, milliseconds, before the pace is applied.
    pub takes_ms: i64,
    /// Guests whose lock it gives back when it ends.
    pub holds: Vec<u32>,
    /// Log lines written at once.
    pub log: Vec<String>,
    /// What is done at its end.
    pub work: Work,
}

impl Plan {
    /// A task without a log of its own and without a lock.
    pub fn new(
        node: &str,
        kind: &str,
        id: &str,
        takes_ms: i64,
        work: impl FnOnce(&mut State, i64) -> Result<Vec<String>, String> + Send + 'static,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
            node: node.to_owned(),
            takes_ms,
            holds: Vec::new(),
            log: Vec::new(),
            work: Box::new(work),
        }
    }

    /// With lines that are in the log from the start.
    pub fn log(mut self, lines: &[String]) -> Self {
        self.log.extend_from_slice(lines);
        self
    }

    /// Gives guests' locks back when it ends.
    pub fn holding(mut self, vmids: impl IntoIterator<Item = u32>) -> Self {
        self.holds.extend(vmids);
        self
    }
}

/// A task that is over.
pub struct Past<'a> {
    /// The node it ran on.
    pub node: &'a str,
    /// Its type.
    pub kind: &'a str,
    /// What it was about.
    pub id: &'a str,
    /// Who.
    pub user: &'a str,
    /// Start in Unix seconds.
    pub start: i64,
    /// How long it took.
    pub seconds: i64,
    /// Its exit status.
    pub exit: &'a str,
    /// Its log without the last line.
    pub log: Vec<String>,
}

/// All tasks, oldest first.
#[derive(Debug)]
pub struct Tasks {
    /// The tasks.
    pub all: Vec<Task>,
    /// Multiplies how long tasks take.
    pub pace: f64,
    next_pid: u32,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { all: Vec::new(), pace: 1.0, next_pid: 4200 }
    }
}

impl Tasks {
    /// A fresh process id.
    pub fn pid(&mut self) -> u32 {
        self.next_pid += 7;
        self.next_pid
    }

    /// Adds a task of the past.
    pub fn past(&mut self, past: Past<'_>) {
        let pid = self.pid();
        let mut log = past.log;
        log.push(last_line(past.exit));
        self.all.push(Task {
            node: past.node.to_owned(),
            pid,
            pstart: 60_000 + u64::from(pid) * 13,
            start_ms: past.start * 1000,
            end_ms: (past.start + past.seconds) * 1000,
            kind: past.kind.to_owned(),
            id: past.id.to_owned(),
            user: past.user.to_owned(),
            exit: Some(past.exit.to_owned()),
            log,
            work: None,
            holds: Vec::new(),
        });
    }

    /// A task by its id.
    pub fn get(&self, upid: &str) -> Option<&Task> {
        self.all.iter().find(|t| t.upid() == upid)
    }

    fn get_mut(&mut self, upid: &str) -> Option<&mut Task> {
        self.all.iter_mut().find(|t| t.upid() == upid)
    }

    /// The running task that is due first: its place.
    pub(crate) fn take_due(&mut self, now_ms: i64) -> Option<usize> {
        let due =
            self.all.iter().enumerate().filter(|(_, t)| t.exit.is_none() && t.end_ms <= now_ms);
        due.min_by_key(|(_, t)| t.end_ms).map(|(at, _)| at)
    }
}

fn last_line(exit: &str) -> String {
    match exit {
        "OK" => "TASK OK".to_owned(),
        w if w.starts_with("WARNINGS") => format!("TASK {w}"),
        e => format!("TASK ERROR: {e}"),
    }
}

/// Starts a task and gives its id.
pub(crate) fn start(state: &mut State, user: &str, now_ms: i64, plan: Plan) -> String {
    let pid = state.tasks.pid();
    let boot = state.nodes.get(&plan.node).map_or(0, |n| n.boot);
    let ticks = u64::try_from((now_ms - boot * 1000).max(0) / 10).unwrap_or(0);
    let takes = (plan.takes_ms as f64 * state.tasks.pace) as i64;
    let task = Task {
        node: plan.node,
        pid,
        pstart: ticks & 0xFFFF_FFFF,
        start_ms: now_ms,
        end_ms: now_ms + takes,
        kind: plan.kind,
        id: plan.id,
        user: user.to_owned(),
        exit: None,
        log: plan.log,
        work: Some(plan.work),
        holds: plan.holds,
    };
    let upid = task.upid();
    state.note(task.start(), user, "pvedaemon", format!("starting task {upid}"));
    state.tasks.all.push(task);
    upid
}

fn unlock(state: &mut State, guests: &[u32]) {
    for vmid in guests {
        if let Some(guest) = state.guests.get_mut(vmid) {
            guest.unlock();
        }
    }
}

/// Ends the task at this place: its work is done now.
pub(crate) fn finish(state: &mut State, at: usize) {
    let Some(task) = state.tasks.all.get_mut(at) else { return };
    let (work, end_ms, holds) = (task.work.take(), task.end_ms, std::mem::take(&mut task.holds));
    // Set before the work, which may look at the tasks.
    task.exit = Some("OK".to_owned());
    unlock(state, &holds);
    let result = work.map_or(Ok(Vec::new()), |w| w(state, end_ms));
    let Some(task) = state.tasks.all.get_mut(at) else { return };
    match result {
        Ok(mut lines) => {
            // A last line may carry the exit status, as with warnings.
            let warned = lines.iter().filter(|l| l.starts_with("WARN")).count();
            if warned > 0 {
                task.exit = Some(format!("WARNINGS: {warned}"));
            }
            task.log.append(&mut lines);
        }
        Err(text) => {
            let mut lines: Vec<&str> = text.lines().collect();
            let last = lines.pop().unwrap_or("");
            task.log.extend(lines.into_iter().map(str::to_owned));
            task.exit = Some(last.to_owned());
        }
    }
    let exit = task.exit.clone().unwrap_or_default();
    task.log.push(last_line(&exit));
    let (upid, user, end) = (task.upid(), task.user.clone(), task.end());
    state.note(end, &user, "pvedaemon", format!("end task {upid} {exit}"));
}

/// Stops a running task; its work is not done.
pub(crate) fn stop(state: &mut State, upid: &str, now_ms: i64) {
    let Some(task) = state.tasks.get_mut(upid).filter(|t| t.exit.is_none()) else { return };
    task.exit = Some("unexpected status".to_owned());
    task.end_ms = now_ms;
    task.work = None;
    let holds = std::mem::take(&mut task.holds);
    unlock(state, &holds);
}
