# NAME: takes the pieces away.
$p = Under ([IO.Path]::GetTempPath()) ".pve-$($a[1])"
if (Test-Path -LiteralPath $p) { [IO.Directory]::Delete($p, $true) }
Say "OK`n"
