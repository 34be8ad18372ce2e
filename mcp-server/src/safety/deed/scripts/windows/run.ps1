# PROGRAM ARGUMENTS CWD: starts a program with exactly this command line, which the agent's own quoting would change.
$i = New-Object Diagnostics.ProcessStartInfo
$i.FileName = $a[1]; $i.Arguments = $a[2]; $i.UseShellExecute = $false
if ($a[3]) {
  if (-not [IO.Directory]::Exists($a[3])) { [Console]::Error.WriteLine("there is no directory $($a[3])"); exit 126 }
  $i.WorkingDirectory = $a[3]
}
try { $p = [Diagnostics.Process]::Start($i) }
catch { $e = $_.Exception; while ($e.InnerException) { $e = $e.InnerException }; [Console]::Error.WriteLine("$($a[1]): $($e.Message)"); exit 127 }
$p.WaitForExit()
exit $p.ExitCode
