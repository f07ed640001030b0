# SPDX-License-Identifier: Apache-2.0
"""What holds of the tree itself: pages lead to what is there, and rooms include downwards alone."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in ROOT.rglob("*.md") if p.relative_to(ROOT).parts[0] not in ("build", ".git"))
# Which rooms each room may include, besides itself.
BELOW = {
    "base": "",
    "profile": "base",
    "log/write": "base",
    "log/read": "base",
    "preload": "base profile log/write",
    "plugin": "base profile log/write preload",
    "stats": "base profile log/read",
    "show": "base profile log/read stats",
    "prove/run": "base profile log/read stats show",
    "prove/doctor": "base profile log/read stats show prove/run",
    "prove/bench": "base profile log/read stats show prove/run",
    "prove/ab": "base profile log/read stats show prove/run",
    "prove/tune": "base profile log/read stats show prove/run prove/bench prove/ab",
    "cli": "base profile log/read stats show prove/run prove/doctor prove/bench prove/ab prove/tune",
}


def name(path):
    return str(path.relative_to(ROOT))


def prose(page):
    """The page without its indented and fenced examples."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return "\n".join("" if line.startswith("    ") else line for line in text.splitlines())


def anchors(page):
    """The anchors of the page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_something(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), "%s leads to %s" % (name(page), link)
        assert not anchor or anchor in anchors(there), "%s has no heading %s" % (name(there), anchor)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"\b((?:docs|shim|test|include|examples|profiles)/[\w./*-]*(?:\.\w+|/))(?![\w/])", text):
        if "NAME" in path or "VERB" in path:
            continue
        assert list(ROOT.glob(path.rstrip("/"))), "%s names %s" % (name(page), path)


def test_the_index_has_every_page():
    index = ROOT / "docs/README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in re.findall(r"\]\(([^)\s]+)\)", prose(index))}
    pages = {p.resolve() for p in PAGES if p.parent.name in ("docs", "use") and p != index}
    assert not {name(p) for p in pages - listed}


def room_of(path):
    return str(Path(path).parent)


def test_rooms_include_downwards_alone():
    wrong, rooms = [], set()
    for file in sorted((ROOT / "shim").rglob("*.[ch]")):
        room = room_of(file.relative_to(ROOT / "shim"))
        rooms.add(room)
        for target in re.findall(r'^#\s*include "shim/([^"]+)"', file.read_text(), re.M):
            if room_of(target) not in BELOW[room].split() + [room]:
                wrong.append("%s includes shim/%s" % (name(file), target))
    assert not wrong and rooms == set(BELOW)


def test_every_source_names_its_licence():
    sources = [p for d in ("shim", "include", "examples", "test") for p in (ROOT / d).rglob("*")
               if p.suffix in (".c", ".h", ".py", ".sh", ".mk") and "__pycache__" not in p.parts]
    assert len(sources) > 400
    assert not [name(p) for p in sources
                if "SPDX-License-Identifier: Apache-2.0" not in "".join(p.open(encoding="utf-8").readlines()[:3])]
