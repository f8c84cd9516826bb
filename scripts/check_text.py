"""Check what no linter does: citations of the specification, wording, names in code, names of changelog fragments."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KINDS: Final = ("added", "changed", "fixed", "removed", "security")
# Words that are unidiomatic or misleading in this field, with the usual term.
WORDS: Final = {
    r"rooms?": "package, space",
    r"stor(?:y|ies)": "history",
    r"ke(?:ep|eps|pt) house": "do maintenance",
    r"worth a look": "needs attention",
    r"anew": "again",
    r"(?<!compaction-)beside": "while, in addition to, next to",
    r"landed": "committed, created",
    r"nobody can (?:tell|say)": "it is unknown",
    r"outrun": "lost race",
    r"silence": "time without rows",
    r"what is gone": "what has expired",
    r"(?:is|are|was|were) told": "is called, receives, is given",
    r"stands (?:in|at|behind|before|twice|alone)": "is",
    r"lent": "temporary",
    r"(?:to|can|cannot|can't) be had": "is available",
    r"exists already": "already exists",
    r"do it again": "retry",
    r"truth values?": "boolean",
    r"for ever": "forever",
    r"half-way": "halfway",
    r"back quotes?": "backquote",
    r"vectorised": "vectorized",
    r"for good": "permanently",
    r"in the place of": "instead of, in place of",
    r"(?:come|comes|came) to (?:its|their|an) end": "end",
    r"(?:come|comes|came) into being": "is created",
    r"makes nothing of": "does not use",
    r"everybody": "all writers, all readers",
    r"of somebody": "of another process",
    r"as (?:one|it|you) likes?": "any",
    r"in vain": "without result",
    r"(?:is|are) another than": "differs from",
    r"(?<!there )(?:is|are) no (?:column|condition|database|directory|file|filter|number|table|tag|text)": "is not a",
}
# Words that are not names, with the most names of src that may still have them: lower a number after renaming some.
NAME_WORDS: Final = {
    "given": 80,
    "begun": 25,
    "said": 20,
    "anew": 2,
    "aside": 1,
    "news": 1,
    "told": 1,
    "everybody": 0,
    "landed": 0,
    "nobody": 0,
    "outrun": 0,
    "somebody": 0,
    "stood": 0,
    "unheard": 0,
    "vain": 0,
    "walls": 0,
    "whoever": 0,
}
_CITED: Final = re.compile(
    r"docs/spec/(?P<page>\w+)\.md"
    r"(?:,? (?:sections?\s+)?(?P<first>\d+(?:\.\d+)*)(?P<more>(?:(?:,| and| to)\s+\d+(?:\.\d+)*)*))?"
)
_HEADING: Final = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)


def broken_citations() -> Iterator[str]:
    """Find citations of missing pages or sections of the specification."""
    headings = {page.stem: set(_HEADING.findall(page.read_text())) for page in (ROOT / "docs/spec").glob("*.md")}
    for path in sorted(
        path for folder in ("src", "tests", "bench", "scripts") for path in (ROOT / folder).rglob("*.py")
    ):
        for found in _CITED.finditer(path.read_text()):
            sections = [found["first"], *re.findall(r"[\d.]*\d", found["more"] or "")] if found["first"] else []
            known = headings.get(found["page"])
            if known is None or not known.issuperset(sections):
                text = " ".join(found[0].split())
                yield f"{path.relative_to(ROOT)}: {text}: there is no such page or section"


def quaint_words() -> Iterator[str]:
    """Find words from the list."""
    words = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
    pages = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")}
    # Generated from stored results, whose titles are from the time of measurement.
    pages.discard(ROOT / "docs" / "benchmarks.md")
    for path in sorted(pages):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for found in words.finditer(line):
                plain = next(plain for word, plain in WORDS.items() if re.fullmatch(word, found[0], re.IGNORECASE))
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r}; plainer: {plain}"


def _names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())


def private_names() -> Iterator[str]:
    """Find names with words from the list: in src more than may still have them, and any of a test."""
    found: dict[str, list[str]] = {word: [] for word in NAME_WORDS}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line, name in _names(path):
            for word in found.keys() & _words(name):
                found[word].append(f"{path.relative_to(ROOT)}:{line}: {name}")
    for word, places in found.items():
        if len(places) > NAME_WORDS[word]:
            yield f"{len(places)} names with {word!r}, at most {NAME_WORDS[word]} are allowed:"
            yield from places
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for line, name in _names(path):
            if name.startswith("test_") and (NAME_WORDS.keys() - {"given", "begun", "news", "aside"}) & {*_words(name)}:
                yield f"{path.relative_to(ROOT)}:{line}: {name}: a test's name is a plain sentence"


def unnamed_fragments() -> Iterator[str]:
    """Find changelog fragments that towncrier would not accept."""
    for path in sorted((ROOT / "changelog.d").glob("*.md")):
        if path.name != "README.md" and not re.fullmatch(rf"[\w-]+\.(?:{'|'.join(KINDS)})\.md", path.name):
            yield f"changelog.d/{path.name}: its name has to end in .<kind>.md, with one of {', '.join(KINDS)}"


def main() -> int:
    """Print the problems; return 1 if there are any."""
    wrong = [*broken_citations(), *quaint_words(), *private_names(), *unnamed_fragments()]
    print("\n".join(wrong) or "packages, citations and words are as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
