//! The protocol side: `rmcp` does the protocol, this room connects it to the tools.

mod approval;
mod handler;
mod instructions;
mod session;
mod stdio;

pub use handler::{Handler, listed};

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{Result, app::App};

/// How long running calls may take to end once the server is told to.
const GRACE: Duration = Duration::from_millis(1_500);
/// How long their last answers may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Serves one client on standard input and output until the input ends, the
/// output is closed, or a signal arrives.
///
/// # Errors
/// None that a caller can mend; the end of the client is a normal end.
pub async fn serve_stdio(app: Arc<App>) -> Result<()> {
    app.started();
    let stop = CancellationToken::new();
    let transport = stdio::Stdio::new(app.closing.clone(), stop.clone());
    let handler = Handler::new(app.clone());
    let ended = async {
        match rmcp::service::serve_server_with_ct(handler, transport, stop.clone()).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            // The client went away, or never said anything that opens a session.
            Err(error) => tracing::debug!(%error, "the session did not open"),
        }
    };
    tokio::select! {
        () = ended => {}
        () = end_in_time(&app.closing) => {}
    }
    app.abandon();
    Ok(())
}

/// Waits until the server is told to end, by a signal or by the end of its input,
/// and then as long as answers may take that are still on their way. A client that
/// reads no more does not keep the server.
async fn end_in_time(closing: &CancellationToken) {
    tokio::select! {
        () = told_to_end() => closing.cancel(),
        () = closing.cancelled() => {}
    }
    tokio::time::sleep(GRACE + LAST_WORDS).await;
}

/// Waits for SIGTERM, SIGINT or SIGHUP (Ctrl-C elsewhere).
async fn told_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
            signal(SignalKind::hangup()),
        );
        if let (Ok(mut term), Ok(mut int), Ok(mut hup)) = signals {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
                _ = hup.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
