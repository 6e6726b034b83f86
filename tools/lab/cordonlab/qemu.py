# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's command line for a guest."""

import json

#: slot of a guest's first port on the root bus, and how many fit after it
FIRST_SLOT = 0x10
MAX_PORTS = 14

#: Warnings reach the console from the start (loglevel 5), all else once it is up. The
#: time-outs are for guests that run without hardware support on busy cores.
KERNEL_ARGS = (
    "console=ttyS0 loglevel=5 panic=0 net.ifnames=0 mitigations=off no5lvl random.trust_cpu=on "
    "no_timer_check rcupdate.rcu_cpu_stall_timeout=150 watchdog_thresh=60 "
    "workqueue.watchdog_thresh=150"
)


def port_address(index):
    """The PCI address, as the guest's sysfs has it, of a guest's port."""
    return f"0000:00:{FIRST_SLOT + index:02x}.0"


def accel_args(accel):
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def machine_args(accel, vcpus, mem):
    """Guest memory is a shared memfd: without one every DMA is a message."""
    return ["qemu-system-x86_64", *accel_args(accel), "-nodefaults", "-no-user-config",
            "-display", "none", "-smp", str(vcpus), "-m", str(mem),
            "-object", f"memory-backend-memfd,id=mem,size={mem}M,share=on",
            "-machine", "q35,memory-backend=mem"]


def kernel_args(kernel, initrd, words):
    return ["-kernel", kernel.image, "-initrd", str(initrd),
            "-append", " ".join([KERNEL_ARGS, *words])]


def line_args(directory, log):
    """Console to a log; sockets of agent, shell and QMP in the guest's directory."""
    args = ["-chardev", f"file,id=console,path={log},append=on",
            "-serial", "chardev:console", "-device", "virtio-serial-pci,max_ports=4"]
    for name, device in (("shell", "virtconsole,chardev=shell"),
                         ("agent", "virtserialport,chardev=agent,name=lab.agent")):
        args += ["-chardev", f"socket,id={name},path={directory}/{name}.sock,server=on,wait=off",
                 "-device", device]
    return args + ["-qmp", f"unix:{directory}/qmp.sock,server=on,wait=off"]


def share_args(shares):
    """shares: (tag, path, writable)."""
    args = []
    for tag, path, writable in shares:
        mode = "" if writable else ",readonly=on"
        args += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{mode}",
                 "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return args


def port_args(index, port):
    """One function of the card, at a slot that follows from its index."""
    device = {"driver": "vfio-user-pci", "id": port.name, "bus": "pcie.0",
              "addr": f"{FIRST_SLOT + index:#x}",
              "socket": {"path": str(port.socket), "type": "unix"}}
    return ["-device", json.dumps(device)]


def management_args(directory, number, count):
    """A network of all guests without the card: guest 0 is the hub of datagram sockets."""

    def link(ident, mine, peer):
        return ["-netdev", f"dgram,id={ident},local.type=unix,local.path={directory}/mgmt-{mine},"
                           f"remote.type=unix,remote.path={directory}/mgmt-{peer}"]

    nic = f"virtio-net-pci,romfile=,netdev=mgmt,mac=52:54:00:00:00:{number + 1:02x}"
    if number:
        return [*link("mgmt", f"{number}-0", f"0-{number}"), "-device", nic]
    args = ["-netdev", "hubport,hubid=0,id=mgmt", "-device", nic]
    for peer in range(1, count):
        args += link(f"leg{peer}", f"0-{peer}", f"{peer}-0")
        args += ["-netdev", f"hubport,hubid=0,id=hub{peer},netdev=leg{peer}"]
    return args
