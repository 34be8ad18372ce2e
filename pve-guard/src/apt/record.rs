//! What is known of the last upgrade: a file that survives a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use serde::{Deserialize, Serialize};

use crate::node;

const FILE: &str = "upgrade.json";

/// One run of the upgrade's unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) invocation_id: String,
    pub(crate) plan: String,
    /// The boot in which it began.
    pub(crate) boot_id: String,
    /// Unix seconds.
    pub(crate) started: u64,
    /// How it ended; absent as long as it runs, or when it was cut off.
    pub(crate) end: Option<End>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Unix seconds.
    pub(crate) finished: u64,
    /// `success`, `exit-code`, or the code that it was refused with.
    pub(crate) result: String,
    /// That of apt-get, if it came to that.
    pub(crate) exit_code: Option<i32>,
    pub(crate) message: String,
    pub(crate) kept_conffiles: Vec<String>,
}

impl Record {
    /// The last run, if there ever was one.
    pub(crate) fn read() -> io::Result<Option<Self>> {
        match fs::read_to_string(node::at(node::STATE_DIR).join(FILE)) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts it on the disk in one step.
    pub(crate) fn write(&self) -> io::Result<()> {
        let dir = node::private_dir(node::STATE_DIR)?;
        let new = dir.join(format!("{FILE}.new"));
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&new, dir.join(FILE))?;
        File::open(dir)?.sync_all()
    }
}
