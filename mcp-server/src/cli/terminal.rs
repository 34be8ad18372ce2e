//! The person at the terminal, as a tool sees the caller.

use std::{
    io::IsTerminal,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::tools::{Progress, Session};

/// A call from the command line. Long work shows a bar on standard error where that is a terminal.
pub struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    shown: bool,
}

impl Terminal {
    /// A caller at this process's terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { bar: Mutex::new(None), shown: std::io::stderr().is_terminal() }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(100);
    let style = ProgressStyle::with_template("{spinner} {bar:30} {percent:>3}% {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

impl Session for Terminal {
    fn progress(&self, progress: Progress) {
        if !self.shown {
            return;
        }
        let mut bar_of_call = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = bar_of_call.get_or_insert_with(bar);
        if let Some(percent) = progress.percent {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            bar.set_position(percent.clamp(0.0, 100.0) as u64);
        }
        bar.set_message(progress.message);
    }

    fn client(&self) -> String {
        "command line".to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}
