"""Runs every `test_` function of the groups, in the order they stand in, on
one booted node; each group leaves the node as the next one expects it."""

import sys
import traceback

import test_containers
import test_kernels
import test_package
import test_ssh
import test_tools
import test_upgrade
from guard import Guard
from machine import Machine


def main():
    base, deb, mcp, *names = sys.argv[1:]
    machine = Machine(base)
    passed = failed = 0
    try:
        machine.boot()
        guard = Guard(machine, mcp)
        test_package.install(machine, deb)
        guard.join()
        groups = [test_ssh, test_containers, test_tools, test_kernels, test_upgrade, test_package]
        for group in groups:
            for name, test in list(vars(group).items()):
                if not name.startswith("test_") or names and not any(n in name for n in names):
                    continue
                try:
                    test(machine, guard, deb)
                    passed += 1
                    print(f"ok      {name}", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAILED  {name}", flush=True)
                    traceback.print_exc()
    finally:
        machine.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
