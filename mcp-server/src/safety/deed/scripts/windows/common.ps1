# Before every script for Windows: one word answers, and real paths. Works from Windows PowerShell 5.1
# on; what varies stands in $a, decoded. Lines that begin with # are not sent.
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
$WarningPreference = 'SilentlyContinue'
$o = [Console]::OpenStandardOutput()
function Say($t) { $b = [Text.Encoding]::UTF8.GetBytes($t); $o.Write($b, 0, $b.Length) }
function Fail($w, $d) { throw (New-Object Exception "E $w $d") }
# Why something failed, in our words.
function Why($e) {
  while ($e.InnerException) { $e = $e.InnerException }
  if ($e.Message -clike 'E *') { return $e.Message }
  $m = $e.Message -replace '\s+', ' '
  $c = $e.HResult -band 0xffff
  if (80, 183 -contains $c) { return 'E changed ' }
  if (2, 3, 267 -contains $c) { $w = 'missing' }
  elseif (39, 112, 1295 -contains $c) { $w = 'full' }
  elseif ($c -eq 19) { $w = 'read-only' }
  elseif ($e -is [UnauthorizedAccessException] -or (5, 32, 33 -contains $c)) { $w = 'denied' }
  elseif ($e -is [IO.PathTooLongException] -or (123, 206 -contains $c)) { $w = 'name' }
  else { $w = 'other' }
  "E $w $m"
}
function Under($d, $n) { $d.TrimEnd('\') + '\' + $n }
function Up($p) { $i = $p.LastIndexOf('\'); if ($i -lt 3) { $p.Substring(0, 3) } else { $p.Substring(0, $i) } }
# Where a link leads: nothing for what is none, such as a file that is deduplicated.
function Link($i) {
  if (-not ($i.Attributes -band 1024)) { return }
  if ($PSVersionTable.PSVersion.Major -lt 5) { Fail 'tools' 'PowerShell 5, to see where a link leads' }
  $l = Get-Item -LiteralPath $i.FullName -Force
  if ('SymbolicLink', 'Junction' -notcontains $l.LinkType) { return }
  $t = @($l.Target)[0] -replace '^\\(\\|\?)\?\\', ''
  if ($t -like 'Volume{*') { return }
  $t
}
# The real path of $p: links of its directories resolved, its own with $follow; names as they are stored.
# .i is what stands there, .rest what of the path does not exist.
function Real($p, $follow) {
  $r = $p.Substring(0, 3); $i = New-Object IO.DirectoryInfo $r; $hops = 0
  $todo = New-Object Collections.ArrayList
  $todo.AddRange(@($p.Substring(3).Split('\') | Where-Object { $_ }))
  while ($todo.Count) {
    $n = $todo[0]
    if (-not ($i.Attributes -band 16)) { Fail 'not-directory' '' }
    $all = @((New-Object IO.DirectoryInfo $r).GetFileSystemInfos($n))
    $f = @($all | Where-Object { $_.Name -ieq $n }) + $all | Select-Object -First 1
    if (-not $f) { return @{ p = $r; i = $null; rest = @($todo) } }
    $todo.RemoveAt(0)
    $to = Link $f
    if ($to) {
      if (-not $todo.Count -and -not $follow) { Fail 'link' $to }
      $hops++
      if ($hops -gt 40 -or $to -like '\\*' -or $to -like 'UNC\*') { Fail 'dangling' '' }
      if ($to -notmatch '^[A-Za-z]:\\') { if ($to -like '\*') { $to = $r.Substring(0, 2) + $to } else { $to = Under $r $to } }
      $to = [IO.Path]::GetFullPath($to)
      $todo.InsertRange(0, @($to.Substring(3).Split('\') | Where-Object { $_ }))
      $r = $to.Substring(0, 3).ToUpper(); $i = New-Object IO.DirectoryInfo $r
      continue
    }
    $r = Under $r $f.Name; $i = $f
  }
  @{ p = $r; i = $i; rest = @() }
}
function There($p, $follow) {
  $f = Real $p $follow
  if ($f.rest) { Fail 'missing' '' }
  $f
}
function Hash($p) {
  $s = [IO.File]::Open($p, 'Open', 'Read', 'ReadWrite, Delete')
  try { $h = [Security.Cryptography.SHA256]::Create().ComputeHash($s); $script:length = $s.Length } finally { $s.Close() }
  -join ($h | ForEach-Object { $_.ToString('x2') })
}
