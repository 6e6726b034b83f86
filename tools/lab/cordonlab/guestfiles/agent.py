# SPDX-License-Identifier: BSD-3-Clause
"""The agent in a guest: runs commands for the host over a virtio-serial port.

Requests and replies are JSON, one a line. It is process 1 and reaps what is left over.
Output goes to files, so that a daemon that keeps a pipe open holds up nobody.
"""

import binascii
import json
import os
import select
import signal
import time

PORT_NAME = "lab.agent"
JOBS = "/run/lab/jobs"
LIMIT = 32 << 20
#: seconds from SIGTERM to SIGKILL of a command that timed out
GRACE = 2.0


def open_port():
    base = "/sys/class/virtio-ports"
    while True:
        for port in os.listdir(base):
            try:
                with open(f"{base}/{port}/name", encoding="ascii") as file:
                    if file.read().strip() == PORT_NAME:
                        return os.open(f"/dev/{port}", os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
        time.sleep(0.05)


class Job:
    """A command that was started, until the host has its outcome."""

    def __init__(self, number, pid, deadline):
        self.number = number
        self.pid = pid
        self.deadline = deadline
        self.status = None
        self.timed_out = False
        self.waiter = None

    def path(self, stream):
        return f"{JOBS}/{self.number}.{stream}"

    def read(self, stream, offset=0):
        with open(self.path(stream), "rb") as file:
            file.seek(offset)
            return binascii.b2a_base64(file.read(LIMIT), newline=False).decode()

    def outcome(self):
        return {"status": self.status, "timed_out": self.timed_out,
                "out": self.read("out"), "err": self.read("err")}

    def signal(self, sig):
        try:
            os.killpg(self.pid, sig)
        except ProcessLookupError:
            pass


class Agent:
    """The loop: requests from the port, exits of children, deadlines."""

    def __init__(self):
        os.makedirs(JOBS, exist_ok=True)
        self.port = open_port()
        self.jobs = {}
        self.by_pid = {}
        self.pending = b""
        self.wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def send(self, message):
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self.port, data):]

    def serve(self):
        self.send({"hello": time.monotonic()})
        poll = select.poll()
        poll.register(self.port, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            for fd, events in poll.poll(self.next_wait()):
                if fd == self.wake:
                    self.drain()
                elif events & select.POLLIN:
                    self.receive()
                else:
                    time.sleep(0.05)
            self.reap()
            self.enforce()

    def drain(self):
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            pass

    def next_wait(self):
        ends = [job.deadline for job in self.jobs.values()
                if job.deadline and job.status is None]
        return max(0, (min(ends) - time.monotonic()) * 1000) if ends else None

    def receive(self):
        data = os.read(self.port, 1 << 20)
        if not data:
            time.sleep(0.05)
            return
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            try:
                reply = getattr(self, "do_" + request["op"])(request)
            except Exception as err:  # pylint: disable=broad-except
                reply = {"error": f"{type(err).__name__}: {err}"}
            if reply is not None:
                self.send({"id": request["id"], **reply})

    # -- requests

    def do_ping(self, _request):
        return {"uptime": time.monotonic()}

    def do_start(self, request):
        job = self.start(request)
        return {"job": job.number}

    def do_run(self, request):
        self.start(request).waiter = request["id"]

    def do_wait(self, request):
        job = self.jobs[request["job"]]
        job.waiter = request["id"]
        if job.status is not None:
            self.finish(job)

    def do_read(self, request):
        job = self.jobs[request["job"]]
        status = job.status
        return {"out": job.read("out", request["out"]), "err": job.read("err", request["err"]),
                "status": status}

    def do_kill(self, request):
        job = self.jobs[request["job"]]
        if job.status is None:
            job.signal(request["sig"])
        return {}

    # -- jobs

    def start(self, request):
        number = request["id"]
        job = Job(number, 0, None)
        stdin = "/dev/null"
        if request.get("stdin") is not None:
            stdin = job.path("in")
            with open(stdin, "wb") as file:
                file.write(binascii.a2b_base64(request["stdin"]))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        fds = (os.open(stdin, os.O_RDONLY), os.open(job.path("out"), flags),
               os.open(job.path("err"), flags))
        job.pid = os.fork()
        if job.pid == 0:
            become(request, fds)
        for fd in fds:
            os.close(fd)
        if request.get("timeout"):
            job.deadline = time.monotonic() + request["timeout"]
        self.jobs[number] = self.by_pid[job.pid] = job
        return job

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            job = self.by_pid.pop(pid, None)
            if job:
                job.status = os.waitstatus_to_exitcode(status)
                if job.waiter is not None:
                    self.finish(job)

    def enforce(self):
        now = time.monotonic()
        for job in list(self.jobs.values()):
            if job.status is None and job.deadline and now >= job.deadline:
                job.signal(signal.SIGKILL if job.timed_out else signal.SIGTERM)
                job.timed_out = True
                job.deadline = now + GRACE

    def finish(self, job):
        self.send({"id": job.waiter, **job.outcome()})
        del self.jobs[job.number]
        for stream in ("in", "out", "err"):
            try:
                os.unlink(job.path(stream))
            except FileNotFoundError:
                pass


def become(request, fds):
    """In the child: turn into the command, or say why not, with the shell's statuses."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.chdir(request.get("cwd") or "/root")
        env = {**os.environ, **(request.get("env") or {})}
        argv = request["argv"]
        if isinstance(argv, str):
            argv = ["/bin/bash", "-c", argv]
        os.execvpe(argv[0], argv, env)
    except OSError as err:
        os.write(2, f"{request['argv']}: {err}\n".encode())
        os._exit(127 if isinstance(err, FileNotFoundError) else 126)
    finally:
        os._exit(126)


if __name__ == "__main__":
    Agent().serve()
