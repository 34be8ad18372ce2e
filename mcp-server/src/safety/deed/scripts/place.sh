# PATH FOLLOW MAKE: where a file that is to be written really is.
p=$1 follow=$2 make=$3
dir=${p%/*} base=${p##*/} rest=
[ -n "$dir" ] || dir=/
while ! [ -d "$dir" ]; do
  if [ -e "$dir" ] || [ -L "$dir" ]; then fail not-directory ''; fi
  [ "$make" = 1 ] || fail no-directory ''
  rest=/${dir##*/}$rest dir=${dir%/*}
  [ -n "$dir" ] || dir=/
done
cd -P -- "$dir" 2>/dev/null || fail denied ''
here
if [ -z "$rest" ] && [ -L "./$base" ]; then
  if [ "$follow" != 1 ]; then
    to=$(readlink "./$base" 2>/dev/null)
    fail link "$to"
  fi
  r=$(readlink -f "./$base" && echo x) || fail dangling ''
  r=${r%?x}
elif [ "$r" = / ]; then
  r=$rest/$base
else
  r=$r$rest/$base
fi
printf 'OK\n%s' "$r"
