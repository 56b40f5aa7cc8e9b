"""Manifests: what a good one says, and every way a bad one is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.manifest import Claim, Manifest, load
from conformance.manifest_checks import PROFILES
from conformance.targets import ADAPTERS, shipped
from scenarios.obligations import OBLIGATIONS
from simkit.errors import ExitCode, SimkitError

GOOD = """
protocol = 1
[harness]
name = "mine"
version = "1.2.0"
storage = "file"
configuration = "safe"
recovery = "on_request"
early_signal = "refused"
[install]
pip = ["mine=={version}"]
[configurations.safe]
env = { MODE = "safe" }
[configurations.fast]
claims = { DUR-1 = false, SIG-1 = { statement = "kept", source = "doc" } }
[units.worker]
command = ["{python}", "adapter.py"]
control = true
[units.engine]
command = ["engine", "--port"]
killable = false
[operations]
supported = ["seq", "call"]
[verbs]
supported = ["start", "status", "resume", "cancel"]
[claims]
DUR-1 = { statement = "durable", source = "doc" }
[shows]
operations = true
[limits]
settle_ms = 100
timer_grain_ms = 3
[swarm]
DELAY_MS = ["0", "5"]
[settings]
poll_s = 0.02
tracing = false
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "adapter.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refuse(path: Path) -> str:
    with pytest.raises(SimkitError) as caught:
        load(path)
    assert caught.value.problem.exit_code is ExitCode.USAGE
    assert str(path) in caught.value.problem.where
    return str(caught.value)


def change(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_a_good_manifest_is_read(tmp_path: Path) -> None:
    """Every section arrives; the unit that is asked comes last, whatever its place in the file."""
    manifest = load(write(tmp_path, GOOD))
    assert isinstance(manifest, Manifest)
    assert manifest.launch_order() == ("engine", "worker")
    assert manifest.install.pip == ("mine=={version}",)
    assert manifest.configurations["safe"].env == {"MODE": "safe"}
    assert manifest.limits.settle_ms == 100
    assert manifest.verbs.supported == ("start", "status", "resume", "cancel")
    assert manifest.swarm == {"DELAY_MS": ("0", "5")}
    assert manifest.settings == {"poll_s": 0.02, "tracing": False}
    declared = manifest.declared()
    assert (declared.early_signal, declared.timer_grain_ns, declared.shows_operations) == ("refused", 3_000_000, True)


def test_a_manifest_is_worked_out_once_for_as_long_as_it_says_the_same(tmp_path: Path) -> None:
    """Every seed of a campaign asks for it."""
    path = write(tmp_path, GOOD)
    first = load(path)
    assert load(path) is first
    assert load(write(tmp_path, change(GOOD, ('"1.2.0"', '"1.3.0"')))).harness.version == "1.3.0"


def test_claims_of_nothing_are_told_with_the_other_mistakes(tmp_path: Path) -> None:
    """Mistakes of every kind come at once, so that a manifest is mended in one go."""
    text = change(GOOD, ("DUR-1 = { statement", "DURR-1 = { statement"), ('version = "1.2.0"', "version = 1"))
    told = refuse(write(tmp_path, text.replace("DUR-1 = false", "Durabel = false")))
    assert "3 mistakes" in told
    assert "harness.version: expected str" in told
    assert "claims: 'DURR-1' is neither an obligation nor a profile" in told
    assert "configurations.fast.claims: 'Durabel'" in told


def test_mistakes_of_all_kinds_are_told_beside_another_protocol(tmp_path: Path) -> None:
    """Protocol, unknown sections and keys, claims of nothing and parts that do not fit: none of them hides another."""
    text = change(
        GOOD,
        ("protocol = 1", "protocol = 2"),
        ("[shows]", "[harnes]\nx = 1\n[shows]"),
        ("DUR-1 = { statement", "DUR-99 = { statement"),
        ("settle_ms = 100", "setle_ms = 100\nslots = -1"),
        ("killable = false", "control = true"),
        ("{version}", "{release}"),
    )
    told = refuse(write(tmp_path, text))
    assert "adapter-protocol" in told
    for line in (
        "speaks protocol 2; read as protocol 1, the manifest has 6 mistakes",
        "unknown key 'harnes' (did you mean 'harness'?)",
        "claims: 'DUR-99' is neither",
        "limits: unknown key 'setle_ms' (did you mean 'settle_ms'?)",
        "limits.slots: -1",
        "here 2 of 2 do",
        "install.pip[0]: nobody fills in {release}",
    ):
        assert line in told


def test_a_setting_that_nothing_can_be_drawn_for_is_told(tmp_path: Path) -> None:
    """Values are text, as everything in an environment, and there is at least one."""
    told = refuse(write(tmp_path, change(GOOD, ('["0", "5"]', "[]"))))
    assert "swarm.DELAY_MS: empty; expected the values to draw from, the usual one first" in told
    assert "swarm.DELAY_MS" in refuse(write(tmp_path, change(GOOD, ('["0", "5"]', "[0]"))))


def test_a_section_with_a_mistake_is_not_blamed_for_what_it_could_not_say(tmp_path: Path) -> None:
    """A unit that cannot be read may be the one in control, so nothing is said about control."""
    told = refuse(write(tmp_path, change(GOOD, ("control = true", 'control = "yes"'))))
    assert "the manifest has one mistake" in told


def test_claims_of_a_configuration_override_those_of_the_file(tmp_path: Path) -> None:
    """A configuration adds claims of its own and withdraws some of the file's."""
    manifest = load(write(tmp_path, GOOD))
    assert manifest.claims_of("safe") == {"DUR-1": Claim("durable", "doc")}
    assert manifest.claims_of("fast") == {"SIG-1": Claim("kept", "doc")}


def test_least_manifest(tmp_path: Path) -> None:
    """Protocol, harness and one unit are enough."""
    text = 'protocol = 1\n[harness]\nname = "a"\nversion = "1"\nstorage = "x"\n[units.w]\ncommand = ["y"]\ncontrol = true\n'
    manifest = load(write(tmp_path, text))
    assert manifest.harness.configuration in manifest.configurations
    assert manifest.claims_of("default") == {}


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Types, unknown keys with the nearest right one, missing keys and choices: each with its path, in one message."""
    text = change(
        GOOD,
        ('storage = "file"\n', "size = 3\n"),
        ('recovery = "on_request"', 'recovery = "on_reqest"'),
        ('command = ["{python}", "adapter.py"]', 'command = "python adapter.py"'),
        ("killable = false", "kilable = false"),
        ("settle_ms = 100", 'settle_ms = "100"'),
        ("operations = true", "operations = 1"),
        ('supported = ["seq", "call"]', 'supported = ["seq", "lop"]'),
        ("DUR-1 = false", "DUR-1 = true"),
        ('{ statement = "durable", source = "doc" }', '{ statment = "durable", source = "doc" }'),
        ("protocol = 1", "protocol = 1\nhooks = []"),
    )
    told = refuse(write(tmp_path, text))
    for line in (
        "harness.storage: required key 'storage' is missing",
        "harness: unknown key 'size'",
        "harness.recovery: 'on_reqest' is none of automatic, on_request (did you mean 'on_request'?)",
        "units.worker.command: expected a list, got str 'python adapter.py'",
        "units.engine: unknown key 'kilable' (did you mean 'killable'?)",
        "limits.settle_ms: expected int, got str '100'",
        "shows.operations: expected bool, got int 1",
        "operations.supported[1]: 'lop' is none of",
        "configurations.fast.claims.DUR-1: expected a table with statement and source, or false; got True",
        "claims.DUR-1: unknown key 'statment' (did you mean 'statement'?)",
        "claims.DUR-1.statement: required key 'statement' is missing",
        "unknown key 'hooks'",
    ):
        assert f"    - {line}" in told
    assert "the manifest has 12 mistakes" in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'configuration = "safe"',
            'configuration = "sfae"',
            "there is no [configurations.sfae] (did you mean 'safe'?)",
        ),
        ("control = true", "control = false", "one unit has control = true, the one the kit asks; here 0 of 2 do"),
        ("killable = false", "control = true", "here 2 of 2 do"),
        ("control = true", "control = true\nkillable = false", "units: none is killable"),
        ("{python}", "{pyton}", "units.worker.command[0]: nobody fills in {pyton}; expected {python}"),
        ("{version}", "{release}", "install.pip[0]: nobody fills in {release}; expected {version}"),
        ('["engine", "--port"]', "[]", "units.engine.command: empty"),
        ('["seq", "call"]', '["seq", "wait"]', "operations.supported: 'call' is missing"),
        ("settle_ms = 100", "settle_ms = 0", "limits.settle_ms: 0 milliseconds"),
        ("settle_ms = 100", "slots = -1", "limits.slots: -1; expected more than none"),
        ('"cancel"]', '"cancle"]', "verbs.supported[3]: 'cancle' is none of"),
        ('"status", ', "", "verbs.supported: 'status' is missing"),
        ('"resume", ', "", "verbs.supported: 'resume' is missing"),
        ('["seq", "call"]', '["seq", "call", "wait", "approve"]', "verbs.supported: 'decide' is missing"),
        ('["seq", "call"]', '["seq", "call", "wait", "approve"]', "verbs.supported: 'signal' is missing"),
        ('"cancel"]', '"pause"]', "'pause' and 'unpause' come together"),
        ("DUR-1 = {", "DRU-1 = {", "claims: 'DRU-1' is neither an obligation nor a profile (did you mean 'DUR-1'?)"),
        ("DUR-1 = {", "Durabel = {", "(did you mean 'Durable'?)"),
        ("DUR-1 = {", "DUR-99 = {", "claims: 'DUR-99' is neither an obligation nor a profile (did you mean 'DUR-9"),
        (
            "SIG-1 = {",
            "SIG-47 = {",
            "configurations.fast.claims: 'SIG-47' is neither an obligation nor a profile (did you",
        ),
        ("DUR-1 = {", "xx = {", "claims: 'xx' is neither an obligation nor a profile (`simkit list obligations` has"),
        ("SIG-1 = {", "SIG = {", "configurations.fast.claims: 'SIG' is neither"),
    ],
)
def test_what_does_not_fit_together_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    """Sections that contradict one another, placeholders nobody fills in, claims of nothing."""
    text = refuse(write(tmp_path, change(GOOD, (old, new))))
    assert told in text
    assert "adapter-malformed" in text


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("protocol = ", "adapter-malformed", "not TOML"),
        ("harness = 3\nunits = []\nprotocol = 1\n", "adapter-malformed", "harness: expected a table"),
        ("protocol = 2\nfuture = true\n", "adapter-protocol", "speaks protocol 2"),
        ("", "adapter-malformed", "required key 'protocol' is missing"),
    ],
)
def test_a_file_that_is_no_manifest(tmp_path: Path, text: str, code: str, told: str) -> None:
    """Broken TOML, other shapes, a protocol of another release (told before its unknown keys), an empty file."""
    message = refuse(write(tmp_path, text))
    assert code in message
    assert told in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder in its place and bytes that are no text are told apart from mistakes inside."""
    assert "adapter-unreadable" in refuse(tmp_path / "adapter.toml")
    assert "adapter-unreadable" in refuse(tmp_path)
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "\xe9"')
    assert "not TOML" in refuse(path)


@pytest.mark.parametrize("name", shipped())
def test_shipped_manifests_are_good(name: str) -> None:
    """Every adapter that comes with simkit has a manifest, whose claims this build can judge and which name a source."""
    manifest = load(ADAPTERS / name / "adapter.toml")
    assert manifest.harness.name == name
    for configuration in manifest.configurations:
        for claimed, claim in manifest.claims_of(configuration).items():
            assert claimed in OBLIGATIONS or claimed in PROFILES
            assert claim.statement
            assert claim.source


@pytest.mark.repository
def test_the_documented_manifests_are_good(tmp_path: Path) -> None:
    """What the documents show as a manifest is one."""
    docs = Path(__file__).parents[2] / "docs"
    found = [
        block
        for page in ("contract.md", "adapters.md")
        for block in re.findall(r"```toml\n(.*?)```", (docs / page).read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert len(found) >= 2
    for block in found:
        load(write(tmp_path, block))


def test_judges_are_told_what_is_declared(tmp_path: Path) -> None:
    """Verbs and bounds, in nanoseconds; a bound of 0 is none, and a bare manifest declares none of them."""
    limits = "settle_ms = 100\nslots = 4\ngrace_ms = 5\ndeaths_max = 3\nkey_lifetime_ms = 7\nlease_ms = 9"
    late = 'late_signal = "refused"\nunmatched_signal = "refused"\n[install]'
    declared = load(write(tmp_path, change(GOOD, ("settle_ms = 100", limits), ("[install]", late)))).declared()
    assert (declared.slots, declared.deaths_max) == (4, 3)
    assert (declared.grace_ns, declared.key_lifetime_ns, declared.lease_ns) == (5_000_000, 7_000_000, 9_000_000)
    assert (declared.late_signal, declared.unmatched_signal) == ("refused", "refused")
    assert declared.verbs == ("start", "status", "resume", "cancel")
    bare = load(write(tmp_path, GOOD)).declared()
    assert (bare.slots, bare.deaths_max, bare.grace_ns, bare.key_lifetime_ns, bare.lease_ns) == (None,) * 5
    assert (bare.late_signal, bare.unmatched_signal) == ("late", "buffered")
