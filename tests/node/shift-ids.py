"""Adds a number to the owner and group of everything below a folder, as an
unprivileged container needs it; set-user-id bits survive."""

import os
import stat
import sys

root, offset = sys.argv[1], int(sys.argv[2])
for folder, folders, files in os.walk(root, topdown=False):
    for name in folders + files:
        path = os.path.join(folder, name)
        info = os.lstat(path)
        os.lchown(path, info.st_uid + offset, info.st_gid + offset)
        if not stat.S_ISLNK(info.st_mode):
            os.chmod(path, stat.S_IMODE(info.st_mode))
info = os.lstat(root)
os.lchown(root, info.st_uid + offset, info.st_gid + offset)
