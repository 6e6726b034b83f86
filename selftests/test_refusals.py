# SPDX-License-Identifier: GPL-2.0-only
"""What the card can't do is refused by name: packet mode fails, crypto mode falls back to software."""

import pytest

from kit import Policy, Sa
from kit.host import DEV

CASES = {
    "suite": ("auth 'hmac(md5)' 0x00112233445566778899aabbccddeeff "
              "enc 'cbc(aes)' 0x00112233445566778899aabbccddeeff", "transport", "hmac(md5)"),
}
# In crypto mode the stack makes the inner header.
PACKET_CASES = CASES | {
    "beet": ("aead 'rfc4106(gcm(aes))' 0x" + bytes(range(20)).hex() + " 128", "beet", "selector of /0 and /0"),
}


def state_add(host, words, mode, offload):
    """Add an outbound SA of the left host."""
    return host.run(f"ip xfrm state add src {host.v4} dst 10.9.0.2 proto esp spi 0x2000 reqid 1 mode {mode} {words} "
                    f"offload {offload} dev {DEV} dir out", check=False)


@pytest.mark.core
@pytest.mark.parametrize("name", PACKET_CASES)
def test_packet_mode_says_why(pair, name):
    words, mode, text = PACKET_CASES[name]
    result = state_add(pair.left, words, mode, "packet")
    assert result.status != 0
    assert "cordon" in result.stderr and text in result.stderr, result.stderr
    assert pair.left.run("ip xfrm state").stdout == ""


@pytest.mark.core
@pytest.mark.parametrize("name", CASES)
def test_crypto_mode_falls_back(pair, name):
    words, mode, text = CASES[name]
    result = state_add(pair.left, words, mode, "crypto")
    assert result.status == 0, result.stderr
    assert "cordon" in result.output and text in result.output, result.output
    assert "offload" not in pair.left.run("ip xfrm state").stdout


@pytest.mark.core
def test_core_refuses_tfc_and_ah(pair):
    sa = Sa(pair.left.v4, pair.right.v4, 0x2000, extra="tfcpad 100")
    assert sa.add(pair.left, "out", "packet", check=False).status != 0
    result = pair.left.run(f"ip xfrm state add src {pair.left.v4} dst 10.9.0.2 proto ah spi 0x2000 mode transport "
                           f"auth-trunc 'hmac(sha256)' 0x{bytes(range(32)).hex()} 128 offload packet dev {DEV} dir out",
                           check=False)
    assert result.status != 0


@pytest.mark.parametrize("words", ("mark 5", "ptype sub"))
def test_policies_that_are_refused(pair, words):
    policy = Policy(pair.left.v4, pair.right.v4, "in", Sa(pair.left.v4, pair.right.v4, 0), extra="")
    full = policy.words("packet").replace(" priority", f" {words} priority", 1)
    result = pair.left.run(f"ip xfrm policy add {full}", check=False)
    assert result.status != 0


@pytest.mark.core
@pytest.mark.parametrize("direction", ("in", "out", "fwd"))
@pytest.mark.parametrize("action", ("allow", "block"))
@pytest.mark.parametrize("template", (False, True), ids=("bare", "template"))
def test_policies_that_are_taken(pair, direction, action, template):
    # Of its own reqid: one whose SA was refused in packet mode gets no policy in it.
    sa = Sa(pair.left.v4, pair.right.v4, 0, reqid=9) if template else None
    Policy(pair.left.v4, pair.right.v4, direction, sa, action=action).add(pair.left, "packet")
    assert "mode packet" in pair.left.run("ip xfrm policy").stdout


@pytest.mark.core
def test_ike_bypass_is_taken(pair):
    """As strongSwan installs it: family-wide, UDP, one port, no template, bound to the interface."""
    for port in (500, 4500):
        pair.left.run(f"ip xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 proto udp dport {port} dev {DEV} dir in priority 32 "
                      f"offload packet dev {DEV}")
        pair.left.run(f"ip xfrm policy add src 0.0.0.0/0 dst 0.0.0.0/0 proto udp sport {port} dev {DEV} dir out priority 32 "
                      f"offload packet dev {DEV}")


def test_block_policy_blocks(pair):
    Policy(pair.left.v4, pair.right.v4, "in", action="block").add(pair.right, "packet")
    assert pair.left.ping(pair.right.v4, check=False) == 0
    pair.right.clear_xfrm()
    pair.left.ping(pair.right.v4)
