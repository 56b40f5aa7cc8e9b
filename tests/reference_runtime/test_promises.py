"""Declarations of tools of one's own: what a file may say, what is refused, and what a worker may say of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference_runtime import Code, Promise, Refusal, Store
from reference_runtime.__main__ import main
from reference_runtime.promises import TAKEN, load_declared


def _file(path: Path, text: str) -> str:
    (path / "tools.json").write_text(text)
    return str(path / "tools.json")


def test_a_file_declares_tools(tmp_path):
    """Each with its promise, and the limits that it has."""
    said = '{"fax": {"promise": "blind"}, "my-bank_2": {"promise": "keyed", "tries": 5, "elapsed_ns": 0, "key_lifetime_ns": 9}}'
    found = load_declared(_file(tmp_path, said))
    assert found == {"fax": Promise("blind"), "my-bank_2": Promise("keyed", 5, 0, 9)}
    assert load_declared(*[_file(tmp_path, said)] * 2) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "tools.json: "),
        ("[]", "tools.json is []; expected an object, as in"),
        ('{"fax": {"promise": "blind"}, "fax": {"promise": "read"}}', "the field 'fax' is there twice"),
        (
            '{"fax": "blind"}',
            "tool 'fax': it is 'blind'; expected an object with a promise of read, keyed, fenced, lookup, blind",
        ),
        ('{"fax": {"promise": "metered"}}', "tool 'fax': promise is 'metered'; expected one of read, keyed"),
        ('{"fax": {"promise": ["read"]}}', "tool 'fax': promise is ['read']; expected one of read, keyed"),
        (
            '{"fax": {"promise": "read", "retries": 3}}',
            "tool 'fax': unknown key retries; it has promise, tries, elapsed_ns",
        ),
        ('{"fax": {"promise": "read", "tries": 0}}', "tool 'fax': tries is 0; expected a whole number from 1 to"),
        ('{"fax": {"promise": "read", "tries": true}}', "tool 'fax': tries is True; expected a whole number"),
        (
            '{"fax": {"promise": "read", "elapsed_ns": -1}}',
            "tool 'fax': elapsed_ns is -1; expected a whole number from 0",
        ),
        (
            '{"fax": {"promise": "read", "key_lifetime_ns": 9}}',
            "it has a key_lifetime_ns, and takes no key as it is read",
        ),
        ('{"Fax/2": {"promise": "read"}}', "tool 'Fax/2': a name has 1 to 64 of a to z"),
        *((f'{{"{name}": {{"promise": "read"}}}}', f"tool '{name}': the name is taken") for name in sorted(TAKEN)),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(tmp_path, capsys, text, said):
    """By the server and by a worker, with file, tool and what was expected."""
    path = _file(tmp_path, text)
    for argv in (
        ["serve", "--store", str(tmp_path / "s.db"), "--listen", "127.0.0.1:0"],
        ["worker", "--services", "http://x:1"],
    ):
        assert main([*argv, "--tools", path]) == 1
        err = capsys.readouterr().err
        assert err.startswith("error: bad-tools: ")
        assert said in err
    assert not (tmp_path / "s.db").exists()


def test_two_files_do_not_contradict_each_other(tmp_path, capsys):
    """Nobody could tell which was meant; a file that is not there is told as such."""
    (tmp_path / "other.json").write_text('{"fax": {"promise": "read"}}')
    paths = [_file(tmp_path, '{"fax": {"promise": "blind"}}'), str(tmp_path / "other.json")]
    with pytest.raises(Refusal, match="tool 'fax': it is declared otherwise in another file"):
        load_declared(*paths)
    assert main(["worker", "--services", "http://x:1", "--tools", "nowhere.json"]) == 1
    assert "error: tools-unreadable: nowhere.json: No such file" in capsys.readouterr().err
    with pytest.raises(Refusal, match="bad-tools: tools: tool 'ledger': the name is taken"):
        Store.open(str(tmp_path / "s.db"), tools={"ledger": Promise("blind")})


@pytest.mark.parametrize("tools", [[], {"fax": 1}, {"fax": ""}, {"": "read"}])
def test_what_a_worker_declares_is_read_with_care(tools):
    """Whatever comes over the network."""
    with pytest.raises(Refusal, match="bad-code"):
        Code.from_json({"tools": tools})
