# SPDX-License-Identifier: GPL-2.0-only
"""What the documents say of names, options and targets is what there is. Needs no guest."""

import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
DRIVER = TOP / "drivers/net/ethernet/cordon"
BUILD = Path(os.environ.get("BUILD", TOP / "build"))
PAGES = ("cordon.rst", "cordon-abi.rst", "design.rst", "ipsec.rst")
#: directives of the kernel's documentation, which docutils doesn't know
KERNEL_DOC = re.compile(r"^\.\. kernel-doc:: (\S+)$", re.M)


def read(path):
    return (TOP / path).read_text(encoding="utf-8")


def driver(name):
    return (DRIVER / name).read_text(encoding="utf-8")


def table(source, start):
    """The body of an initializer that begins with a line that contains start."""
    return source.split(start, 1)[1].split("\n};", 1)[0]


def result_names():
    """Constant and name of each result that has counters."""
    return re.findall(r'\[(CORDON_RESULT_\w+)\] = "(\w+)"', driver("cordon_ethtool.c"))


def counters():
    """Names that `ethtool -S` prints, with N for the number of a queue."""
    ethtool, ipsec = driver("cordon_ethtool.c"), driver("cordon_ipsec.c")
    names = {"port_" + name for name in re.findall(r"PORT_COUNTER\((\w+)\),", ethtool)}
    names |= {f"{way}_drop_{name}" for way in ("rx", "tx") for _, name in result_names()}
    for way in ("rx", "tx"):
        members = re.findall(r"_COUNTER\((\w+)\)", table(ethtool, f"struct counter {way}_counters[]"))
        names |= {f"{way}N_{name}" for name in members}
    names |= set(re.findall(r'= "(\w+)"', table(ipsec, "stat_names[][ETH_GSTRING_LEN]")))
    return names | set(re.findall(r'ethtool_puts\(data, "(\w+)"\)', ipsec))


def documented_counters():
    """Counters that the section on statistics has an entry for."""
    section = read("docs/cordon.rst").split("\nStatistics\n", 1)[1].split("\ndevlink\n", 1)[0]
    entries = re.findall(r"^``\w+``(?:, ``\w+``)*(?: \(\w+\))?$", section, re.M)
    return set(re.findall(r"``(\w+)``", "\n".join(entries)))


def test_every_counter_is_documented():
    names = counters()
    assert len(names) > 80
    assert names - documented_counters() == set()


def test_every_documented_counter_exists():
    assert documented_counters() - counters() == set()


def test_results():
    """Each result is in the page, and has a counter if it is one."""
    constants = set(re.findall(r"^\t(CORDON_RESULT_\w+) = ", read("include/cordon/result.h"), re.M))
    page = read("docs/cordon.rst")
    assert [name for name in sorted(constants) if not re.search(rf"\b{name}\b", page)] == []
    named = {constant for constant, _ in result_names()}
    assert constants - named == {"CORDON_RESULT_OK", "CORDON_RESULT_CNT"}


def test_counter_stands_by_its_result():
    page = read("docs/cordon.rst")
    for constant, name in result_names():
        assert f"``rx_drop_{name}``, ``tx_drop_{name}`` ({constant})" in page


def test_every_file_of_the_driver_is_listed():
    rows = table(read("docs/cordon.rst"), "\nFiles\n").split("\nBARs\n", 1)[0]
    listed = set()
    for name in re.findall(r"^([\w.\[\]]+) {2,}", rows, re.M):
        listed |= {name.replace("[ch]", kind) for kind in "ch"}
    names = {path.name for path in DRIVER.iterdir() if path.suffix in (".c", ".h") and not path.name.endswith(".mod.c")}
    assert names | {"Kconfig", "Makefile"} == listed - {"file"}


def test_debugfs_and_devlink():
    page = read("docs/cordon.rst")
    files = re.findall(r'debugfs_create_file\("([\w-]+)"', driver("cordon_debugfs.c"))
    files += [name.replace("%u", "N") for name in re.findall(r'sizeof\(name\), "([\w%-]+)"', driver("cordon_debugfs.c"))]
    assert sorted(files) == ["admin", "ipsec_limits", "ipsec_sas", "queue-N"]
    assert [name for name in files if f"\n``{name}``\n" not in page] == []
    versions = re.findall(r'version_running_put\(req, "([\w.]+)"', driver("cordon_devlink.c"))
    assert versions
    assert [name for name in versions if f"\n{name} " not in page] == []


def test_no_module_parameters():
    assert not [path for path in DRIVER.glob("*.c") if "module_param" in path.read_text(encoding="utf-8")]


def refusals():
    """Messages of refusals."""
    for name in ("cordon_ipsec_check.c", "cordon_ipsec_suite.c", "cordon_policy.c"):
        yield from re.findall(r'NL_SET_ERR_MSG(?:_FMT)?_MOD\(extack,\s*"([^"]*)"', driver(name))


def test_refusals_have_the_documented_form():
    form = re.compile(r"allowed:|by this card$|the card's table holds|^flag esn without")
    assert [text for text in refusals() if not form.search(text)] == []


def test_abi_page_shows_every_header():
    shown = set(KERNEL_DOC.findall(read("docs/cordon-abi.rst")))
    headers = {f"include/cordon/{path.name}" for path in (TOP / "include/cordon").glob("*.h")}
    # abi.h holds macros only, and the page names them.
    assert headers - shown == {"include/cordon/abi.h"}
    assert shown - headers == set()


@pytest.mark.parametrize("page", PAGES)
def test_page_is_well_formed(page):
    core = pytest.importorskip("docutils.core", reason="python3-docutils isn't installed")
    utils = pytest.importorskip("docutils.utils")
    text = KERNEL_DOC.sub("", read(f"docs/{page}"))
    strict = {"report_level": 1, "halt_level": 1, "warning_stream": False}
    try:
        core.publish_doctree(text, source_path=page, settings_overrides=strict)
    except utils.SystemMessage as message:
        pytest.fail(str(message), pytrace=False)


def test_make_targets_of_the_readme():
    helped = subprocess.run(["make", "-s", "help"], cwd=TOP, capture_output=True, text=True, timeout=30, check=True).stdout
    targets = set(re.findall(r"^  ([a-z-]+)  ", helped.split("Variables:")[0], re.M))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", " ".join(re.findall(r"`make [^`]*`|^    make .*$", read("README.md"), re.M))))
    assert "check" in named
    assert named - targets == set()


def test_files_that_the_readme_names():
    names = re.findall(r"`((?:docs|tools|firmware|drivers|include|selftests)/[\w./-]*)`", read("README.md"))
    names += [f"docs/{name}" for name in re.findall(r"`([\w-]+\.rst)`", read("README.md"))]
    assert names
    assert [name for name in names if not (TOP / name).exists()] == []


def man_page():
    """The manual page without troff's escapes."""
    text = re.sub(r"\\f.", "", read("docs/man/cordond.8")).replace("\\-", "-")
    return re.sub(r"^\.(?:BI|BR|B|IR|RB|I|RI) ", "", text, flags=re.M)


def test_options_of_the_man_page():
    program = BUILD / "firmware/cordond"
    if not program.exists():
        pytest.skip(f"{program} isn't built")
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
    options = set(option.findall(helped))
    assert "--port" in options
    page = man_page().split(".SH OPTIONS", 1)[1].split(".SH EXIT", 1)[0]
    assert set(option.findall(page)) == options


def test_limits_of_the_man_page():
    source, page = read("firmware/board/options.c"), man_page()
    tokens = re.findall(r'"([\w-]+)"', table(source, "static void resolve_limit").split("NULL", 1)[0])
    assert "sa-max" in tokens
    assert [name for name in tokens if f"{name}=" not in page] == []
