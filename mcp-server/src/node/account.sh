#!/bin/sh
# The account through which proxmox-mcp reaches pve-guard on this Proxmox VE node. Run as root;
# running it again changes nothing. It makes three things:
#   1. the account, without a password and without a group that could do anything
#   2. its one key, which works from one address and runs one command
#   3. the sudo rule for that command: pve-guard, as root, without arguments
# Undo: run it with --remove
set -eu
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin

account='@ACCOUNT@'
from='@FROM@'
key='@KEY@'
guard='/usr/sbin/pve-guard'
home="/var/lib/$account"
keys="$home/.ssh/authorized_keys"
rule='/etc/sudoers.d/@RULE@'
mark='proxmox-mcp by pve-guard'

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
ours() { getent passwd "$account" | cut -d: -f5 | grep -qxF "$mark"; }

# Writes standard input to a file of root's, if that changes it.
write() { # FILE MODE
  cat >"$1.new~"
  chown root:root "$1.new~"
  chmod "$2" "$1.new~"
  if cmp -s "$1.new~" "$1" && [ "$(stat -c '%u %a' "$1")" = "0 ${2#0}" ]; then
    rm "$1.new~"
    say "unchanged: $1"
  else
    mv "$1.new~" "$1"
    say "written:   $1"
  fi
}

remove() {
  rm -f "$rule"
  if ours; then
    pkill -KILL -u "$account" || true
    userdel "$account"
    rm -f "$keys"
    for folder in "$home/.ssh" "$home"; do
      [ ! -d "$folder" ] || rmdir "$folder"
    done
  elif getent passwd "$account" >/dev/null; then
    fail "account $account was not made by this script and stays"
  fi
  say "removed:   account $account, its key and its sudo rule"
}

make() {
  command -v sudo >/dev/null || fail 'sudo is missing; run: apt install sudo'
  # 1. The account. Its shell is the plain one, its home belongs to root.
  if ours; then
    say "unchanged: account $account"
  elif getent passwd "$account" >/dev/null; then
    fail "there is an account $account already, and not of this script; use --name"
  else
    useradd --system --home-dir "$home" --no-create-home --shell /bin/sh \
      --password '*' --comment "$mark" "$account"
    say "made:      account $account"
  fi
  install -d -o root -g root -m 755 "$home" "$home/.ssh"
  # 2. The key.
  write "$keys" 0644 <<KEYS
restrict,from="$from",command="sudo -n $guard" $key
KEYS
  # 3. The sudo rule, which takes effect only when sudo can read it.
  draft=$(mktemp)
  cat >"$draft" <<'RULE'
@SUDOERS@
RULE
  visudo -cqf "$draft" || fail "sudo cannot read its rule: $draft"
  write "$rule" 0440 <"$draft"
  rm "$draft"
  visudo -cq || { rm "$rule"; fail 'visudo -c finds a fault in the sudo rules; ours is taken back'; }
  check
}

check() {
  sudo -l -U "$account" | grep -qF "NOPASSWD: $guard" || fail "sudo ignores $rule: see /etc/sudoers"
  if command -v sshd >/dev/null; then
    sshd -T -C "user=$account,host=client,addr=${from%%/*}" 2>/dev/null |
      grep -qi '^authorizedkeysfile .*\.ssh/authorized_keys' ||
      say "look at:   sshd_config, whose AuthorizedKeysFile leaves out $keys"
  fi
  [ -x "$guard" ] || say "missing:   $guard; install its package: proxmox-mcp ssh-guard"
  say 'done; now run on the other machine: proxmox-mcp check'
}

[ "$(id -u)" = 0 ] || fail 'run this as root'
case "${1:-@ACTION@}" in
  make) make ;;
  --remove) remove ;;
  *) fail 'usage: sh account.sh [--remove]' ;;
esac
