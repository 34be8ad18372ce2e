# SERVICE ACTION: by its name, else by the name that is shown.
$all = @(Get-Service -ErrorAction SilentlyContinue)
$s = @($all | Where-Object { $_.Name -ieq $a[1] })
if (-not $s) { $s = @($all | Where-Object { $_.DisplayName -ieq $a[1] }) }
if (-not $s) { Fail 'missing' '' }
if ($s.Count -gt 1) { Fail 'other' "$($s.Count) services are shown by that name" }
$s = $s[0]; $c = 0; $e = ''
try {
  if ($a[2] -eq 'start') { Start-Service -InputObject $s }
  if ($a[2] -eq 'stop') { Stop-Service -Force -InputObject $s }
  if ($a[2] -eq 'restart') { Restart-Service -Force -InputObject $s }
} catch { $c = 1; $e = $_.Exception.Message -replace '\s+', ' ' }
$s.Refresh()
Say "OK windows $c`nName=$($s.Name)`nActiveState=$($s.Status)`nUnitFileState=$($s.StartType)`nDescription=$($s.DisplayName)`n`n$e`n`n"
if ($c) {
  Get-WinEvent -FilterHashtable @{ LogName = 'System'; ProviderName = 'Service Control Manager' } -MaxEvents 10 -ErrorAction SilentlyContinue |
    ForEach-Object { Say "$($_.TimeCreated.ToString('s')) $($_.Message -replace '\s+', ' ')`n" }
}
