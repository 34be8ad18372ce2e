# NAME: makes a directory for pieces that only the system and its administrators reach.
$p = Under ([IO.Path]::GetTempPath()) ".pve-$($a[1])"
if (Test-Path -LiteralPath $p) { Fail 'other' 'it is there already' }
$c = New-Object Security.AccessControl.DirectorySecurity
$c.SetAccessRuleProtection($true, $false)
foreach ($who in 'S-1-5-18', 'S-1-5-32-544') {
  $who = New-Object Security.Principal.SecurityIdentifier $who
  $c.AddAccessRule((New-Object Security.AccessControl.FileSystemAccessRule $who, 'FullControl', 'ContainerInherit, ObjectInherit', 'None', 'Allow'))
}
[void][IO.Directory]::CreateDirectory($p, $c)
Say "OK`n$p"
