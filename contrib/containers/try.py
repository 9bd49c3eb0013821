#!/usr/bin/env python3
"""Does what a Containerfile says, and runs the image, without an engine: its steps in a chroot.

usage: try.py CONTEXT CONTAINERFILE [--base TAR] [--arg NAME=VALUE]... [--keep DIR] -- ARGUMENT...

Needs root. The root file system is a tmpfs in namespaces of this command alone, which the kernel removes with it, also when it is killed.
The image runs without a network, as the user that it names. --base is the image that FROM names, as a tarball; none: from nothing.
--keep: a directory that is the working directory in the image, as a volume would be.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path("/mnt")


def run(*command, **rest):
    subprocess.run([str(word) for word in command], check=True, **rest)


def steps(path):
    """Instructions with their texts. Lines that end in a backslash go on."""
    text = path.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield name.upper(), rest.strip()


class Image:
    """A root file system in the making, and how its program is started."""

    def __init__(self, root, context, base, arguments):
        self.root, self.context, self.base = root, context, base
        self.given = arguments
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.user, self.directory, self.entry, self.command = "0:0", "/", [], []

    def step(self, name, text):
        getattr(self, f"do_{name.lower()}")(text)

    def do_from(self, text):
        # ${BASE}, say: which image that is, --base tells.
        if (text == "scratch") != (self.base is None):
            sys.exit(f"try.py: FROM {text}: " + ("needs --base" if self.base is None else "is no base image"))
        if self.base is not None:
            run("tar", "-C", self.root, "-xpf", self.base)
        # What engines add to every image.
        for directory in ("proc", "sys", "dev"):
            (self.root / directory).mkdir(exist_ok=True)
            run("mount", "--rbind", f"/{directory}", self.root / directory)

    def do_arg(self, text):
        name, _, default = text.partition("=")
        self.environment[name] = self.given.get(name, default)

    def do_env(self, text):
        for pair in shlex.split(text):
            name, _, value = pair.partition("=")
            self.environment[name] = value

    def do_add(self, text):
        source, target = text.split()
        # Only archives are added here; engines unpack these with their owners and modes.
        run("tar", "-C", self.inside(target), "-xpf", self.context / source, "--numeric-owner")

    def do_copy(self, text):
        source, target = text.split()
        shutil.copytree(self.context / source, self.inside(target), dirs_exist_ok=True)

    def do_run(self, text):
        etc = self.root / "etc"
        shutil.copy("/etc/resolv.conf", etc / "resolv.conf")
        run("chroot", self.root, "/bin/sh", "-c", text, env=self.environment)

    def do_user(self, text):
        self.user = text

    def do_workdir(self, text):
        self.directory = text
        self.inside(text).mkdir(parents=True, exist_ok=True)

    def do_entrypoint(self, text):
        self.entry = json.loads(text)

    def do_cmd(self, text):
        self.command = json.loads(text)

    def inside(self, path):
        return self.root / path.lstrip("/")

    def start(self, arguments, kept):
        """Runs it in a network that has only a loopback interface. Gives its exit code."""
        if kept is not None:
            run("mount", "--bind", kept, self.inside(self.directory))
        # The image may have no shell that could go to the directory.
        here = [sys.executable, __file__, "--enter", str(self.root), self.user, self.directory]
        command = [*self.entry, *(arguments or self.command)]
        lo = 'ip link set lo up && exec "$@"'
        return subprocess.run(["unshare", "--net", "sh", "-c", lo, "sh", *here, *command], env=self.environment).returncode


def enter(root, user, directory, *command):
    """Becomes the command in the root, as the user, in the directory."""
    uid, gid = (int(number) for number in user.split(":"))
    os.chroot(root)
    os.chdir(directory)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    os.execve(command[0], list(command), dict(os.environ))


def main():
    if sys.argv[1:2] == ["--enter"]:
        enter(*sys.argv[2:])
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("context", type=Path)
    parser.add_argument("containerfile", type=Path)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--arg", action="append", default=[])
    parser.add_argument("--keep", type=Path)
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given, arguments = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    if os.environ.pop("ASSAY_IN_NAMESPACES", None) is None:
        os.environ["ASSAY_IN_NAMESPACES"] = "yes"
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        paths = [path and path.resolve() for path in (given.base, given.keep)]
        flags = [f"{name}={path}" for name, path in zip(("--base", "--keep"), paths) if path]
        flags += [f"--arg={pair}" for pair in given.arg]
        files = [str(path.resolve()) for path in (Path(__file__), given.context, given.containerfile)]
        os.execvp("unshare", [*namespaces, sys.executable, *files, *flags, "--", *arguments])
    run("mount", "-t", "tmpfs", "-o", "mode=755", "try", PLACE)
    image = Image(PLACE, given.context, given.base, dict(pair.split("=", 1) for pair in given.arg))
    for name, text in steps(given.containerfile):
        image.step(name, text)
    sys.exit(image.start(arguments, given.keep))


main()
