# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions say what --help says.

A page whose second line is `.\\" from --help` is made from it: after a change of a verb's options,
NCCLSHIM_REGOLD=1 writes it anew (read the diff). The others are written by hand. All must name every option.
"""
import os
import re
import shutil
import subprocess

import pytest

MADE = '.\\" from --help'


def verbs(box):
    done = box.cli("--help")
    return dict(re.findall(r"^  (\w+) +(.*)$", done.out, re.M))


def help_of(box, verb):
    done = box.cli(verb, "--help")
    assert done.code == 0, done
    return done.out


def options_of(text):
    """Long options where they are explained: at the start of a line's left column."""
    found = set()
    for line in text.splitlines():
        left = re.match(r" +((?:-\w, )?--\S.*?)(?:  |$)", line)
        if left:
            found |= set(re.findall(r"--[a-z][a-z-]*", left.group(1)))
    return found


# ---- made from --help ---------------------------------------------------------------------------


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def sections(text):
    """usage, paragraphs, (option, meaning) pairs, examples."""
    usage, paragraphs, options, examples = [], [[]], [], []
    where = "usage"
    for line in text.splitlines():
        if where == "usage" and not line.strip():
            where = "text"
        elif where == "usage":
            usage.append(line.replace("usage: ", "").strip())
        elif line.startswith("example"):
            where = "examples"
        elif where == "examples" or re.match(r"  ncclshim |  mpirun |  sudo ", line):
            examples.append(line.strip())
        elif re.match(r" +(-\w, )?--[a-z]| +-\w, --| +-h$", line):
            where = "options"
            left, _, right = re.match(r" +(.*?)(  +|$)(.*)", line).groups()
            options.append([left, right])
        elif where == "options" and line.startswith("    "):
            options[-1][1] = (options[-1][1] + " " + line.strip()).strip()
        elif not line.strip():
            where = "text"
            paragraphs.append([])
        else:
            where = "text"
            paragraphs[-1].append(line.strip())
    return usage, [" ".join(p) for p in paragraphs if p], options, [e for e in examples if e]


def page(verb, line, text):
    usage, paragraphs, options, examples = sections(text)
    exits = [p for p in paragraphs if p.lower().startswith("exit code")]
    out = ['.\\" SPDX-License-Identifier: Apache-2.0', MADE,
           '.TH NCCLSHIM\\-%s 1 "" "ncclshim" "ncclshim manual"' % verb.upper(), ".SH NAME",
           "ncclshim\\-%s \\- %s" % (verb, roff(line)), ".SH SYNOPSIS"]
    for i, u in enumerate(usage):
        out += ([".br"] if i else []) + [".B " + roff(" ".join(u.split()[:2])), roff(" ".join(u.split()[2:])) or "\\&"]
    out.append(".SH DESCRIPTION")
    for p in paragraphs:
        if p not in exits:
            out += [".PP", roff(p)]
    if options:
        out.append(".SH OPTIONS")
    for left, right in options:
        out += [".TP", ".B " + roff(left), roff(right) if right else "Print the options with examples."]
    if exits:
        out += [".SH EXIT STATUS", ".PP", *(roff(re.sub(r"(?i)^exit code:? *", "", e)) for e in exits)]
    if examples:
        out += [".SH EXAMPLES", ".nf", *map(roff, examples), ".fi"]
    out += [".SH SEE ALSO", ".BR ncclshim (1).", "docs/%s.md tells the rest." % doc_of(verb)]
    return "\n".join(out) + "\n"


def doc_of(verb):
    return {"profiles": "profiles-list"}.get(verb, verb)


def test_every_verb_has_a_page_with_all_its_options(box):
    lacking = {}
    for verb, line in verbs(box).items():
        path = box.root / "docs" / "man" / ("ncclshim-%s.1" % verb)
        text = help_of(box, verb)
        if os.environ.get("NCCLSHIM_REGOLD") and (not path.exists() or MADE in path.read_text()):
            path.write_text(page(verb, line, text))
        got = path.read_text().replace("\\-", "-") if path.exists() else ""
        missing = [o for o in sorted(options_of(text)) if not re.search(re.escape(o) + r"(?![a-z-])", got)]
        if missing or not got:
            lacking[verb] = missing or "no page"
    assert lacking == {}


def test_pages_that_are_made_from_help_are_up_to_date(box):
    old = []
    for verb, line in verbs(box).items():
        path = box.root / "docs" / "man" / ("ncclshim-%s.1" % verb)
        if path.exists() and MADE in path.read_text() and path.read_text() != page(verb, line, help_of(box, verb)):
            old.append(verb)
    assert old == [], "NCCLSHIM_REGOLD=1 writes them anew"


def test_the_first_page_lists_every_verb(box):
    text = (box.root / "docs" / "man" / "ncclshim.1").read_text()
    assert [v for v in verbs(box) if not re.search(r'ncclshim\\-%s "?\(1\)' % v, text)] == []
    for name in ("NCCLSHIM_PROFILE", "NCCLSHIM_LOG_DIR", "NCCLSHIM_LOG", "NCCLSHIM_STRICT", "NCCLSHIM_NCCL",
                 "NCCLSHIM_PROFILE_PATH", "NCCLSHIM_DLSYM"):
        assert name in text


def test_man_finds_no_fault_in_any_page(box):
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("man is not installed")
    pages = sorted((box.root / "docs" / "man").glob("*.1"))
    assert len(pages) >= 12
    for p in pages:
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(p)], timeout=30,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        assert done.returncode == 0 and done.stderr == b"", (p.name, done.stderr)
        first = p.read_text().splitlines()
        assert first[0] == '.\\" SPDX-License-Identifier: Apache-2.0'
        assert sum(s.startswith(".SH NAME") for s in first) == 1
        name = first[first.index(".SH NAME") + 1]
        assert re.fullmatch(r"ncclshim(\\-\w+)? \\- .+", name), name


def test_every_verb_has_a_page_in_docs(box):
    assert [v for v in verbs(box) if not (box.root / "docs" / (doc_of(v) + ".md")).exists()] == []


# ---- completion ---------------------------------------------------------------------------------


def complete(box, *words):
    """What bash offers for the last of these words."""
    script = ("source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _ncclshim; printf '%%s\\n' \"${COMPREPLY[@]}\""
              % (box.root / "docs/completion/ncclshim.bash", " ".join("'%s'" % w for w in words), len(words) - 1))
    done = box.run("bash", "--norc", "-c", script, env={"PATH": "%s:%s" % (box.command.parent, os.environ["PATH"])})
    assert done.code == 0 and done.err == "", done
    return set(done.out.split())


def test_bash_offers_every_verb(box):
    assert complete(box, "ncclshim", "") == set(verbs(box)) | {"--help", "--version"}
    assert complete(box, "ncclshim", "do") == {"doctor"}


def test_bash_offers_every_long_option_of_each_verb(box):
    for verb in verbs(box):
        assert complete(box, "ncclshim", verb, "--") == options_of(help_of(box, verb)) | {"--help"}, verb


def test_bash_offers_profiles_formats_and_processes_where_they_are_wanted(box):
    assert "fewer-channels" in complete(box, "ncclshim", "run", "-p", "fewer")
    assert complete(box, "ncclshim", "export", "--format", "c") == {"chrome", "csv"}
    assert str(os.getpid()) in complete(box, "ncclshim", "doctor", "--pid", str(os.getpid())[:1])


def test_bash_leaves_the_command_of_run_alone(box):
    (box.dir / "serve.sh").write_text("")
    assert "serve.sh" in complete(box, "ncclshim", "run", "--", "./serve.sh", "serve")
    assert not any(o.startswith("--") for o in complete(box, "ncclshim", "run", "--", "python", "--"))


def test_zsh_has_a_line_for_every_verb_and_option(box):
    text = (box.root / "docs/completion/_ncclshim").read_text()
    assert text.startswith("#compdef ncclshim\n# SPDX-License-Identifier: Apache-2.0\n")
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed; its file asks `ncclshim --help`, as bash's does, which is tested")
    assert box.run("zsh", "-n", box.root / "docs/completion/_ncclshim").code == 0
