# SPDX-License-Identifier: BSD-3-Clause
"""Command line, start and end of the process."""

import os
import signal
import socket
import stat
import subprocess
import tempfile
import time

import client as c
import pytest
from board import CORDOND, FAKE_FW, Board

PORT = "--port=name=p0,socket=/tmp/none.sock,wire=none"


def run(*args):
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run(
            [CORDOND, *args],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=dict(os.environ, FAKE_FW_DIR=directory),
        )


def test_help_and_version():
    result = run("--help")
    assert result.returncode == 0
    for option in (
        "--port",
        "--capture",
        "--irq",
        "--limit",
        "--firmware",
        "--log-level",
        "--help",
        "--version",
    ):
        assert option in result.stdout
    assert run("--version").stdout.startswith("cordond ")


@pytest.mark.parametrize(
    "args, named",
    [
        ([], "--port"),
        (["--port=name=p0,socket=/tmp/x"], "--port"),
        (["--port=socket=/tmp/x,wire=none"], "--port"),
        (["--port=name=p0,wire=none"], "--port"),
        (["--port=name=p0,socket=/tmp/x,wire=none,colour=red"], "colour"),
        (["--port=name=p0,socket=/tmp/x,wire=none,name=p1"], "twice"),
        (["--port=name=,socket=/tmp/x,wire=none"], "name"),
        (["--port=name=a/b,socket=/tmp/x,wire=none"], "name"),
        ([f"--port=name={'a' * 32},socket=/tmp/x,wire=none"], "name"),
        ([f"--port=name=p0,socket=/{'a' * 107},wire=none"], "socket"),
        (["--port=name=p0,socket=/tmp/x,wire=none,mac=52:54:00:12:34"], "mac"),
        (["--port=name=p0,socket=/tmp/x,wire=none,mac=53:54:00:12:34:56"], "mac"),
        (["--port=name=p0,socket=/tmp/x,wire=none,mac=00:00:00:00:00:00"], "mac"),
        (["--port=name=p0,socket=/tmp/x,wire=none,mac=5:54:00:12:34:56"], "mac"),
        (["--port=name=p0,socket=/tmp/x,wire=none,queues=0"], "queues"),
        (["--port=name=p0,socket=/tmp/x,wire=none,queues=17"], "queues"),
        (["--port=name=p0,socket=/tmp/x,wire=none,queues"], "missing"),
        (["--port=name=p0,socket=/tmp/x,wire=p1"], "p1"),
        (["--port=name=p0,socket=/tmp/x,wire=p0"], "p0"),
        (["--port=name=p0,socket=/tmp/x,wire=p1", "--port=name=p1,socket=/tmp/y,wire=none"], "p1"),
        (["--port=name=p0,socket=/tmp/x,wire=unix:/tmp/a"], "unix:LOCAL:REMOTE"),
        (["--port=name=p0,socket=/tmp/x,wire=tap:"], "interface"),
        (["--port=name=p0,socket=/tmp/x,wire=tap:abcdefghijklmnop"], "interface"),
        ([PORT, PORT], "name"),
        ([PORT, "--port=name=p1,socket=/tmp/none.sock,wire=none"], "socket"),
        ([PORT, "--irq=intx"], "--irq"),
        ([PORT, "--log-level=loud"], "--log-level"),
        ([PORT, "--limit=p1:sa-max=1"], "--limit"),
        ([PORT, "--limit=p0"], "--limit"),
        ([PORT, "--limit=p0:sa-max=0"], "--limit"),
        ([PORT, "--limit=p0:sa-max"], "--limit"),
        ([PORT, "--limit=p0:speed=1"], "--limit"),
        ([PORT, "--limit=p0:no-cipher=rot13"], "--limit"),
        ([PORT, "--capture=p0"], "--capture"),
        ([PORT, "--capture=p1=/tmp/x"], "--capture"),
        ([PORT, "--capture=p0=/tmp/x", "--capture=p0=/tmp/y"], "--capture"),
        ([PORT, "--nonsense"], "nonsense"),
        ([PORT, "argument"], "argument"),
    ],
)
def test_bad_options(args, named):
    result = run(*args)
    assert result.returncode == 2, result
    assert named in result.stderr and "Traceback" not in result.stderr


def test_mac(start):
    """Given, or derived: stable, locally administered, different for each port."""
    board = start(ports=("p0", "p1"))
    cards = [c.Device(board.socket(name)) for name in ("p0", "p1")]
    macs = [card.mac() for card in cards]
    assert macs[0] != macs[1] and all(mac[0] & 3 == 2 for mac in macs)
    assert [m["mac"] for m in sorted(board.log("PORT_ADD"), key=lambda m: m["name"])] == [
        mac.hex() for mac in macs
    ]
    for card in cards:
        card.close()
    board.stop()
    line = [f"--port=name={name},socket={board.socket(name)},wire=none" for name in ("p0", "p1")]
    again = Board(board.directory, [*line, f"--firmware={FAKE_FW}"])
    assert again.ready
    card = c.Device(again.socket("p0"))
    assert card.mac() == macs[0]
    card.close()
    again.stop()


def test_limits(start):
    board = start(
        "--limit=p0:sa-max=16,policy-max=0x20,replay-window-max=64",
        "--limit=p0:no-cipher=aes-gcm,no-auth=hmac-sha1,no-mode=tunnel,no-mode=beet",
        "--limit=p0:no-offload=crypto,no-key-bits=192,no-icv=8,no-icv=12",
        "--limit=p0:no-sa-flag=esn,no-family=inet6,no-feature=tso",
        options=",queues=3",
    )
    assert board.log("PORT_ADD")[0]["limits"] == [
        16,
        32,
        3,
        64,
        0x20000,
        16,
        2,
        12,
        2,
        2,
        0x880,
        1,
        64,
    ]


def test_port_add(start, tmp_path):
    capture = tmp_path / "p0.pcapng"
    board = start(f"--capture=p0={capture}", options=",mac=52:54:00:12:34:56,queues=2")
    add = board.log("PORT_ADD")[0]
    assert (add["vectors"], add["wire"], add["capture"], add["mac"], add["name"]) == (
        3,
        0,
        1,
        "525400123456",
        "p0",
    )
    assert add["fds"] == ["/memfd:cordon-doorbell (deleted)", "anon_inode:[eventfd]", str(capture)]
    inherited = board.log("BORN")[0]["open"]
    assert inherited[:2] == ["/dev/null", str(board.err)] and inherited[2] == str(board.err)
    assert inherited[3].startswith("socket:") and len(inherited) == 4
    assert stat.S_IMODE(capture.stat().st_mode) == 0o600
    born = [entry["type"] for entry in board.log()]
    assert born[:3] == ["BORN", "PORT_ADD", "START"]


def test_shared_memory_wire(tmp_path):
    line = [
        f"--port=name=p0,socket={tmp_path}/p0.sock,wire=p1",
        f"--port=name=p1,socket={tmp_path}/p1.sock,wire=p0",
    ]
    board = Board(tmp_path, [*line, f"--firmware={FAKE_FW}"])
    assert board.ready
    adds = sorted(board.log("PORT_ADD"), key=lambda m: m["name"])
    assert [(m["wire"], m["end"]) for m in adds] == [(1, 0), (1, 1)]
    for add in adds:
        assert add["fds"][2:] == [
            "/memfd:cordon-wire (deleted)",
            "anon_inode:[eventfd]",
            "anon_inode:[eventfd]",
        ]
    assert board.stop() == 0


def test_unix_wire(tmp_path):
    board = Board(
        tmp_path,
        [
            f"--port=name=p0,socket={tmp_path}/p0.sock,"
            f"wire=unix:{tmp_path}/local:{tmp_path}/remote",
            f"--firmware={FAKE_FW}",
        ],
    )
    assert board.ready
    add = board.log("PORT_ADD")[0]
    assert (
        add["wire"] == 2
        and add["path"] == f"{tmp_path}/remote"
        and add["fds"][2].startswith("socket:")
    )
    assert stat.S_ISSOCK((tmp_path / "local").stat().st_mode)
    assert board.stop() == 0
    assert not (tmp_path / "local").exists()


@pytest.mark.skipif(
    not os.access("/dev/net/tun", os.W_OK) or os.geteuid() != 0,
    reason="needs /dev/net/tun and root",
)
def test_tap_wire(tmp_path):
    board = Board(
        tmp_path,
        [f"--port=name=p0,socket={tmp_path}/p0.sock,wire=tap:cordontest0", f"--firmware={FAKE_FW}"],
    )
    assert board.ready
    assert board.log("PORT_ADD")[0]["fds"][2] == "/dev/net/tun"
    assert os.path.exists("/sys/class/net/cordontest0")
    assert board.stop() == 0


def test_wire_that_cant_be_opened(tmp_path):
    result = run(
        f"--port=name=p0,socket={tmp_path}/p0.sock,wire=unix:{tmp_path}/no/local:{tmp_path}/remote",
        f"--firmware={FAKE_FW}",
    )
    assert result.returncode == 1 and "p0" in result.stderr and "local" in result.stderr


def test_sockets_are_replaced_and_unlinked(tmp_path):
    stale = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stale.bind(str(tmp_path / "p0.sock"))
    stale.close()
    board = Board(
        tmp_path, [f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none", f"--firmware={FAKE_FW}"]
    )
    assert board.ready
    other = run(f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none", f"--firmware={FAKE_FW}")
    assert other.returncode == 1 and "in use" in other.stderr
    c.Connection(board.socket()).close()
    assert board.stop() == 0
    assert not list(tmp_path.glob("*.sock*"))
    (tmp_path / "p0.sock").write_text("precious", encoding="ascii")
    other = run(f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none", f"--firmware={FAKE_FW}")
    assert (
        other.returncode == 1 and (tmp_path / "p0.sock").read_text(encoding="ascii") == "precious"
    )


@pytest.mark.parametrize("firmware", ["/nonexistent", "/etc/passwd", "/bin/true", "/bin/false"])
def test_firmware_that_doesnt_start(tmp_path, firmware):
    result = run(f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none", f"--firmware={firmware}")
    assert result.returncode == 1 and firmware in result.stderr
    assert not (tmp_path / "p0.sock").exists()


def test_socket_exists_only_when_firmware_runs(tmp_path):
    (tmp_path / "control").write_text('{"mute": ["START"]}', encoding="ascii")
    line = [CORDOND, f"--port=name=p0,socket={tmp_path}/p0.sock,wire=none", f"--firmware={FAKE_FW}"]
    with subprocess.Popen(
        line, env=dict(os.environ, FAKE_FW_DIR=str(tmp_path)), stdout=subprocess.PIPE
    ) as process:
        time.sleep(1)
        assert process.poll() is None and not (tmp_path / "p0.sock").exists()
        process.terminate()
        assert process.wait(10) == 0
        assert process.stdout.read() == b""


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_end(start, signo):
    board = start()
    card = c.Card(board.socket())
    card.enable()
    pid = board.firmware_pid()
    assert board.stop(signo) == 0
    assert not os.path.exists(board.socket()) and not os.path.exists(f"/proc/{pid}")
    assert board.log("END")
    card.close()


def test_end_with_hung_firmware(start):
    board = start()
    os.kill(board.firmware_pid(), signal.SIGSTOP)
    assert board.stop() == 0
    assert not os.path.exists(f"/proc/{board.firmware_pid()}")


def test_killed_board_takes_its_firmware_along(start):
    board = start()
    board.stop(signal.SIGKILL)

    def gone():
        try:
            with open(f"/proc/{board.firmware_pid()}/stat", encoding="ascii") as file:
                return file.read().split()[2] in "ZX"
        except FileNotFoundError:
            return True

    c.wait_for(gone)


def test_firmware_beside_the_board(start, tmp_path):
    """Without --firmware: beside the program, or in ../libexec/cordon."""
    for place in ("sbin/cordon-fw", "libexec/cordon/cordon-fw"):
        root = tmp_path / place.replace("/", "-")
        (root / "sbin").mkdir(parents=True)
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / "sbin/cordond").write_bytes(CORDOND.read_bytes())
        (root / "sbin/cordond").chmod(0o755)
        (root / place).symlink_to(FAKE_FW)
        line = [root / "sbin/cordond", f"--port=name=p0,socket={root}/p0.sock,wire=none"]
        with subprocess.Popen(
            line, env=dict(os.environ, FAKE_FW_DIR=str(root)), stdout=subprocess.PIPE
        ) as process:
            assert process.stdout.readline() == b"ready\n"
            process.terminate()
            assert process.wait(10) == 0
