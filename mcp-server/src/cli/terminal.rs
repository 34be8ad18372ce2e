//! The person at the terminal, as a tool sees the caller.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::oneshot;

use crate::tools::{Asked, Form, Progress, Session};

/// How long a question waits for its answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// A call from the command line. Long work shows a bar on standard error where that is a terminal.
pub struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    shown: bool,
}

impl Terminal {
    /// A caller at this process's terminal.
    #[must_use]
    pub fn new() -> Self {
        Self { bar: Mutex::new(None), shown: io::stderr().is_terminal() }
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

    fn ask<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Asked> {
        if !self.can_ask() {
            return std::future::ready(Asked::Unable).boxed();
        }
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
        let question = format!("{}\n\nSend this? [yes/no] ", form.text.trim_end());
        async move {
            match tokio::time::timeout(PATIENCE, read_line(question)).await {
                Ok(Some(line)) if line.trim().eq_ignore_ascii_case("yes") => Asked::Yes,
                Ok(Some(_)) => Asked::No,
                Ok(None) => Asked::Cancelled,
                Err(_) => Asked::Expired,
            }
        }
        .boxed()
    }

    /// A person can answer where both ends of the conversation are a terminal.
    fn can_ask(&self) -> bool {
        self.shown && io::stdin().is_terminal()
    }

    fn client(&self) -> String {
        "command line".to_owned()
    }
}

/// Asks on standard error and reads one line; `None` at the end of input. On a thread of its
/// own, which nobody waits for when the answer does not come.
async fn read_line(question: String) -> Option<String> {
    let (sender, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = write!(io::stderr().lock(), "{question}");
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        let _ = sender.send(read.is_ok_and(|n| n > 0).then_some(line));
    });
    answer.await.ok().flatten()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}
