# PATH REAL FOLLOW: what is in a directory, a line each; no name in Windows has a TAB or a line feed.
$f = There $a[1] ($a[3] -eq '1')
if (-not ($f.i.Attributes -band 16)) { Fail 'not-directory' '' }
if ($f.p -ine $a[2]) { Say "LINK`n$($f.p)" }
else {
  $all = (New-Object IO.DirectoryInfo $f.p).GetFileSystemInfos()
  $t = New-Object Text.StringBuilder
  foreach ($i in $all) {
    $to = try { Link $i } catch { '' }
    $kind = if ($to -ne $null) { 'link' } elseif ($i.Attributes -band 16) { 'directory' } else { 'file' }
    $when = $i.LastWriteTimeUtc, $i.CreationTimeUtc | ForEach-Object { [Math]::Floor(($_.Ticks - 621355968000000000) / 1e7) }
    [void]$t.Append("$kind`t$([int]$i.Attributes)`t$($i.Length)`t$($when[0])`t$($when[1])`t$($i.Name)`t$to`n")
  }
  Say "OK`n$($t.ToString())END"
}
