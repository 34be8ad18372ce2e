//! `pve-sim`: a simulated Proxmox VE on loopback, until standard input closes or SIGTERM.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use pve_sim::{Estate, Options, Sim};
use tokio::io::AsyncReadExt;

/// A simulated Proxmox VE API. Prints one line of JSON and runs until standard input closes.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Make a large estate with this many guests instead of a built-in one.
    #[arg(long)]
    guests: Option<usize>,
    /// Nodes of the large estate.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Which built-in estate.
    #[arg(long, value_enum, default_value_t = Which::Sample)]
    estate: Which,
    /// The agent of this VM is a real `qemu-ga` that listens there; may be given several times.
    #[arg(long, value_name = "VMID=PATH", value_parser = agent_socket)]
    agent_socket: Vec<(u32, PathBuf)>,
    /// Seconds a refused login is held back (the real server: 3).
    #[arg(long, default_value_t = 0)]
    auth_delay: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    /// Three nodes, about 40 guests, with history.
    Sample,
    /// One node, seven guests, six tokens.
    Recorded,
}

fn agent_socket(text: &str) -> Result<(u32, PathBuf), String> {
    let (vmid, path) = text.split_once('=').ok_or("not VMID=PATH")?;
    let vmid = vmid.parse().map_err(|_| format!("{vmid:?} is no VMID"))?;
    Ok((vmid, path.into()))
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // Nothing is left to tell it to when standard error is gone.
            let _ = writeln!(std::io::stderr(), "pve-sim: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> std::io::Result<()> {
    let estate = match (args.guests, args.estate) {
        (Some(guests), _) => Estate::large(guests, args.nodes),
        (None, Which::Sample) => Estate::sample(),
        (None, Which::Recorded) => Estate::recorded(),
    };
    let auth_delay = Duration::from_secs(args.auth_delay);
    let agent_sockets = args.agent_socket;
    let options =
        Options { estate, bind: args.bind, auth_delay, agent_sockets, ..Options::default() };
    let sim = Sim::start(options).await?;
    let (token_id, token_secret) = sim.token("admin").unwrap_or_default();
    let line = serde_json::json!({
        "url": sim.url(),
        "fingerprint": sim.fingerprint(),
        "token_id": token_id,
        "token_secret": token_secret,
        "ca": sim.ca_pem(),
    });
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;

    let mut stdin = tokio::io::stdin();
    let mut sink = [0_u8; 256];
    let mut told = std::pin::pin!(told_to_stop());
    loop {
        tokio::select! {
            stop = &mut told => {
                stop?;
                break;
            }
            n = stdin.read(&mut sink) => if n? == 0 { break },
        }
    }
    // The blocked read of standard input would hold the runtime open.
    std::process::exit(0)
}

/// Waits for SIGTERM or an interrupt.
#[cfg(unix)]
async fn told_to_stop() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = term.recv() => Ok(()),
        result = tokio::signal::ctrl_c() => result,
    }
}

/// Waits for an interrupt.
#[cfg(not(unix))]
async fn told_to_stop() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
