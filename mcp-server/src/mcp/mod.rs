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

/// Serves one client on standard input and output until the input ends, the
/// output is closed, or a signal arrives.
///
/// # Errors
/// None that a caller can mend; the end of the client is a normal end.
pub async fn serve_stdio(app: Arc<App>) -> Result<()> {
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
        () = async { told_to_end().await; app.closing.cancel(); tokio::time::sleep(GRACE).await } => {}
    }
    Ok(())
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
