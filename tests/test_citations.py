"""Every citation in code and pages resolves: to an entry of the references, of the theory or of the errata.

A citation reads "Bun and Steinke 2016, Prop 1.4". The five papers list which of their statements are cited, and only
those may be. "theory, Sums" names a section of `docs/theory.md`, "errata, Haney E1" an entry of `docs/errata.md`.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REFERENCES, THEORY, ERRATA = ((ROOT / f"docs/{name}.md").read_text() for name in ("references", "theory", "errata"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "mkdocs.yml")]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py"), *PAGES])
CITING = [file for file in FILES if file.name != "references.md"]

NAME = r"[A-Z][A-Za-z-]+(?: and [A-Z][A-Za-z-]+| et al\.)?"
KIND = r"(?:Thm|Lemma|Cor|Def|Alg|Remark|Obs|Claim|Prop|Figure|sec\.|eq\.|footnote)"
WORK = re.compile(rf"({NAME}) ((?:19|20)\d\d)(?![-\d])")
STATEMENTS = re.compile(rf"(?:,| \(|'s) ({KIND} \w[\w.]*(?:(?:,| and|, and) (?:{KIND} )?\d[\w.]*)*)")
MONTHS = {"January", "February", "March", "April", "May", "June", "July", "August"}
MONTHS |= {"September", "October", "November", "December"}
MONTHS |= {month[:3] for month in MONTHS}
NOT_HERE = re.compile(r"\bS[0-4]\b(?!\d)|\b(?:THEORY|ERRATA|DESIGN|TRAPS)\b|\b[TX][0-2]\d\b")


def the_works() -> dict[str, set[str] | None]:
    """Each work that may be cited, with the statements of it that may; None where any may."""
    works: dict[str, set[str] | None] = dict.fromkeys(re.findall(r"^- \*\*(.+?)\.\*\*", REFERENCES, re.M))
    for section in REFERENCES.split("\n### ")[1:]:
        rows = re.findall(r"^\| (.+?) \|", section, re.M)
        works[section.split("\n")[0]] = {cited for row in rows[1:] for cited in row.split(", ")}
    return works


WORKS = the_works()
SECTIONS = set(re.findall(r"^## (.+)$", THEORY, re.M))
ENTRIES = set(re.findall(r"^### (.+ E\d+)$", ERRATA, re.M)) | set(re.findall(r"^\| (\S+ E\d+) \|", ERRATA, re.M))


def text_of(file: Path) -> str:
    """The file as running text: a citation may go over the end of a line, of a comment or of a literal."""
    text = re.sub(r'"\s*\n\s*f?"', "", file.read_text())
    return re.sub(r"\s*\n\s*(?:#\s+|>\s+)?", " ", text)


def the_statements(listed: str) -> list[str]:
    """Each statement of a list of them; a number alone is of the kind before it."""
    found, kind = [], ""
    for word in re.split(r",? and |, ", listed):
        kind = word.rpartition(" ")[0] or kind
        found.append(f"{kind} {word.rpartition(' ')[2].rstrip('.')}")
    return found


def unresolved(text: str) -> list[str]:
    """What a text cites that the pages do not list."""
    missing = []
    for work in WORK.finditer(text):
        name, key = work[1], f"{work[1]} {work[2]}"
        if name in MONTHS or name.split()[-1] in MONTHS:
            continue
        if key not in WORKS:
            missing.append(key)
        elif (allowed := WORKS[key]) is not None and (listed := STATEMENTS.match(text, work.end())):
            missing += [f"{key}, {one}" for one in the_statements(listed[1]) if one not in allowed]
    missing += [
        f"theory, {one}" for one in re.findall(r"\btheory, (?:section )?([A-Z][^,.;:()\"`]*)", text) if not known(one)
    ]
    missing += [one for one in re.findall(r"\b([A-Z][a-z]+(?:-[A-Z][a-z]+)? E\d+)\b", text) if one not in ENTRIES]
    return missing + NOT_HERE.findall(text)


def known(title: str) -> bool:
    """Whether this begins with the title of a section, or with several of them."""
    return any(title.strip().startswith(section) for section in SECTIONS)


@pytest.mark.parametrize("file", CITING, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_citation_resolves(file: Path) -> None:
    assert unresolved(text_of(file)) == []


def test_a_citation_that_leads_nowhere_is_found() -> None:
    assert unresolved("by Haney et al. 2023, Thm 1.19 and 1.21; Bun and Steinke 2016, Prop 1.4 (theory, Sums)") == []
    assert unresolved("Haney et al. 2023, Thm 1.19 and 9.9") == ["Haney et al. 2023, Thm 9.9"]
    assert unresolved("Nemo and Nix 2020, Thm 1") == ["Nemo and Nix 2020"]
    assert unresolved("(theory, Alchemy)") == ["theory, Alchemy"]
    assert unresolved("errata, Haney E99") == ["Haney E99"]
    assert unresolved("by S2 Thm 1") == ["S2"]


def test_the_references_are_all_cited() -> None:
    text = " ".join(text_of(file) for file in CITING)
    assert [work for work in WORKS if work not in text] == []
