# SPDX-License-Identifier: GPL-2.0-only
"""Configuration files of strongSwan, made from a few facts."""

from dataclasses import dataclass, field

#: The plugins that a gateway with pre-shared keys needs; openssl has the algorithms.
PLUGINS = "random nonce openssl kdf kernel-netlink socket-default vici"

DAEMON = """\
charon {{
	load = {plugins}
	install_routes = no
	retransmit_base = 1.4
	filelog {{
		file {{
			path = {log}
			time_format = %H:%M:%S
			flush_line = yes
			default = 1
			knl = 2
		}}
	}}
}}
"""


@dataclass
class Child:
    """A CHILD_SA. local_ts and remote_ts are those of the left gateway."""

    name: str
    local_ts: str
    remote_ts: str
    mode: str = "tunnel"
    hw_offload: str = "no"
    esp_proposals: str = "aes128gcm16-x25519"
    more: dict = field(default_factory=dict)

    def swapped(self):
        """The same child as the right gateway has it."""
        return Child(self.name, self.remote_ts, self.local_ts, self.mode, self.hw_offload,
                     self.esp_proposals, self.more)

    def settings(self):
        """Return what swanctl.conf has in the child's section."""
        return {"local_ts": self.local_ts, "remote_ts": self.remote_ts, "mode": self.mode,
                "hw_offload": self.hw_offload, "esp_proposals": self.esp_proposals,
                "start_action": "none", **self.more}


@dataclass
class Connection:
    """An IKE_SA with its children, as the left gateway has it."""

    name: str
    local: str
    remote: str
    children: list
    psk: str = field(repr=False)
    local_id: str = "left"
    remote_id: str = "right"
    proposals: str = "aes128gcm16-prfsha256-x25519"

    def swapped(self):
        """The same connection as the right gateway has it."""
        return Connection(self.name, self.remote, self.local,
                          [child.swapped() for child in self.children],
                          self.psk, self.remote_id, self.local_id, self.proposals)

    def settings(self):
        """Return what swanctl.conf has in the connection's section."""
        return {"version": "2", "mobike": "no",
                "local_addrs": self.local, "remote_addrs": self.remote,
                "proposals": self.proposals,
                "local": {"auth": "psk", "id": self.local_id},
                "remote": {"auth": "psk", "id": self.remote_id},
                "children": {child.name: child.settings() for child in self.children}}

    def secret(self):
        """Return what swanctl.conf has in the section of the connection's secret."""
        return {"id-left": self.local_id, "id-right": self.remote_id, "secret": f'"{self.psk}"'}


def swanctl(connections):
    """Return the text of swanctl.conf."""
    return section({
        "connections": {entry.name: entry.settings() for entry in connections},
        "secrets": {f"ike-{entry.name}": entry.secret() for entry in connections}})


def section(tree, depth=0):
    """Return nested dicts as the text of a configuration file."""
    text = ""
    for name, value in tree.items():
        indent = "\t" * depth
        if isinstance(value, dict):
            text += f"{indent}{name} {{\n{section(value, depth + 1)}{indent}}}\n"
        else:
            text += f"{indent}{name} = {value}\n"
    return text


def daemon(log):
    """Return the text of strongswan.conf."""
    return DAEMON.format(plugins=PLUGINS, log=log)
