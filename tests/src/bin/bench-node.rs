//! A node for `scripts/bench`: real sshd, sudo and the guard of `E2E_BIN_DIR`.
//! Says as one JSON line how it is reached, and stays until its input ends.

#[cfg(target_os = "linux")]
fn main() {
    use std::{
        io::Read as _,
        os::{
            linux::net::SocketAddrExt as _,
            unix::net::{SocketAddr, UnixListener},
        },
    };

    let Some(world) = e2e::world::World::new() else { std::process::exit(3) };
    // A container that runs has a command socket: by it the guard knows, without asking Proxmox.
    let socket = SocketAddr::from_abstract_name("/var/lib/lxc/200/command");
    let _running = UnixListener::bind_addr(&socket.expect("a name")).expect("the command socket");
    let dir = world.desk.path("");
    let told = serde_json::json!({
        "pid": world.node.pid(),
        "ssh": {
            "port": world.sshd.port,
            "key": world.desk.path("ssh/id_ed25519"),
            "account": "proxmox-mcp",
        },
        "env": {
            "HOME": world.desk.path("home"),
            "PROXMOX_MCP_CONFIG_DIR": dir,
            "PROXMOX_HOST": world.estate.sim().addr().to_string(),
            "PROXMOX_MODE": "write",
            "PROXMOX_EXEC": "enabled",
        },
        "vmid": 200,
    });
    println!("{told}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[cfg(not(target_os = "linux"))]
fn main() {
    std::process::exit(3);
}
