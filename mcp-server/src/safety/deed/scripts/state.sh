# PATH: the hash of a file as it is now.
if ! [ -e "$1" ]; then fail missing ''; fi
[ -f "$1" ] || fail special ''
hash "$1" || fail denied ''
n=$(wc -c <"$1")
printf 'OK %s %s\n' "$((n))" "$h"
