# SERVICE ACTION: by systemd, OpenRC or a script of init, whichever is here.
name=$1 action=$2
if [ -d /run/systemd/system ]; then
  if [ "$action" != status ]; then
    said=$(systemctl "$action" -- "$name" 2>&1)
    code=$?
  else
    said= code=0
  fi
  printf 'OK systemd %s\n' "$code"
  systemctl show -p LoadState,ActiveState,SubState,UnitFileState,MainPID,Description,Result,ExecMainStatus,ActiveEnterTimestamp -- "$name"
  printf '\n%s\n\n' "$said"
  active=$(systemctl is-active -- "$name" 2>/dev/null)
  if [ "$code" != 0 ] || [ "$active" = failed ]; then
    journalctl -q --no-pager -n 20 -o short-iso -u "$name" 2>/dev/null
  fi
elif command -v rc-service >/dev/null 2>&1; then
  rc-service -e "$name" >/dev/null 2>&1 || fail missing ''
  if [ "$action" != status ]; then
    said=$(rc-service "$name" "$action" 2>&1 </dev/null)
    code=$?
  else
    said= code=0
  fi
  state=$(rc-service "$name" status 2>&1 </dev/null)
  status=$?
  enabled=disabled
  if rc-update show 2>/dev/null | grep -q "^ *$name |"; then enabled=enabled; fi
  printf 'OK openrc %s\nStatus=%s\nUnitFileState=%s\n' "$code" "$status" "$enabled"
  printf '\n%s\n\n' "$said"
  if [ "$code" != 0 ] || [ "$status" != 0 ]; then printf '%s\n' "$state"; fi
elif [ -x "/etc/init.d/$name" ]; then
  said= code=0
  if [ "$action" != status ]; then
    said=$("/etc/init.d/$name" "$action" 2>&1 </dev/null)
    code=$?
  fi
  "/etc/init.d/$name" status >/dev/null 2>&1 </dev/null
  printf 'OK init %s\nStatus=%s\n\n%s\n\n' "$code" "$?" "$said"
elif [ -d /etc/init.d ]; then
  fail missing ''
else
  fail tools 'systemd, OpenRC or /etc/init.d'
fi
exit 0
