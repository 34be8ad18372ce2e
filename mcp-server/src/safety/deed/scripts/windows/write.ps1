# PATH MAKE APPEND IF-SHA256 SHA256 BYTES NAME: PATH is real, and the content lies in the room NAME. Nothing
# is replaced before the whole of the new file stands beside it, checked.
$p = $a[1]; $dir = Up $p; $name = $a[7]
$room = Under ([IO.Path]::GetTempPath()) ".pve-$name"
$new = Under $dir ".pve-$name.new"; $old = Under $dir ".pve-$name.old"; $inside = $false
function Look {
  $f = Real $p $false
  if ($f.rest) { return '' }
  if ($f.i.Attributes -band 16) { Fail 'directory' '' }
  if ($f.i.Attributes -band 1) { Fail 'denied' 'it has the attribute read-only' }
  $f.i.Refresh()
  "$($f.i.Length) $($f.i.LastWriteTimeUtc.Ticks) $($f.i.CreationTimeUtc.Ticks)"
}
try {
  if ($a[2] -eq '1') { [void][IO.Directory]::CreateDirectory($dir) }
  $d = Real $dir $true
  if ($d.rest) { Fail 'no-directory' '' }
  if (-not ($d.i.Attributes -band 16)) { Fail 'not-directory' '' }
  if ($d.p -ine $dir) { Fail 'moved' $d.p }
  $before = Look
  if ($a[4]) {
    if (-not $before) { Fail 'changed' '' }
    $h = Hash $p
    if ($h -ne $a[4]) { Fail 'changed' $h }
  }
  $w = [IO.File]::Open($new, 'CreateNew', 'Write', 'None'); $inside = $true
  try {
    $b = New-Object byte[] 65536; $sum = [Security.Cryptography.SHA256]::Create(); $sent = 0; $from = 0
    if ($a[3] -eq '1' -and $before) {
      $s = [IO.File]::Open($p, 'Open', 'Read', 'Read')
      try { while ($n = $s.Read($b, 0, $b.Length)) { $w.Write($b, 0, $n); $from += $n } } finally { $s.Close() }
    }
    foreach ($piece in [IO.Directory]::GetFiles($room, '*.piece') | Sort-Object) {
      $c = [IO.File]::ReadAllBytes($piece)
      $w.Write($c, 0, $c.Length); $sent += $c.Length
      [void]$sum.TransformBlock($c, 0, $c.Length, $null, 0)
    }
    [void]$sum.TransformFinalBlock($b, 0, 0)
    $w.Flush($true)
  } finally { $w.Close() }
  $h = -join ($sum.Hash | ForEach-Object { $_.ToString('x2') })
  if ($sent -ne [long]$a[6] -or $h -ne $a[5]) { Fail 'torn' $sent }
  $h = Hash $new
  if ($length -ne $from + $sent) { Fail 'torn' $length }
  if ($a[3] -ne '1' -and $h -ne $a[5]) { Fail 'torn' $length }
  if ((Look) -ne $before) { Fail 'changed' '' }
  if ($before) { [IO.File]::Replace($new, $p, $old); $did = 'replaced' }
  else { [IO.File]::Move($new, $p); $did = 'created' }
  Say "OK $did $length $h`n"
} finally {
  if ($inside) {
    # A replacement that broke off in the middle has left the old file under its other name.
    if ([IO.File]::Exists($old)) { if ([IO.File]::Exists($p)) { [IO.File]::Delete($old) } else { [IO.File]::Move($old, $p) } }
    if ([IO.File]::Exists($new)) { [IO.File]::Delete($new) }
  }
  if ([IO.Directory]::Exists($room)) { [IO.Directory]::Delete($room, $true) }
}
