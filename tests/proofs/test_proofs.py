"""The proofs that Coq checks: they admit nothing, the names that certificates give exist, and the code agrees.

What needs `coqc` is skipped, visibly, where it is missing; `make proofs` checks every proof.
"""

import re
import subprocess

import pytest
from tests.proofs.coq import (
    CLOSED,
    FOLDER,
    HOW_TO_INSTALL,
    ROOT,
    PlantedError,
    assumptions,
    compiled,
    copy_of_the_proofs,
    coqc,
    files,
    flaws,
    planted_errors,
    refusal,
    theorems,
    verdicts,
    without_comments,
)
from tests.proofs.histories import differences, random_histories

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.mechanisms import Postprocessor
from counterpoint.mechanisms.sparse_vector import AboveThreshold
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.relations import every_step

PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
NAMING = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
NAMED = re.compile(r"machine-checked:\s+((?:`?\w+`?(?:,\s+|\s+and\s+)?)+)")


class AsIs(Postprocessor, Value, frozen=True):
    """Passes on what it receives."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request)


BLOCKS = re.findall(r"^```coq\n\(\* (\w+\.v \*\)\n.*?)```", PAGE, re.M | re.S)
needs_coq = pytest.mark.skipif(coqc() is None, reason=HOW_TO_INSTALL)


def in_one_line(code: str) -> str:
    """The code with a space in the place of every line break."""
    return " ".join(code.split())


def named_in(text: str) -> set[str]:
    """The theorems that a text calls machine-checked."""
    return {name for names in NAMED.findall(text) for name in re.findall(r"\w+", names)} - {"and"}


def test_nothing_is_admitted_or_assumed_in_a_proof_and_every_file_is_listed():
    assert flaws() == []
    assert {path.name for path in FOLDER.glob("*.v")} == set(files())


def test_what_would_make_a_proof_worthless_is_found(tmp_path):
    copy = copy_of_the_proofs(tmp_path / "proofs")
    (copy / "sums.v").write_text("Axiom wrong : False.\nTheorem a : False.\nAdmitted. (* Axiom *)\n")
    (copy / "forgotten.v").write_text("")
    assert flaws(copy) == ["forgotten.v is not in _CoqProject", "sums.v: Axiom", "sums.v: Admitted"]


def test_every_theorem_that_code_or_pages_call_machine_checked_is_there():
    for path in NAMING:
        assert named_in(path.read_text(encoding="utf-8")) <= set(theorems()), path


def test_the_page_about_the_proofs_lists_every_theorem_beside_its_file():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+\.v)` \|", PAGE, re.M))
    assert rows == theorems()


@pytest.mark.parametrize(
    "shown", BLOCKS, ids=lambda shown: " ".join(re.findall(r"Theorem (\w+)", shown)) or "definitions"
)
def test_a_statement_on_the_page_is_that_of_its_file_word_by_word(shown):
    file, _, code = shown.partition(" *)")
    said = in_one_line(without_comments((FOLDER / file).read_text()))
    sentences = re.split(r"(?<=\.)(?=\s)", code)
    assert [sentence for sentence in map(in_one_line, sentences) if sentence not in said] == []
    assert re.search(r"Theorem \w+", code)


def test_each_theorem_with_a_paper_is_stated_beside_the_words_of_the_paper_and_every_difference():
    linked = dict(re.findall(r"^\| `(\w+)` \| .*\[([^\]]+)\]\(#[\w-]+\) \|$", PAGE, re.M))
    assert all(f"[{title}](#{title.lower().replace(' ', '-')})" in PAGE for title in linked.values())
    sections = dict(re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", PAGE, re.M))
    stated = {name: title for title, text in sections.items() for name in re.findall(r"^Theorem (\w+)", text, re.M)}
    assert stated == linked
    assert all("\n> " in text and "\nDiffers:" in text for text in sections.values())
    cited = {title for title, text in sections.items() if re.search(r"(?:Thm|Lemma|Cor|Def|sec\.) [\d.]+", text)}
    assert cited == set(sections)


FINE = cp.ApproxDP(1, 1e-6)
COVERED = {
    "pure_admission": [cp.Filter(cp.PureDP(1))],
    "rule_pure": [cp.Filter(cp.PureDP(1), halt=True), cp.Filter(cp.PureDP(1), launches=3)],
    "basic_admission": [cp.Filter(FINE, by="basic")],
    "rule_approximate": [cp.Filter(FINE, by="basic", launches=3)],
    "union_of_parts": [
        cp.Filter(FINE),
        cp.Filter(FINE, by="gaussian"),
        cp.Filter(FINE, alpha=20),
        cp.Filter.planned(FINE, cp.PureDP(0.1)),
    ],
    "parallel_pure": [cp.Parallel(2, each=cp.PureDP(0.5))],
    "parallel_static_pure": [cp.Parallel(2, each=cp.PureDP(0.5), first_pair=True)],
}
NOT_COVERED = [
    cp.Filter(cp.zCDP(1)),
    cp.Filter(cp.GaussianDP(1)),
    cp.Filter(FINE, by="renyi"),
    cp.Filter(FINE, by="advanced"),
    cp.Slots([cp.PureDP(1)] * 2),
    cp.Odometer(cp.zCDP),
    cp.Parallel(2, each=cp.ApproxDP(0.5, 0), first_pair=True),
    cp.Parallel(2, each=[cp.PureDP(1), cp.PureDP(0.1)]),
]


def names_of(certificate: Certificate) -> set[str]:
    """The theorems that a derivation calls machine-checked."""
    assert named_in(str(certificate)) <= set(theorems())
    return named_in(str(certificate))


@pytest.mark.parametrize(("name", "rule"), [(name, rule) for name, rules in COVERED.items() for rule in rules], ids=str)
def test_a_certificate_of_a_rule_names_the_theorem_that_covers_it(name, rule):
    assert names_of(rule.certificate(rule.start())) == {name}


@pytest.mark.parametrize("rule", NOT_COVERED, ids=str)
def test_a_certificate_of_a_rule_that_coq_has_not_checked_names_no_theorem(rule):
    assert names_of(rule.certificate(rule.start())) == set()


def test_what_a_filter_promises_is_by_the_theorem_of_its_certificate():
    for rule in (rule for rules in COVERED.values() for rule in rules if isinstance(rule, cp.Filter)):
        assert names_of(rule.promise(every_step())) == names_of(rule.certificate(rule.start()))


def test_an_odometer_names_the_lemma_for_thresholds_in_epsilon_and_delta_alone():
    pure, approximate = cp.Odometer(cp.PureDP), cp.Odometer.approximate(delta=1e-6)
    assert names_of(pure.certificate(pure.start())) == {"odometer_iff_filter", "pure_admission"}
    assert names_of(approximate.certificate(approximate.start())) == {"odometer_iff_filter"}


def test_a_union_says_what_of_it_has_not_been_checked():
    certificate = cp.Filter(FINE).promise(every_step())
    assert (
        "machine-checked: union_of_parts (their union alone, not the reserve, the Renyi filters" in certificate.theorem
    )


@pytest.mark.parametrize(
    ("mechanism", "names"),
    [
        (cp.postprocess(AsIs(), cp.Laplace(1)), {"postprocessing"}),
        (cp.postprocess(AsIs(), cp.RandomizedResponse(1, 0.1)), {"postprocessing", "randomized_response_private"}),
        (cp.postprocess(AsIs(), cp.Gaussian(rho=1)), set()),
        (cp.Counter(1, horizon=8, window=2), {"postprocessing"}),
        (cp.Counter(rho=1, horizon=8, window=2), set()),
        (cp.Counter(1, horizon=8), set()),
        (cp.SparseVector(1, hits=2), {"sparse_vector_geometric"}),
        (AboveThreshold(1, 0), {"sparse_vector_geometric"}),
        (cp.SparseVector(1, hits=2, asks=9), {"sparse_vector_geometric", "postprocessing"}),
        (cp.SparseVector(1, monotone=True), set()),
        (cp.SparseVector(1, release="gap"), set()),
        (cp.SparseVector(1, release="value", charge=1), set()),
        (cp.SparseVector(rho=1), set()),
        (cp.Laplace(1), set()),
    ],
    ids=lambda given: str(given) if not isinstance(given, set) else " ".join(sorted(given)),
)
def test_a_certificate_of_a_mechanism_names_a_theorem_where_one_covers_it_and_none_elsewhere(mechanism, names):
    assert names_of(mechanism.claim.certificate) == names


@pytest.mark.parametrize("planted", planted_errors(), ids=lambda planted: f"{planted.file}: {planted.error}")
def test_a_planted_error_has_its_place_in_the_proofs(planted, tmp_path):
    copy = copy_of_the_proofs(tmp_path / "proofs")
    planted.plant(copy)
    assert (copy / planted.file).read_text() != (FOLDER / planted.file).read_text()


@needs_coq
def test_the_filter_admits_what_the_functions_that_coq_proves_private_admit(tmp_path):
    histories = list(random_histories(1000, seed=3))
    found = verdicts(histories, copy_of_the_proofs(tmp_path / "proofs"))
    assert differences(histories, found) == []
    assert {"0", "1"} <= set("".join(pure + basic for pure, basic in found))


@needs_coq
def test_coq_evaluates_the_functions_as_their_extraction_to_ocaml_does(tmp_path):
    histories = list(random_histories(25, seed=4))
    assert differences(histories, verdicts(histories, copy_of_the_proofs(tmp_path / "proofs"), extract=False)) == []


@needs_coq
def test_a_function_that_admits_one_too_many_differs_from_the_filter(tmp_path):
    histories = list(random_histories(1000, seed=5))
    for planted in planted_errors():
        if planted.file == "arithmetic.v":
            copy = copy_of_the_proofs(tmp_path / planted.error)
            planted.plant(copy)
            assert differences(histories, verdicts(histories, copy)) != []


@needs_coq
@pytest.mark.long
def test_every_proof_holds_without_assumptions_and_fails_with_a_planted_error(tmp_path):
    copy = copy_of_the_proofs(tmp_path / "proofs")
    for name in files():
        compiled(copy, name)
    assert set(assumptions(copy).values()) == {CLOSED}
    for planted in planted_errors():
        assert refusal(planted, copy), planted.error


@needs_coq
def test_a_file_that_coq_cannot_read_is_no_find(tmp_path):
    copy = copy_of_the_proofs(tmp_path / "proofs")
    unreadable = PlantedError("arithmetic.v", "unreadable", old="Fixpoint verdicts", new="Fixpoint Fixpoint")
    with pytest.raises(subprocess.CalledProcessError, match=r"arithmetic\.v"):
        refusal(unreadable, copy)
