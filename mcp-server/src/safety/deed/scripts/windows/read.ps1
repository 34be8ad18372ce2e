# PATH REAL FOLLOW OFFSET COUNT: bytes of a file, where PATH leads to REAL and nowhere else.
$f = There $a[1] ($a[3] -eq '1')
if ($f.i.Attributes -band 16) { Fail 'directory' '' }
$s = [IO.File]::Open($f.p, 'Open', 'Read', 'ReadWrite, Delete')
try {
  # Once more: it may lead elsewhere since.
  $f = There $a[1] ($a[3] -eq '1')
  if ($f.p -ine $a[2]) { Say "LINK`n$($f.p)" }
  else {
    [void]$s.Seek([long]$a[4], 'Begin')
    $left = [long]$a[5]; $b = New-Object byte[] 65536; $m = New-Object IO.MemoryStream
    while ($left -gt 0) {
      $n = $s.Read($b, 0, [Math]::Min($left, $b.Length))
      if (-not $n) { break }
      $m.Write($b, 0, $n); $left -= $n
    }
    Say "OK $($s.Length)`n"
    $m.WriteTo($o)
  }
} finally { $s.Close() }
