//! The binary; see the library.

/// Runs the guard. It works on Linux alone.
fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    return pve_guard::run();
    #[cfg(not(target_os = "linux"))]
    return std::process::ExitCode::from(3);
}
