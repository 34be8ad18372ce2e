# PATH: length and hash of a file as it is now.
$f = There $a[1] $false
if ($f.i.Attributes -band 16) { Fail 'directory' '' }
$h = Hash $f.p
Say "OK $length $h`n"
