# shellcheck shell=bash
# What the scripts share: where things are, and how a section of work is told.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/proxmox-mcp
cd "$root"

# The folder that cargo builds into, as cargo itself sees it.
target_dir() {
  if [ -n "${CARGO_TARGET_DIR:-}" ]; then
    mkdir -p "$CARGO_TARGET_DIR" && (cd "$CARGO_TARGET_DIR" && pwd)
  else
    printf '%s/target\n' "$root"
  fi
}

# The test clients live outside the repository, one folder for each state of their locks.
clients_dir() {
  local key
  key=$(cat tests/clients/requirements.txt tests/clients/package-lock.json | sha256sum | cut -c1-16)
  printf '%s/clients-%s\n' "$cache" "$key"
}

die() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}
