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
)
from tests.proofs.histories import differences, random_histories

import counterpoint as cp
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.relations import every_step

PAGE = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
NAMING = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
NAMED = re.compile(r"machine-checked:\s+((?:`?\w+`?(?:,\s+|\s+and\s+)?)+)")
needs_coq = pytest.mark.skipif(coqc() is None, reason=HOW_TO_INSTALL)


def named_in(text: str) -> set[str]:
    """The theorems that a text calls machine-checked: names in backticks, or with an underscore."""
    return {name for names in NAMED.findall(text) for name in re.findall(r"(?<=`)\w+(?=`)|\w+_\w+", names)}


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


def test_a_certificate_names_the_checked_theorem_of_each_step():
    pure = cp.Filter(cp.PureDP(1))
    basic = cp.Filter(cp.ApproxDP(1, 1e-6), by="basic")
    parallel = cp.Parallel(2, each=cp.PureDP(0.5))
    assert names_of(pure.certificate(pure.start())) == names_of(pure.promise(every_step())) == {"pure_admission"}
    assert names_of(basic.certificate(basic.start())) == {"basic_admission"}
    assert names_of(cp.Odometer(cp.PureDP).certificate(cp.Odometer(cp.PureDP).start())) >= {"odometer_iff_filter"}
    assert "parallel_pure" in names_of(parallel.certificate(parallel.start()))
    assert names_of(cp.Filter(cp.zCDP(1)).promise(every_step())) == set()


def names_of(certificate: Certificate) -> set[str]:
    """The theorems that a derivation calls machine-checked."""
    assert named_in(str(certificate)) <= set(theorems())
    return named_in(str(certificate))


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
