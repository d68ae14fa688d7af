(* The arithmetic of admission: the pure rule and the basic (epsilon, delta) rule as functions on rationals.

   `make proofs` runs these functions, extracted to OCaml, beside `Filter.admit` on random histories; the theorems about
   them are in admission.v. *)
Require Export QArith List Bool.
Export ListNotations.
Open Scope Q_scope.

(* The account after a launch, and whether it was admitted. A refusal changes nothing. `up` is how a sum is kept: exactly
   (`Qred` writes a rational in its lowest terms), or rounded up, as the code does beyond 400 digits. *)
Definition pure_admit_by (up : Q -> Q) (budget spent epsilon : Q) : Q * bool :=
  let total := up (spent + epsilon) in
  if Qle_bool total budget then (total, true) else (spent, false).

Definition basic_admit_by (up : Q -> Q) (budget spent loss : Q * Q) : (Q * Q) * bool :=
  let epsilon := up (fst spent + fst loss) in
  let delta := up (snd spent + snd loss) in
  if Qle_bool epsilon (fst budget) && Qle_bool delta (snd budget) then ((epsilon, delta), true) else (spent, false).

Definition pure_admit := pure_admit_by Qred.
Definition basic_admit := basic_admit_by Qred.

(* The verdicts of a history of requests. *)
Fixpoint verdicts {S L} (admit : S -> L -> S * bool) (spent : S) (losses : list L) : list bool :=
  match losses with
  | [] => []
  | l :: r => let (after, verdict) := admit spent l in verdict :: verdicts admit after r
  end.
Definition pure_verdicts (budget : Q) (losses : list Q) : list bool := verdicts (pure_admit budget) 0 losses.
Definition basic_verdicts (budget : Q * Q) (losses : list (Q * Q)) : list bool := verdicts (basic_admit budget) (0, 0) losses.
