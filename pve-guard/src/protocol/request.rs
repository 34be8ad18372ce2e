//! The request: one line, one verb, exactly its fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Code, DEFAULT_MAX_OUTPUT, DEFAULT_TIMEOUT_S, MAX_ARGS, MAX_ARGV_BYTES, MAX_LINE, Refused,
    VERSION, VMID_MAX, VMID_MIN, json,
};

/// Longest `id`, `node`, `hostname`, `version`, `plan` or `cursor` in bytes.
const MAX_NAME: usize = 1024;

/// One request, as it was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The caller's own name for this request; it is written to the journal.
    pub id: String,
    /// The node that is meant. Every verb but `hello` needs it.
    pub node: Option<String>,
    /// What is to be done.
    pub verb: Verb,
}

/// A verb with its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// What this guard is and what its policy allows.
    Hello,
    /// Run a command in a container.
    PctExec(PctExec),
    /// What an upgrade would do.
    UpgradeSimulate {
        /// Fetch the package lists first; this reaches out to the repositories.
        refresh: bool,
    },
    /// Begin the upgrade that was agreed to.
    UpgradeStart {
        /// `plan` of the simulation that was agreed to.
        plan: String,
    },
    /// How the upgrade stands.
    UpgradeStatus {
        /// `cursor` of the answer before, to get only what is new.
        cursor: Option<String>,
    },
    /// The installed kernels and which of them will boot.
    KernelList,
    /// Boot this kernel from now on, or once.
    KernelPin {
        /// Version as `kernel-list` shows it.
        version: String,
        /// Only at the next boot.
        next_boot: bool,
    },
    /// Take the pin away.
    KernelUnpin {
        /// Only the pin of the next boot.
        next_boot: bool,
    },
}

/// The fields of `pct-exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PctExec {
    /// The container, 100 to 999999999.
    pub vmid: i64,
    /// The hostname that its configuration must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Program and arguments, byte for byte as the program will see them.
    pub argv: Vec<String>,
    /// Seconds until the command is ended.
    #[serde(default = "default_timeout")]
    pub timeout_s: u64,
    /// Most bytes of each of the two streams that are sent back.
    #[serde(default = "default_max_output")]
    pub max_output: u64,
    /// Whether input lines follow.
    #[serde(default)]
    pub stdin: bool,
}

const fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_S
}

const fn default_max_output() -> u64 {
    DEFAULT_MAX_OUTPUT
}

/// The name of a verb, as it stands in requests and in the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerbName {
    /// `hello`
    Hello,
    /// `pct-exec`
    PctExec,
    /// `upgrade-simulate`
    UpgradeSimulate,
    /// `upgrade-start`
    UpgradeStart,
    /// `upgrade-status`
    UpgradeStatus,
    /// `kernel-list`
    KernelList,
    /// `kernel-pin`
    KernelPin,
    /// `kernel-unpin`
    KernelUnpin,
}

impl VerbName {
    /// Every verb there is.
    pub const ALL: [VerbName; 8] = [
        VerbName::Hello,
        VerbName::PctExec,
        VerbName::UpgradeSimulate,
        VerbName::UpgradeStart,
        VerbName::UpgradeStatus,
        VerbName::KernelList,
        VerbName::KernelPin,
        VerbName::KernelUnpin,
    ];

    /// The name as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            VerbName::Hello => "hello",
            VerbName::PctExec => "pct-exec",
            VerbName::UpgradeSimulate => "upgrade-simulate",
            VerbName::UpgradeStart => "upgrade-start",
            VerbName::UpgradeStatus => "upgrade-status",
            VerbName::KernelList => "kernel-list",
            VerbName::KernelPin => "kernel-pin",
            VerbName::KernelUnpin => "kernel-unpin",
        }
    }

    /// The verb of that name, exactly as written.
    #[must_use]
    pub fn parse(name: &str) -> Option<VerbName> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refresh {
    #[serde(default)]
    refresh: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanField {
    plan: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    version: String,
    #[serde(default)]
    next_boot: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unpin {
    #[serde(default)]
    next_boot: bool,
}

impl Verb {
    /// The name of this verb.
    #[must_use]
    pub const fn name(&self) -> VerbName {
        match self {
            Verb::Hello => VerbName::Hello,
            Verb::PctExec(_) => VerbName::PctExec,
            Verb::UpgradeSimulate { .. } => VerbName::UpgradeSimulate,
            Verb::UpgradeStart { .. } => VerbName::UpgradeStart,
            Verb::UpgradeStatus { .. } => VerbName::UpgradeStatus,
            Verb::KernelList => VerbName::KernelList,
            Verb::KernelPin { .. } => VerbName::KernelPin,
            Verb::KernelUnpin { .. } => VerbName::KernelUnpin,
        }
    }

    /// Whether it changes something on the node or in a guest. These verbs
    /// are refused when the journal cannot be written.
    #[must_use]
    pub const fn changes(&self) -> bool {
        match self {
            Verb::Hello | Verb::UpgradeStatus { .. } | Verb::KernelList => false,
            Verb::UpgradeSimulate { refresh } => *refresh,
            Verb::PctExec(_)
            | Verb::UpgradeStart { .. }
            | Verb::KernelPin { .. }
            | Verb::KernelUnpin { .. } => true,
        }
    }

    fn from_fields(name: VerbName, fields: Value) -> Result<Self, serde_json::Error> {
        use serde_json::from_value;
        Ok(match name {
            VerbName::Hello => from_value(fields).map(|NoFields {}| Verb::Hello)?,
            VerbName::PctExec => Verb::PctExec(from_value(fields)?),
            VerbName::UpgradeSimulate => {
                from_value(fields).map(|Refresh { refresh }| Verb::UpgradeSimulate { refresh })?
            }
            VerbName::UpgradeStart => {
                from_value(fields).map(|PlanField { plan }| Verb::UpgradeStart { plan })?
            }
            VerbName::UpgradeStatus => {
                from_value(fields).map(|Cursor { cursor }| Verb::UpgradeStatus { cursor })?
            }
            VerbName::KernelList => from_value(fields).map(|NoFields {}| Verb::KernelList)?,
            VerbName::KernelPin => from_value(fields)
                .map(|Pin { version, next_boot }| Verb::KernelPin { version, next_boot })?,
            VerbName::KernelUnpin => {
                from_value(fields).map(|Unpin { next_boot }| Verb::KernelUnpin { next_boot })?
            }
        })
    }

    fn fields(&self) -> Result<Value, serde_json::Error> {
        use serde_json::to_value;
        match self.clone() {
            Verb::Hello | Verb::KernelList => to_value(NoFields {}),
            Verb::PctExec(exec) => to_value(exec),
            Verb::UpgradeSimulate { refresh } => to_value(Refresh { refresh }),
            Verb::UpgradeStart { plan } => to_value(PlanField { plan }),
            Verb::UpgradeStatus { cursor } => to_value(Cursor { cursor }),
            Verb::KernelPin { version, next_boot } => to_value(Pin { version, next_boot }),
            Verb::KernelUnpin { next_boot } => to_value(Unpin { next_boot }),
        }
    }
}

impl Request {
    /// The request as one line, with its line feed.
    ///
    /// # Errors
    /// The request breaks a rule that the guard would refuse it for.
    pub fn to_line(&self) -> Result<String, Refused> {
        let fault = |error: serde_json::Error| Refused::new(Code::BadRequest, error.to_string());
        self.check()?;
        let mut object = Map::new();
        object.insert("v".into(), VERSION.into());
        object.insert("id".into(), self.id.clone().into());
        object.insert("verb".into(), self.verb.name().as_str().into());
        if let Some(node) = &self.node {
            object.insert("node".into(), node.clone().into());
        }
        if let Value::Object(fields) = self.verb.fields().map_err(fault)? {
            object.extend(fields);
        }
        let mut line = serde_json::to_string(&object).map_err(fault)?;
        if line.len() > MAX_LINE {
            return Err(bad(format!("the request is longer than {MAX_LINE} bytes")));
        }
        line.push('\n');
        Ok(line)
    }

    /// Reads one line (without its line feed) and checks everything that can
    /// be checked without looking at the node.
    ///
    /// # Errors
    /// `bad_request` for what is not a request, `protocol_unsupported` for
    /// another version, `verb_denied` for a verb that there is not, `argument`
    /// for a value outside its domain.
    pub fn parse(line: &[u8]) -> Result<Self, Refused> {
        if line.len() > MAX_LINE {
            return Err(bad(format!("the request is longer than {MAX_LINE} bytes")));
        }
        let value = json::parse(line)
            .map_err(|error| bad(format!("the request line is not valid: {error}")))?;
        let Value::Object(mut fields) = value else {
            return Err(bad("the request is not a JSON object"));
        };
        match fields.remove("v") {
            Some(Value::Number(v)) if v.as_u64() == Some(VERSION) => {}
            Some(Value::Number(v)) if v.is_i64() || v.is_u64() => {
                return Err(Refused::new(
                    Code::ProtocolUnsupported,
                    format!("protocol version {v} is not spoken here"),
                )
                .hint(format!("this guard speaks version {VERSION}")));
            }
            Some(_) => return Err(bad("v is not an integer")),
            None => return Err(bad("v is missing")),
        }
        let id = take_name(&mut fields, "id")?.ok_or_else(|| bad("id is missing"))?;
        let verb = take_name(&mut fields, "verb")?.ok_or_else(|| bad("verb is missing"))?;
        let node = take_name(&mut fields, "node")?;
        let Some(name) = VerbName::parse(&verb) else {
            let known: Vec<_> = VerbName::ALL.iter().map(|verb| verb.as_str()).collect();
            return Err(Refused::new(Code::VerbDenied, format!("there is no verb {verb:?}"))
                .hint(format!("this guard has: {}", known.join(", "))));
        };
        let verb = Verb::from_fields(name, Value::Object(fields))
            .map_err(|error| bad(format!("{}: {error}", name.as_str())))?;
        let request = Self { id, node, verb };
        request.check()?;
        Ok(request)
    }

    /// The rules that both ends hold.
    fn check(&self) -> Result<(), Refused> {
        plain("id", &self.id)?;
        match &self.node {
            Some(node) => plain("node", node)?,
            None if self.verb == Verb::Hello => {}
            None => return Err(bad("node is missing")),
        }
        match &self.verb {
            Verb::PctExec(exec) => exec.check(),
            Verb::UpgradeStart { plan } => plain("plan", plan),
            Verb::UpgradeStatus { cursor: Some(cursor) } => plain("cursor", cursor),
            Verb::KernelPin { version, .. } => plain("version", version),
            _ => Ok(()),
        }
    }
}

impl PctExec {
    fn check(&self) -> Result<(), Refused> {
        let argument = |message: String| Err(Refused::new(Code::Argument, message));
        if let Some(hostname) = &self.hostname {
            plain("hostname", hostname)?;
        }
        if !(VMID_MIN..=VMID_MAX).contains(&self.vmid) {
            return argument(format!("vmid {} is not in {VMID_MIN} to {VMID_MAX}", self.vmid));
        }
        if self.argv.len() > MAX_ARGS {
            return argument(format!("argv has more than {MAX_ARGS} elements"));
        }
        let Some(program) = self.argv.first() else {
            return argument("argv is empty".into());
        };
        if program.is_empty() || program.starts_with('-') {
            return argument("the first element of argv is empty or begins with '-'".into());
        }
        if self.argv.iter().any(|element| element.contains('\0')) {
            return argument("an element of argv holds a NUL byte".into());
        }
        if self.argv.iter().map(String::len).sum::<usize>() > MAX_ARGV_BYTES {
            return argument(format!("argv is longer than {MAX_ARGV_BYTES} bytes"));
        }
        if self.timeout_s == 0 {
            return argument("timeout_s is 0".into());
        }
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Refused {
    Refused::new(Code::BadRequest, message)
}

fn take_name(fields: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Refused> {
    match fields.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => {
            plain(key, &text)?;
            Ok(Some(text))
        }
        Some(_) => Err(bad(format!("{key} is not a string"))),
    }
}

/// A name: not empty, not long, and without line feeds or other controls.
fn plain(key: &str, text: &str) -> Result<(), Refused> {
    if text.is_empty() {
        return Err(bad(format!("{key} is empty")));
    }
    if text.len() > MAX_NAME {
        return Err(bad(format!("{key} is longer than {MAX_NAME} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(bad(format!("{key} holds a control character")));
    }
    Ok(())
}
