# Before every script: one word answers, and real paths.
LC_ALL=C
export LC_ALL
fail() {
  printf 'E %s %s' "$1" "$2"
  exit 0
}
# A command's refusal, by its own words.
refused() {
  case $1 in
    *'Read-only file system'*) fail read-only "$1" ;;
    *'No space left'* | *'Disk quota'*) fail full "$1" ;;
    *'Permission denied'* | *'Operation not permitted'*) fail denied "$1" ;;
    *'File name too long'*) fail name "$1" ;;
    *) fail other "$1" ;;
  esac
}
here() {
  r=$(pwd -P && echo x) || fail other 'the directory has no name'
  r=${r%?x}
}
hash() {
  if command -v sha256sum >/dev/null 2>&1; then
    h=$(sha256sum <"$1") || return 1
  elif command -v openssl >/dev/null 2>&1; then
    h=$(openssl dgst -sha256 -r <"$1") || return 1
  else
    fail tools sha256sum
  fi
  h=${h%% *}
}
