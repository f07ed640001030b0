# SPDX-License-Identifier: Apache-2.0
"""Every verb reads its options the same way: the same mistake, the same sentence."""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = re.findall(r'^    X\(verb_\w+, "(\w+)"', (ROOT / "shim/cli/verbs.h").read_text(), re.M)


def only_line(done):
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1, done
    return done.err


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_is_one_line_with_the_nearest_name(box, verb):
    assert only_line(box.cli(verb, "--helpp")) == "ncclshim: there is no option --helpp; did you mean --help?\n"
    assert only_line(box.cli(verb, "-Z")) == "ncclshim: there is no option -Z; --help lists them\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_goes_to_standard_output_and_is_no_failure(box, verb):
    for word in "-h", "--help":
        done = box.cli(verb, word)
        assert done.code == 0 and done.err == "" and done.out.startswith("usage: ncclshim " + verb), done


@pytest.mark.parametrize("args, told", [
    (["collect", "--pid"], "--pid needs a value"),
    (["run", "-o"], "-o needs a value"),
    (["clean", "--dry-run=yes"], "there is no option --dry-run=yes, or it takes no value"),
    (["collect", "--pid", "0"], "--pid: '0' is no number from 1 to"),
    (["report", "--json", "-xh"], "there is no option -x"),
    (["top", "--frames", "9x"], "--frames: '9x' is no number from 1 to"),
    (["top", "--frames", "4294967297"], "--frames: '4294967297' is no number from 1 to"),
    (["tune", "--budget", "1000000000d"], "--budget: '1000000000d' is no time"),
    (["ab", "--grace", "-1"], "--grace: '-1' is no number from 0 to"),
    (["ab", "--margin", "much"], "--margin: 'much' is no percentage"),
    (["compare", "--margin", "-1"], "--margin: '-1' is no percentage"),
    (["report", "--since", "5y"], "--since: '5y' is no time"),
    (["report", "--since", "0s"], "--since: '0s' is no time"),
    (["tune", "--budget", "10mm"], "--budget: '10mm' is no time"),
    (["run", "--keep", "some", "--", "true"], "--keep knows 'all', not 'some'"),
    (["collect", "--keep", "some"], "--keep knows 'all', not 'some'"),
    (["bench", "--graph", "--eager"], "--graph and --eager exclude each other"),
    (["tune", "--eager", "--both"], "--eager and --both exclude each other"),
    (["export", "--captured", "--eager"], "--captured and --eager exclude each other"),
    (["bench", "--op", "allreduse"], "--op: 'allreduse' is unknown; did you mean 'all_reduce'?"),
    (["compare", "--op", "sum", "a", "b"], "--op: 'sum' is none of all_reduce, all_gather"),
    (["bench", "--type", "float"], "--type: 'float' is "),
    (["export", "a", "b"], "one run at a time: 'b' is too much"),
    (["top", "a", "b"], "one folder at a time: 'b' is too much"),
    (["clean", "x"], "'x' is no option; a folder is given with --log-dir"),
    (["run", "-p", "none"], "no command to run is given")])
def test_a_wrong_value_is_one_line_that_names_the_option(box, args, told):
    assert only_line(box.cli(*args)).startswith("ncclshim: " + told)


def test_options_behind_the_command_are_the_commands(box):
    done = box.cli("run", "--no-collect", "--", "printf", "%s", "--strict")
    assert done.code == 0 and done.out == "--strict"
    done = box.cli("run", "--no-collect", "echo", "-p", "x")
    assert done.code == 0 and done.out == "-p x\n"


def test_output_that_is_closed_is_no_success(box):
    for args in (["profiles"], ["profiles", "--json"], ["check", "--json", "none"], ["show", "none"], ["run", "--help"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([box.command, *args], stdout=full, stderr=subprocess.PIPE, env=box.env, text=True,
                                  cwd=box.dir, timeout=30, check=False)
        assert (done.returncode, done.stderr.count("can't print")) == (2, 1), (args, done)


def shown_commands():
    """(page, verb, options) of every command of ours that a page shows."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
        for verb, rest in re.findall(r"\bncclshim (%s)\b([^\n`|)]*)" % "|".join(VERBS), text):
            ours = re.split(r"\s--(?:\s|$)|[;&#]", re.sub(r"'[^']*'|\"[^\"]*\"", "", rest))[0]
            yield page.relative_to(ROOT), verb, re.findall(r"(?:^|[\s\[])(--[a-z][a-z-]*|-[a-zA-Z])\b", ours)


def test_every_option_that_a_page_shows_is_one_of_the_verbs(box):
    helps = {verb: box.cli(verb, "--help").out for verb in VERBS}
    commands = list(shown_commands())
    assert len(commands) > 150
    assert not ["%s: %s %s" % (page, verb, option) for page, verb, options in commands for option in options
                if not re.search(r"(?<![\w-])%s(?![\w-])" % option, helps[verb]) and option not in ("-h", "--help")
                and (verb, option) != ("check", "--table")]  # for docs/profiles.md; not in the help
