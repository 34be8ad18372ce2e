# PATH FOLLOW MAKE: where a file that is to be written really is.
$d = Real (Up $a[1]) $true
if ($d.rest) {
  if ($a[3] -ne '1') { Fail 'no-directory' '' }
  $p = $d.p
  foreach ($n in $d.rest) { $p = Under $p $n }
  $p = Under $p $a[1].Substring($a[1].LastIndexOf('\') + 1)
} else {
  if (-not ($d.i.Attributes -band 16)) { Fail 'not-directory' '' }
  $f = Real $a[1] ($a[2] -eq '1')
  $p = $f.p
  # What is missing is the file itself, or what its link leads to.
  if ($f.rest) { if (@($f.rest).Count -gt 1) { Fail 'dangling' '' }; $p = Under $p $f.rest[0] }
}
Say "OK`n$p"
