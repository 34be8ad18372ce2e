//! Logs on standard error, without this server's own secrets.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::{
    filter::Targets, fmt::MakeWriter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::out::colours_wanted;
use crate::{config::Config, safety::redact::Redactor};

/// Starts logging. `quiet` holds back what is below a warning unless `LOG_LEVEL` was set.
pub fn start(config: &Config, level_was_set: bool, quiet: bool) {
    let level = if quiet && !level_was_set {
        config.log_level.min(tracing::Level::WARN)
    } else {
        config.log_level
    };
    let ansi = io::stderr().is_terminal() && colours_wanted();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(ansi)
        .with_writer(Masked { redactor: Redactor::new(config) });
    // Below a warning libraries tell whole messages, with every password that is in one.
    let others = level.min(tracing::Level::WARN);
    let wanted = Targets::new().with_default(others).with_target("proxmox_mcp", level);
    let started = tracing_subscriber::registry().with(wanted).with(lines).try_init();
    // Only where a test has started logging already.
    drop(started);
}

/// Standard error behind the redactor: libraries log too, and know nothing of our secrets.
struct Masked {
    redactor: Redactor,
}

impl<'a> MakeWriter<'a> for Masked {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { redactor: &self.redactor, bytes: Vec::new() }
    }
}

/// One record, written as a whole.
struct Line<'a> {
    redactor: &'a Redactor,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        let masked = self.redactor.text(&text);
        let _ = io::stderr().lock().write_all(masked.as_deref().unwrap_or(&text).as_bytes());
    }
}
