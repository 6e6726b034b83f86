# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the lab."""

import argparse
import glob
import os
import signal
import sys
import tempfile
import time

from . import host, module, recipe, terminal
from .errors import GuestFailed, LabError
from .lab import Lab
from .root import Root, remove_tree


def _add_lab_options(parser):
    parser.add_argument("--kernel", default="7.3", metavar="SERIES",
                        help="kernel of the guests, such as 6.12 (default: %(default)s); "
                             "several, with commas: one for each guest")
    parser.add_argument("--vms", type=int, metavar="N", default=1, help="guests (default: 1)")
    parser.add_argument("--vcpus", type=int, metavar="N", default=2,
                        help="processors of each guest (default: %(default)s)")
    parser.add_argument("--mem", type=int, metavar="MIB", default=768,
                        help="memory of each guest (default: %(default)s MiB)")
    parser.add_argument("--ports", default="0", metavar="N[,N...]",
                        help="card ports of each guest (default: 0)")
    parser.add_argument("--wiring", default="back2back", choices=("back2back", "loop", "chain"),
                        help="how the ports are wired: guests in pairs, ports of one guest in "
                             "pairs, or guests in a row (default: %(default)s)")
    parser.add_argument("--management", action="store_true",
                        help="also join the guests by a network without the card (mgmt0)")
    parser.add_argument("--capture", action="store_true", help="capture every port; keeps the logs")
    parser.add_argument("--build", metavar="DIR",
                        help="build directory with firmware/cordond (default: $BUILD, build); "
                             "seen in guests as /build")
    parser.add_argument("--cordond", metavar="FILE", help="cordond to use (default: $CORDOND, "
                                                          "then firmware/cordond in --build)")
    for what in ("cordond", "kernel", "qemu"):
        parser.add_argument(f"--{what}-arg", action="append", default=[], metavar="WORD",
                            help=f"one more word for {what}'s command line; repeatable")
    parser.add_argument("--boot-timeout", type=float, default=120, metavar="S",
                        help="seconds until the guests must be up (default: %(default)s)")
    parser.add_argument("--keep-logs", action="store_true",
                        help="keep the logs although nothing failed")


def _make_lab(args):
    kernels = args.kernel.split(",")
    counts = [int(word) for word in args.ports.split(",")]
    return Lab(kernel=kernels[0] if len(kernels) == 1 else kernels, vms=args.vms,
               ports=counts[0] if len(counts) == 1 else counts, wiring=args.wiring,
               vcpus=args.vcpus, mem=args.mem, management=args.management,
               capture=args.capture, build=args.build, cordond=args.cordond,
               cordond_args=args.cordond_arg, kernel_args=args.kernel_arg,
               qemu_args=args.qemu_arg, boot_timeout=args.boot_timeout,
               keep_logs=args.keep_logs or args.capture)


def _command(words):
    """The words after "--": one word is for the shell, several are a command."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise LabError("no command given")
    return words[0] if len(words) == 1 else words


def do_root(args):
    print(Root(rebuild=args.rebuild).path)


def do_kernels(_args):
    for series, kernel in Root().kernels(bootable=False).items():
        print(series, kernel.release, kernel.headers, "" if kernel.image else "(headers only)")


def do_module(args):
    print(module.make(Root(), args.series, args.build, args.options))


def do_in_root(args):
    command = _command(args.command)
    if isinstance(command, str):
        command = ["/bin/sh", "-c", command]
    return Root().interactive(command, args.bind, os.getcwd() if _in_tree() else None)


def _in_tree():
    return str(host.tree()) in (os.getcwd(), *map(str, _parents(os.getcwd())))


def _parents(path):
    while path != "/":
        path = os.path.dirname(path)
        yield path


def do_run(args):
    command = _command(args.command)
    started = time.monotonic()
    with _make_lab(args) as lab:
        host.say(f"{len(lab.vms)} guest(s) up after {time.monotonic() - started:.1f} s "
                 f"({lab.accel})")
        status = _follow(lab.vms[0].start(command, timeout=args.timeout))
        if lab.keep_logs:
            host.say("logs:", lab.logs)
    return status


def _follow(process):
    """Show a command's output as it comes; return its exit status as a shell would."""
    while True:
        out, err, ended = process.new_output()
        for stream, data in ((sys.stdout, out), (sys.stderr, err)):
            stream.buffer.write(data)
            stream.flush()
        if ended:
            result = process.wait()
            if result.timed_out:
                host.say("the command was ended: its time was up; console log:",
                         process.guest.console.path)
                raise LabError("time-out")
            return result.status if result.status >= 0 else 128 - result.status
        time.sleep(0.1)


def do_shell(args):
    with _make_lab(args) as lab:
        for vm in lab.vms[1:]:
            host.say(f"{vm.name}: {sys.argv[0]} attach {vm.shell_socket}")
        if sys.stdin.isatty():
            terminal.attach(lab.vms[0].shell_socket)
            return 0
        return _follow(lab.vms[0].start(["bash", "-l"], stdin=sys.stdin.buffer.read()))


def do_attach(args):
    found = [args.socket] if args.socket else sorted(
        glob.glob(os.path.join(tempfile.gettempdir(), "cordon-lab-*", "vm*", "shell.sock")))
    if len(found) == 1:
        terminal.attach(found[0])
    elif found:
        raise LabError("which one?\n  " + "\n  ".join(found))
    else:
        raise LabError("no lab is running")


def do_clean(args):
    """Remove what the cache holds; roots in use stay."""
    keep = f"root-{recipe.digest()}" if args.old else None
    for path in sorted(host.cache_dir().iterdir()):
        if keep and path.name.startswith((keep, "mnt", "accel")):
            continue
        if path.name.startswith("root-") and path.suffix != ".lock" and path.is_dir():
            lock = host.cache_dir() / (path.name.removesuffix(".part") + ".lock")
            with host.locked(lock, wait=False):
                host.say("removing", path)
                remove_tree(path)
        elif path.is_file() and path.suffix != ".lock":
            path.unlink()


def _parser():
    parser = argparse.ArgumentParser(
        prog="lab", description="Guests with Cordon cards, in a Debian root of their own.",
        epilog="Environment: LAB_ACCEL=kvm|tcg, LAB_MIRROR (Debian archive to use), LAB_LOGS "
               "(where logs go), CORDOND, XDG_CACHE_HOME.")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    def add(name, function, text):
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(function=function)
        return sub

    sub = add("root", do_root, "make the root if there is none, and print its path")
    sub.add_argument("--rebuild", action="store_true", help="make it anew, with today's packages")
    add("kernels", do_kernels, "list the kernels of the root")
    sub = add("module", do_module, "build the driver for a kernel of the root")
    sub.add_argument("series", help="kernel, such as 6.12")
    sub.add_argument("--build", metavar="DIR", help="build directory (default: $BUILD, build)")
    sub.add_argument("options", nargs="*", help="more words for make, such as W=1")
    sub = add("run", do_run, "run a command in the first guest; returns its exit status")
    _add_lab_options(sub)
    sub.add_argument("--timeout", type=float, default=600, metavar="S",
                     help="seconds the command may take (default: %(default)s)")
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD",
                     help="a command, or one word for the shell")
    sub = add("shell", do_shell, "start guests and open a shell in the first")
    _add_lab_options(sub)
    sub = add("attach", do_attach, "open the shell of a guest that runs already")
    sub.add_argument("socket", nargs="?", help="its shell.sock, if more than one runs")
    sub = add("in-root", do_in_root, "run a command in the root, on this host's kernel")
    sub.add_argument("--bind", action="append", default=[], metavar="DIR",
                     help="a directory to be seen inside too; the checkout always is")
    sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD")
    sub = add("clean", do_clean, "remove roots and initrds from the cache")
    sub.add_argument("--old", action="store_true", help="keep what the present recipe uses")
    return parser


def main(argv=None):
    """Return the exit status: the command's, or 125 when the lab itself failed."""
    args = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        return args.function(args) or 0
    except GuestFailed as err:
        host.say("FAILED:", err)
    except LabError as err:
        host.say("error:", err)
    except KeyboardInterrupt:
        host.say("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return 125
