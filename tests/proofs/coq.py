"""The Coq files of `proofs/`: what they state, checking them, and running the functions that they are about.

What needs no Coq: `theorems()` reads the names, `flaws()` looks for what would make a proof worthless. The rest runs
`coqc` in a copy of the folder. `Theorem` marks what a file states for others; its steps are lemmas.
"""

import re
import shutil
import subprocess
import tempfile
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "proofs"
PLANTED = Path(__file__).with_name("planted.toml")
HOW_TO_INSTALL = "coqc is not on this machine; apt-get install coq (8.16 or later) installs it"
CLOSED = "Closed under the global context"
NOT_PROOFS = re.compile(r"\b(Admitted|Axioms?|Parameters?|Conjecture|Abort|bypass_check|give_up)\b|Unset Guard")
NO_ERROR_OF_A_PROOF = re.compile(r"Syntax error|was not found in the current|Lexer")


def without_comments(text: str) -> str:
    """A file without its comments; none of ours are nested."""
    return re.sub(r"\(\*.*?\*\)", "", text, flags=re.S)


def files(folder: Path = FOLDER) -> list[str]:
    """The names of the files, in the order in which they need one another."""
    return [line for line in (folder / "_CoqProject").read_text().splitlines() if line.endswith(".v")]


def theorems(folder: Path = FOLDER) -> dict[str, str]:
    """Every theorem and its file."""
    found: dict[str, str] = {}
    for name in files(folder):
        for theorem in re.findall(r"^Theorem (\w+)", without_comments((folder / name).read_text()), re.M):
            assert theorem not in found, f"{theorem} is stated in {found[theorem]} and in {name}"
            found[theorem] = name
    return found


def flaws(folder: Path = FOLDER) -> list[str]:
    """What is admitted, assumed or left out of the list of files."""
    listed = set(files(folder))
    found = [f"{path.name} is not in _CoqProject" for path in sorted(folder.glob("*.v")) if path.name not in listed]
    for name in sorted(listed):
        words = NOT_PROOFS.findall(without_comments((folder / name).read_text()))
        found += [f"{name}: {word}" for word in words]
    return found


def coqc() -> str | None:
    """Where the compiler is, if it is on this machine."""
    return shutil.which("coqc")


def copy_of_the_proofs(folder: Path) -> Path:
    """A copy to compile in, without anything that was compiled before."""
    kept = [FOLDER / name for name in (*files(), "_CoqProject")]
    folder.mkdir(parents=True)
    for path in kept:
        shutil.copy(path, folder)
    return folder


def compiled(folder: Path, name: str, seconds: float = 170) -> str:
    """What `coqc` prints about one file; `CalledProcessError` with its message if it refuses it."""
    done = subprocess.run(
        ["coqc", "-q", "-Q", ".", "", name], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, name, done.stdout, done.stderr)
    return done.stdout


def assumptions(folder: Path) -> dict[str, str]:
    """What every theorem assumes, by `Print Assumptions`, in a folder that is compiled."""
    names = list(theorems(folder))
    lines = [f"Require Import {name.removesuffix('.v')}." for name in files(folder)]
    for name in names:
        lines += [f'Redirect "assumes.{name}" Print Assumptions {name}.']
    (folder / "everything.v").write_text("\n".join(lines) + "\n")
    compiled(folder, "everything.v")
    return {name: " ".join((folder / f"assumes.{name}.out").read_text().split()) for name in names}


class PlantedError(NamedTuple):
    """In this file `old` becomes `new`: an error in what a theorem is about, with which its proof must fail."""

    file: str
    error: str
    old: str
    new: str

    def plant(self, folder: Path) -> None:
        """Change the file of a copy; ValueError unless the place is there, once."""
        path = folder / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: there must be one {self.old!r}, and there are {text.count(self.old)}")
        path.write_text(text.replace(self.old, self.new))


def planted_errors() -> list[PlantedError]:
    """All of them, in the order of the file."""
    with PLANTED.open("rb") as file:
        return [
            PlantedError(entry["file"], entry["error"], entry["old"], entry["new"])
            for entry in tomllib.load(file)["planted"]
        ]


def refusal(planted: PlantedError, folder: Path) -> str | None:
    """Where Coq refuses a copy of a compiled folder with the error in it; None if it accepts everything.

    The error must break a proof: a file that Coq cannot read at all does not count.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(folder, scratch, dirs_exist_ok=True))
        planted.plant(copy)
        try:
            for name in files(copy)[files(copy).index(planted.file) :]:
                compiled(copy, name)
        except subprocess.CalledProcessError as refused:
            where = re.findall(r'File "\./(\w+\.v)", line (\d+)', refused.stderr)
            if NO_ERROR_OF_A_PROOF.search(refused.stderr) or not where:
                raise
            return f"{where[-1][0]}, line {where[-1][1]}, in {_around(copy / where[-1][0], int(where[-1][1]))}"
    return None


def _around(path: Path, line: int) -> str:
    """The statement whose proof a line belongs to."""
    before = path.read_text().splitlines()[:line]
    stated = [found[1] for text in before if (found := re.match(r"(?:Theorem|Lemma|Definition|Fixpoint) (\w+)", text))]
    return stated[-1] if stated else "its head"


# ---------- the functions, run on histories ----------
Loss = tuple[Fraction, Fraction]
"""An epsilon and a delta; a history is a budget and the losses that are asked for."""
History = tuple[Loss, list[Loss]]

_DRIVER = """
open Arithmetic
let rec pos n = if n = 1 then XH else if n land 1 = 1 then XI (pos (n / 2)) else XO (pos (n / 2))
let z n = if n = 0 then Z0 else if n > 0 then Zpos (pos n) else Zneg (pos (-n))
let rec list = function [] -> Nil | x :: r -> Cons (x, list r)
let rec bools = function Nil -> "" | Cons (True, r) -> "1" ^ bools r | Cons (False, r) -> "0" ^ bools r
let rec pairs = function a :: b :: r -> { qnum = z a; qden = pos b } :: pairs r | _ -> []
let rec losses = function e :: d :: r -> Pair (e, d) :: losses r | _ -> []
let firsts l = List.map (function Pair (e, _) -> e) l
let () = try while true do
  let numbers = List.map int_of_string (String.split_on_char ' ' (input_line stdin)) in
  match losses (pairs numbers) with
  | (Pair (e, _) as budget) :: asked ->
      print_endline (bools (pure_verdicts e (list (firsts asked))) ^ " " ^ bools (basic_verdicts budget (list asked)))
  | [] -> ()
done with End_of_file -> ()
"""


def verdicts(histories: list[History], folder: Path, *, extract: bool | None = None) -> list[tuple[str, str]]:
    """What the Coq functions admit: a 1 or a 0 for each launch, by the pure rule and by the basic one.

    Extracted to OCaml if its compiler is there, else evaluated by Coq itself, which is slower.
    """
    compiled(folder, "arithmetic.v")
    if extract if extract is not None else shutil.which("ocamlopt") is not None:
        return _by_ocaml(histories, folder)
    return _by_coq(histories, folder)


def _by_ocaml(histories: list[History], folder: Path) -> list[tuple[str, str]]:
    (folder / "extract.v").write_text(
        "Require Import arithmetic.\nRequire Extraction.\nExtraction Language OCaml.\n"
        'Extraction "arithmetic.ml" pure_verdicts basic_verdicts.\n'
    )
    compiled(folder, "extract.v")
    (folder / "driver.ml").write_text(_DRIVER)
    subprocess.run(
        ["ocamlopt", "-w", "-a", "-o", "driver", "arithmetic.mli", "arithmetic.ml", "driver.ml"], cwd=folder, check=True
    )
    lines = [
        " ".join(f"{x.numerator} {x.denominator}" for loss in (budget, *losses) for x in loss)
        for budget, losses in histories
    ]
    done = subprocess.run(
        [folder / "driver"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    return [(found[0], found[1]) for line in done.stdout.splitlines() if (found := line.split(" "))]


def _by_coq(histories: list[History], folder: Path) -> list[tuple[str, str]]:
    def number(x: Fraction) -> str:
        return f"({x.numerator} # {x.denominator})"

    lines = [
        "Require Import arithmetic.",
        "Definition said (l : list bool) := map (fun b : bool => if b then 1%nat else 0%nat) l.",
    ]
    for budget, losses in histories:
        both = "; ".join(f"({number(e)}, {number(d)})" for e, d in losses)
        lines += [
            f"Eval vm_compute in said (pure_verdicts {number(budget[0])} (map fst [{both}])).",
            f"Eval vm_compute in said (basic_verdicts ({number(budget[0])}, {number(budget[1])}) [{both}]).",
        ]
    (folder / "table.v").write_text("\n".join(lines) + "\n")
    found = [
        re.sub(r"\D", "", row.split(":")[0])
        for row in re.findall(r"= (\[.*?\]\s*:)", compiled(folder, "table.v"), re.S)
    ]
    return list(zip(found[::2], found[1::2], strict=True))
