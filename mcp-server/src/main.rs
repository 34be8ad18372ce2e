//! The program: everything is in the library's `cli`.

fn main() -> std::process::ExitCode {
    proxmox_mcp::cli::main()
}
