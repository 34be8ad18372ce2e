# PATH MAKE APPEND IF-SHA256 SHA256 BYTES MODE OWNER PIECES NAME: the content comes from standard
# input, or from the files in the directory PIECES. PATH is real. Nothing is replaced before the
# whole of the new file stands beside it, checked.
p=$1 make=$2 append=$3 want=$4 sha=$5 bytes=$6 mode=$7 owner=$8 pieces=$9
shift 9
dir=${p%/*} base=${p##*/}
[ -n "$dir" ] || dir=/
new=./.pve-$1.new part=./.pve-$1.part
clean() {
  if [ -n "$inside" ]; then rm -f "$new" "$part"; fi
  if [ -n "$pieces" ]; then rm -rf "$pieces"; fi
}
inside=
trap clean EXIT
trap 'exit 143' HUP INT TERM

umask 022
if [ "$make" = 1 ] && ! [ -d "$dir" ]; then
  err=$(mkdir -p -- "$dir" 2>&1) || refused "$err"
fi
cd -P -- "$dir" 2>/dev/null || fail no-directory ''
here
[ "$r" = "$dir" ] || fail moved "$r"
inside=1

look() {
  if [ -L "./$base" ]; then fail link ''; fi
  if [ -d "./$base" ]; then fail directory ''; fi
  now=
  if [ -e "./$base" ]; then
    [ -f "./$base" ] || fail special ''
    now=$(stat -c '%d %i %s %Y %Z' "./$base") || fail tools stat
  fi
}
look
before=$now
if [ -n "$want" ]; then
  [ -n "$before" ] || fail changed ''
  hash "./$base" || fail denied ''
  [ "$h" = "$want" ] || fail changed "$h"
fi

umask 077
all() {
  if [ -z "$pieces" ]; then
    cat
  else
    for f in "$pieces"/*.piece; do
      if [ -e "$f" ]; then cat "$f" || return 1; fi
    done
  fi
}
set -C
err=$({ all >"$part"; } 2>&1) || refused "$err"
set +C
n=$(wc -c <"$part") || fail other 'the new content cannot be read again'
hash "$part" || fail other 'the new content cannot be read again'
if [ "$n" -ne "$bytes" ] || [ "$h" != "$sha" ]; then fail torn "$n"; fi
if [ "$append" = 1 ] && [ -n "$before" ]; then
  set -C
  err=$({ cat "./$base" "$part" >"$new"; } 2>&1) || refused "$err"
  set +C
  old=${before#* } old=${old#* } old=${old%% *}
  n=$(wc -c <"$new")
  [ "$n" -eq $((old + bytes)) ] || fail changed ''
else
  err=$(mv "$part" "$new" 2>&1) || refused "$err"
fi

keep=
if [ -n "$before" ]; then
  keep=$(stat -c %a "./$base")
  if ! cp --attributes-only --preserve=mode,ownership,xattr "./$base" "$new" 2>/dev/null; then
    err=$({ chown "$(stat -c %u:%g "./$base")" "$new" && chmod "$keep" "$new"; } 2>&1) ||
      refused "$err"
  fi
  if [ -e /sys/fs/selinux/enforce ]; then chcon --reference="./$base" "$new" 2>/dev/null; fi
else
  keep=644
fi
if [ -n "$owner" ]; then
  err=$(chown "$owner" "$new" 2>&1) || fail owner "$err"
fi
err=$(chmod "${mode:-$keep}" "$new" 2>&1) || refused "$err"
hash "$new" || fail other 'the new file cannot be read again'
n=$(wc -c <"$new")
if [ "$append$want" != 0 ]; then
  look
  [ "$now" = "$before" ] || fail changed ''
fi
sync "$new" 2>/dev/null
look
if ! mv -fT "$new" "./$base" 2>/dev/null; then
  err=$(mv -f "$new" "./$base" 2>&1) || refused "$err"
fi
if [ -n "$before" ]; then did=replaced; else did=created; fi
printf 'OK %s %s %s\n' "$did" "$((n))" "$h"
