//! Client half of the guard's protocol: one typed call a verb.

use std::{
    collections::{HashMap, HashSet},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pve_guard::protocol::{
    self, ExecDone, Hello, Input, Kernels, MAX_CHUNK, Plan, Progress, Refused, Request,
    UpgradeStarted, UpgradeStatus, Verb,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{Answer, Heard},
    link::{Connector, Output},
    pool::Pool,
    ssh::Ssh2,
    target,
};
use crate::{Code, Error, Result, config::Config, pve::NodeName};

/// How long the guard may take to end a command that was cancelled: 5 s
/// between TERM and KILL, and what the way there takes.
const CANCEL: Duration = Duration::from_secs(8);
/// How long that may take to be said.
const SAY_CANCEL: Duration = Duration::from_millis(500);
/// What a command may take on our side beyond its own time.
const EXEC_SLACK: Duration = Duration::from_secs(20);

/// Leave to have the guard of one node do one thing once. Only the gate makes
/// one, as it alone makes a [`Permit`](crate::safety::Permit); every verb that
/// changes something demands it in `Guard::change`, and what stands in it is
/// what is sent.
#[derive(Debug)]
pub struct GuardPermit {
    id: String,
    node: NodeName,
    verb: Verb,
}

impl GuardPermit {
    /// For the gate alone.
    ///
    /// # Errors
    /// `internal` when the system gives no random bytes.
    pub(crate) fn grant(node: NodeName, verb: Verb) -> Result<Self> {
        Ok(Self { id: request_id()?, node, verb })
    }

    /// For tests of other crates.
    ///
    /// # Errors
    /// As for the gate's own.
    #[cfg(feature = "test-support")]
    pub fn for_test(node: NodeName, verb: Verb) -> Result<Self> {
        Self::grant(node, verb)
    }

    /// What the node's journal will call this request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The node that is meant.
    #[must_use]
    pub const fn node(&self) -> &NodeName {
        &self.node
    }

    /// What will be asked for.
    #[must_use]
    pub const fn verb(&self) -> &Verb {
        &self.verb
    }
}

/// Hears what a running verb says.
pub type OnEvent<'a> = Box<dyn FnMut(Event<'_>) + Send + 'a>;

/// What a running verb is connected to on our side.
#[derive(Default)]
pub struct Io<'a> {
    /// Input of the command; it is carried in chunks as the command reads it.
    pub stdin: Option<Pin<Box<dyn AsyncRead + Send + 'a>>>,
    /// Hears output and progress as they come. It should be quick: the command
    /// waits for it.
    pub on_event: Option<OnEvent<'a>>,
    /// Ends the command when it fires.
    pub cancel: CancellationToken,
}

/// Something that a running verb says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes of the command's standard output.
    Stdout(&'a [u8]),
    /// Bytes of the command's standard error.
    Stderr(&'a [u8]),
    /// How far a longer verb is.
    Progress(&'a Progress),
}

type MakeConnector = dyn Fn(Option<&NodeName>) -> Box<dyn Connector> + Send + Sync;

/// The guards of all nodes.
pub struct Guard {
    connect: Box<MakeConnector>,
    /// `None` is the node of the API's first host, whatever its name.
    pools: Mutex<HashMap<Option<NodeName>, Arc<Pool>>>,
    /// Nodes whose guard has said that it is the one meant.
    met: Mutex<HashSet<NodeName>>,
}

impl Guard {
    /// Guards reached by SSH as the configuration says. Nothing is connected
    /// yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let config = Arc::new(config.clone());
        Self::with(move |node| Box::new(ByConfig { config: config.clone(), node: node.cloned() }))
    }

    /// Guards reached in another way.
    pub fn with(
        connect: impl Fn(Option<&NodeName>) -> Box<dyn Connector> + Send + Sync + 'static,
    ) -> Self {
        let (pools, met) = (Mutex::default(), Mutex::default());
        Self { connect: Box::new(connect), pools, met }
    }

    /// What the guard of a node is and what its policy allows; without a node
    /// it is that of the API's first host.
    ///
    /// # Errors
    /// `ssh_failed` with the step; `guard_refused` with `wrong_node` when it
    /// is another node's guard that answers.
    pub async fn hello(&self, node: Option<&NodeName>) -> Result<Hello> {
        let request = Request { id: request_id()?, node: None, verb: Verb::Hello };
        let hello: Hello = typed(self.send(node, request, Io::default()).await?)?;
        meet(node, &hello)?;
        lock(&self.met).extend(node.cloned());
        Ok(hello)
    }

    /// What an upgrade would do, with the package lists as they are.
    ///
    /// # Errors
    /// As of every verb: `ssh_failed`, `guard_refused`, `cancelled`.
    pub async fn upgrade_simulate(&self, node: &NodeName, io: Io<'_>) -> Result<Plan> {
        typed(self.read(node, Verb::UpgradeSimulate { refresh: false }, io).await?)
    }

    /// How the upgrade stands; `cursor` of the answer before leaves out the
    /// lines that are known.
    ///
    /// # Errors
    /// As of every verb.
    pub async fn upgrade_status(
        &self,
        node: &NodeName,
        cursor: Option<String>,
    ) -> Result<UpgradeStatus> {
        typed(self.read(node, Verb::UpgradeStatus { cursor }, Io::default()).await?)
    }

    /// The installed kernels and which of them will boot.
    ///
    /// # Errors
    /// As of every verb.
    pub async fn kernel_list(&self, node: &NodeName) -> Result<Kernels> {
        typed(self.read(node, Verb::KernelList, Io::default()).await?)
    }

    /// Runs a command in a container.
    ///
    /// # Errors
    /// As of every verb; `outcome_unknown` when the connection was lost while
    /// it ran. A command that fails is no error: see `exit_code`.
    pub async fn pct_exec(&self, permit: GuardPermit, io: Io<'_>) -> Result<ExecDone> {
        match permit.verb() {
            Verb::PctExec(exec) if exec.stdin == io.stdin.is_some() => {
                typed(self.change(permit, io).await?)
            }
            Verb::PctExec(_) => Err(Error::internal("the permit and the input do not agree")),
            _ => Err(not_for("pct-exec")),
        }
    }

    /// What an upgrade would do, after the package lists were fetched anew.
    ///
    /// # Errors
    /// As of every verb.
    pub async fn upgrade_refresh(&self, permit: GuardPermit, io: Io<'_>) -> Result<Plan> {
        match permit.verb() {
            Verb::UpgradeSimulate { refresh: true } => typed(self.change(permit, io).await?),
            _ => Err(not_for("upgrade-simulate")),
        }
    }

    /// Begins the upgrade that was agreed to.
    ///
    /// # Errors
    /// As of every verb; `outcome_unknown` when the connection was lost:
    /// [`Guard::upgrade_status`] tells whether it began.
    pub async fn upgrade_start(&self, permit: GuardPermit, io: Io<'_>) -> Result<UpgradeStarted> {
        match permit.verb() {
            Verb::UpgradeStart { .. } => typed(self.change(permit, io).await?),
            _ => Err(not_for("upgrade-start")),
        }
    }

    /// Pins a kernel or takes the pin away.
    ///
    /// # Errors
    /// As of every verb; `outcome_unknown` when the connection was lost:
    /// [`Guard::kernel_list`] tells what is pinned.
    pub async fn kernel_change(&self, permit: GuardPermit) -> Result<Kernels> {
        match permit.verb() {
            Verb::KernelPin { .. } | Verb::KernelUnpin { .. } => {
                typed(self.change(permit, Io::default()).await?)
            }
            _ => Err(not_for("kernel-pin and kernel-unpin")),
        }
    }

    /// The one way of every verb that changes something: no permit, no request.
    async fn change(&self, permit: GuardPermit, io: Io<'_>) -> Result<Value> {
        let GuardPermit { id, node, verb } = permit;
        self.be_sure_of(&node).await?;
        let request = Request { id, node: Some(node.as_str().into()), verb };
        self.send(Some(&node), request, io).await
    }

    /// The way of every verb that changes nothing.
    async fn read(&self, node: &NodeName, verb: Verb, io: Io<'_>) -> Result<Value> {
        if verb.changes() {
            return Err(Error::internal(format!("{} needs a permit", verb.name().as_str())));
        }
        self.be_sure_of(node).await?;
        let request = Request { id: request_id()?, node: Some(node.as_str().into()), verb };
        self.send(Some(node), request, io).await
    }

    /// Asks a guard its node's name before the first thing is asked of it. It
    /// compares by itself, too.
    async fn be_sure_of(&self, node: &NodeName) -> Result<()> {
        if lock(&self.met).contains(node) {
            return Ok(());
        }
        self.hello(Some(node)).await.map(drop)
    }

    fn pool(&self, node: Option<&NodeName>) -> Arc<Pool> {
        let mut pools = lock(&self.pools);
        let made = || Arc::new(Pool::new(label(node), (self.connect)(node)));
        pools.entry(node.cloned()).or_insert_with(made).clone()
    }

    /// Sends one request and waits for its last line.
    async fn send(
        &self,
        node: Option<&NodeName>,
        request: Request,
        mut io: Io<'_>,
    ) -> Result<Value> {
        let line = request.to_line().map_err(|e| unsendable(&e))?;
        let limit = limit_of(&request.verb);
        if io.cancel.is_cancelled() {
            return Err(not_sent(&request.verb));
        }
        let mut exec = self.pool(node).exec(limit)?;
        let mut answer = Answer::new(label(node), &request.verb);
        let input = exec.input.clone().ok_or_else(|| Error::internal("a command without input"))?;
        let mut feed = pin!(feed(input, line, io.stdin.take(), io.cancel.clone()));
        let (mut give_up, mut torn) = (None, None);
        loop {
            tokio::select! {
                piece = exec.output.recv() => match piece {
                    Some(Output::Stdout(bytes)) => answer.stdout(&bytes, &mut |heard| {
                        if let Some(on_event) = &mut io.on_event {
                            on_event(heard);
                        }
                    }),
                    Some(Output::Stderr(bytes)) => answer.stderr(&bytes),
                    Some(Output::End(end)) => {
                        let answer = answer.conclude(Heard::End(end));
                        return torn.map_or(answer, Err);
                    }
                    None => return answer.conclude(Heard::Gone),
                },
                fed = &mut feed, if give_up.is_none() => {
                    if exec.start.withdraw() {
                        return Err(fed.torn.unwrap_or_else(|| not_sent(&request.verb)));
                    }
                    if !fed.said {
                        exec.input = None;
                    }
                    torn = fed.torn;
                    give_up = Some(Instant::now() + CANCEL);
                }
                () = sleep_until(give_up.unwrap_or_else(Instant::now)), if give_up.is_some() => {
                    return answer.conclude(Heard::Cancelled);
                }
            }
        }
    }
}

/// How feeding a command ended, other than by its own end.
struct Fed {
    /// Whether the guard was told to end it. A command that takes no input
    /// leaves no room for that, and the end of its input has to do.
    said: bool,
    /// Why: its input could not be read to the end.
    torn: Option<Error>,
}

/// Says everything that is to be said to the guard: the request, the input,
/// and, when `cancel` fires or the input cannot be read, that the command is to
/// end. Comes back only after that.
async fn feed(
    input: mpsc::Sender<Vec<u8>>,
    request: String,
    stdin: Option<Pin<Box<dyn AsyncRead + Send + '_>>>,
    cancel: CancellationToken,
) -> Fed {
    let speak = async {
        // A closed channel shows as the end of the output.
        let _ = input.send(request.into_bytes()).await;
        if let Some(mut stdin) = stdin {
            let mut chunk = vec![0; MAX_CHUNK];
            loop {
                match stdin.read(&mut chunk).await {
                    Ok(0) => break,
                    Ok(count) => {
                        let bytes = chunk.get(..count).unwrap_or_default().to_vec();
                        let _ = input.send(Input::Data(bytes).to_line().into_bytes()).await;
                    }
                    // Half an input must not pass for a whole one.
                    Err(error) => {
                        let cause = format!("the command's input cannot be read: {error}");
                        return Error::internal(cause).hint("the command was ended");
                    }
                }
            }
            let _ = input.send(Input::End.to_line().into_bytes()).await;
        }
        std::future::pending().await
    };
    let torn = tokio::select! {
        error = speak => Some(error),
        () = cancel.cancelled() => None,
    };
    let say = input.send(Input::Cancel.to_line().into_bytes());
    let said = matches!(tokio::time::timeout(SAY_CANCEL, say).await, Ok(Ok(())));
    Fed { said, torn }
}

/// Connects to a node as the configuration says at that time, so that a key
/// pinned meanwhile is taken up.
struct ByConfig {
    config: Arc<Config>,
    node: Option<NodeName>,
}

impl Connector for ByConfig {
    fn connect(&self) -> Result<Box<dyn super::Link>> {
        Ssh2 { target: target::of_node(&self.config, self.node.as_ref())? }.connect()
    }
}

/// Checks that the guard that answers is the one meant, and can be trusted.
fn meet(node: Option<&NodeName>, hello: &Hello) -> Result<()> {
    let refuse = |code: protocol::Code, message: String, hint: &str| {
        Err(super::answer::refused(label(node), &Refused::new(code, message).hint(hint)))
    };
    if let Some(node) = node.filter(|node| node.as_str() != hello.node) {
        return refuse(
            protocol::Code::WrongNode,
            format!("the guard that answers is on node {}, not on {node}", hello.node),
            "give each node its own address: PROXMOX_SSH_NODES=name=address,…",
        );
    }
    if !hello.protocols.contains(&protocol::VERSION) {
        return refuse(
            protocol::Code::ProtocolUnsupported,
            format!("it speaks protocol {:?}, not {}", hello.protocols, protocol::VERSION),
            "install the package that `proxmox-mcp ssh-guard` writes",
        );
    }
    if hello.test_programs && !cfg!(feature = "test-support") {
        return refuse(
            protocol::Code::Internal,
            "it is a build for tests, whose programs can be replaced".into(),
            "install the package that `proxmox-mcp ssh-guard` writes",
        );
    }
    Ok(())
}

/// Longest time from request to answer.
fn limit_of(verb: &Verb) -> Duration {
    let seconds = match verb {
        Verb::Hello => 20,
        Verb::KernelList | Verb::UpgradeStatus { .. } => 60,
        Verb::UpgradeSimulate { .. } | Verb::UpgradeStart { .. } => 600,
        Verb::KernelPin { .. } | Verb::KernelUnpin { .. } => 300,
        Verb::PctExec(exec) => return Duration::from_secs(exec.timeout_s) + EXEC_SLACK,
    };
    Duration::from_secs(seconds)
}

fn typed<T: DeserializeOwned>(answer: Value) -> Result<T> {
    serde_json::from_value(answer).map_err(|e| {
        super::Step::Guard
            .failed(format!("the guard's answer is not of the known form: {e}"))
            .hint("install the package that `proxmox-mcp ssh-guard` writes")
    })
}

/// The guard would refuse this, so it is not sent.
fn unsendable(refused: &Refused) -> Error {
    Error::argument(refused.message.clone())
        .hint(refused.hint.clone())
        .with("guard_code", refused.code.as_str())
}

fn not_sent(verb: &Verb) -> Error {
    let verb = verb.name().as_str();
    Error::new(Code::Cancelled, format!("{verb} was cancelled before it was sent"))
}

fn not_for(verb: &str) -> Error {
    Error::internal(format!("the permit is not for {verb}"))
}

fn label(node: Option<&NodeName>) -> &str {
    node.map_or("the node", NodeName::as_str)
}

fn request_id() -> Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|e| Error::internal(format!("no random bytes: {e}")))?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
