# PATH REAL FOLLOW FROM COUNT: bytes of a regular file, where PATH leads to REAL and nowhere else.
p=$1 real=$2 follow=$3 from=$4 count=$5
if [ "$follow" != 1 ] && [ -L "$p" ]; then
  to=$(readlink "$p" 2>/dev/null)
  fail link "$to"
fi
if ! [ -e "$p" ]; then
  if [ -L "$p" ]; then fail dangling ''; fi
  fail missing ''
fi
if [ -d "$p" ]; then fail directory ''; fi
if ! [ -f "$p" ]; then fail special ''; fi
[ -r "$p" ] || fail denied ''
exec 3<"$p"
r=$(readlink /proc/self/fd/3 2>/dev/null && echo x) || r=$(readlink -f -- "$p" && echo x) ||
  fail tools readlink
r=${r%?x}
if [ "$r" != "$real" ]; then
  printf 'LINK\n%s' "$r"
  exit 0
fi
size=$(stat -L -c %s /proc/self/fd/3 2>/dev/null) || size=-
printf 'OK %s\n' "$size"
if [ "$from" = 1 ]; then head -c "$count" <&3; else tail -c "+$from" <&3 | head -c "$count"; fi
