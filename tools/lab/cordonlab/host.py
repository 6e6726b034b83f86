# SPDX-License-Identifier: BSD-3-Clause
"""The host: its directories, packages and processes."""

import fcntl
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from .errors import LabError

#: command that the lab calls on the host -> Debian package that has it
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "apt-get": "apt",
    "apt-cache": "apt",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "chroot": "coreutils",
}
USER_PROGRAMS = {"newuidmap": "uidmap", "newgidmap": "uidmap"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def is_root():
    return os.geteuid() == 0


def tree():
    """The checkout that this lab belongs to."""
    return Path(__file__).resolve().parents[3]


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "cordon"
    path.mkdir(parents=True, exist_ok=True)
    return path


def boot_id():
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def say(*words):
    """Progress goes to stderr: stdout belongs to the command that is run."""
    print("lab:", *words, file=sys.stderr, flush=True)


def missing_packages():
    need = dict(PROGRAMS)
    if not is_root():
        need.update(USER_PROGRAMS)
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = {pkg for prog, pkg in need.items() if not shutil.which(prog, path=path)}
    if not KEYRING.exists():
        lacking.add("debian-archive-keyring")
    return sorted(lacking)


def require_packages():
    """Install what the host lacks if that is allowed, else name it."""
    lacking = missing_packages()
    if not lacking:
        return
    if not is_root() or not shutil.which("apt-get"):
        raise LabError("the host lacks Debian packages; as root: apt-get install "
                       + " ".join(lacking))
    say("installing on the host:", *lacking)
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *lacking]
    for before in (None, ["apt-get", "-qq", "update"]):
        if before:
            subprocess.run(before, env=env, check=False, stdout=sys.stderr)
        if subprocess.run(install, env=env, check=False, stdout=sys.stderr).returncode == 0:
            return
    raise LabError("apt-get install failed for: " + " ".join(lacking))


@contextmanager
def locked(path, shared=False, wait=True):
    """Hold a lock file. The file stays: removing it would let two holders in."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise LabError(f"in use by another process: {path}") from None
            say("waiting for another process that holds", path)
            fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


class Spawner:
    """Starts processes that die with this one.

    PR_SET_PDEATHSIG fires when the *thread* that forked ends, so all children are
    started by one thread that lives as long as the process.
    """

    _one = None
    _guard = threading.Lock()

    def __init__(self):
        self._wanted = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="lab-spawner", daemon=True).start()

    @classmethod
    def get(cls):
        with cls._guard:
            if cls._one is None:
                cls._one = cls()
            return cls._one

    def _serve(self):
        while True:
            argv, kwargs, reply = self._wanted.get()
            try:
                reply.put(subprocess.Popen(argv, **kwargs))
            except OSError as err:
                reply.put(err)

    def popen(self, argv, **kwargs):
        reply = queue.SimpleQueue()
        self._wanted.put((argv, kwargs, reply))
        got = reply.get()
        if isinstance(got, OSError):
            raise LabError(f"can't start {argv[0]}: {got}")
        return got


def spawn(argv, **kwargs):
    """Start argv in a session of its own; it is killed when this process dies."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    argv = ["setpriv", "--pdeathsig", "KILL", "--", *map(os.fspath, argv)]
    return Spawner.get().popen(argv, start_new_session=True, **kwargs)


def end(proc, grace=2.0):
    """End a process started by spawn() and all of its group."""
    if proc.poll() is None and grace:
        _signal_group(proc, signal.SIGTERM)
        try:
            proc.wait(grace)
        except subprocess.TimeoutExpired:
            pass
    _signal_group(proc, signal.SIGKILL)
    proc.wait()


def _signal_group(proc, sig):
    try:
        os.killpg(proc.pid, sig)
    except (ProcessLookupError, PermissionError):
        pass


class Janitor:
    """Removes a directory when this process is gone, however it went."""

    def __init__(self, directory):
        self.directory = Path(directory)
        script = 'trap "" INT TERM HUP; read -r _; sleep 0.2; rm -rf -- "$1"'
        self._proc = subprocess.Popen(
            ["/bin/sh", "-c", script, "lab-janitor", str(self.directory)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self._proc.stdin.close()
        self._proc.wait()
