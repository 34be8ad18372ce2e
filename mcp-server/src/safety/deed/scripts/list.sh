# PATH REAL FOLLOW MARK: what is in a directory, each entry behind MARK, then its links behind MARK L.
p=$1 real=$2 follow=$3 mark=$4
if [ "$follow" != 1 ] && [ -L "$p" ]; then
  to=$(readlink "$p" 2>/dev/null)
  fail link "$to"
fi
if ! [ -e "$p" ]; then
  if [ -L "$p" ]; then fail dangling ''; fi
  fail missing ''
fi
[ -d "$p" ] || fail not-directory ''
if ! [ -r "$p" ] || ! cd -P -- "$p" 2>/dev/null; then fail denied ''; fi
here
if [ "$r" != "$real" ]; then
  printf 'LINK\n%s' "$r"
  exit 0
fi
command -v stat >/dev/null 2>&1 || fail tools stat
form="$mark%f %s %Y %u %g %U %G/%n"
links='for f do printf "%s\0" "$f"; readlink "$f"; printf "\0"; done'
printf 'OK\n'
if command -v find >/dev/null 2>&1; then
  find . ! -name . -prune -exec stat -c "$form" {} + 2>/dev/null
  printf '%sL' "$mark"
  find . ! -name . -prune -type l -exec sh -c "$links" sh {} + 2>/dev/null
else
  set -- ./* ./.[!.]* ./..?*
  stat -c "$form" -- "$@" 2>/dev/null
  printf '%sL' "$mark"
  for f do
    if [ -L "$f" ]; then
      printf '%s\0' "$f"
      readlink "$f"
      printf '\0'
    fi
  done
fi
exit 0
