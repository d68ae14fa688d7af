(* Henzinger et al. 2024, Thm 5.4 is false as printed (errata, Henzinger E1): three parts of a machine, of which two may be
   touched, under a relation that is not symmetric. Everything here is computed. *)
Require Import sums machines composite parallel.
Open Scope Q_scope.

(* The machine publishes its type, then answers once. *)
Inductive stage := Fresh | OfType (k : nat) | Over.
Inductive word := Type_ (k : nat) | Star | Bit (b : bool).
Definition same_word : forall x y : word, {x = y} + {x <> y}.
Proof. decide equality; [apply Nat.eq_dec|apply Bool.bool_dec]. Defined.

Definition toy_step (s : stage) (m : bool) : list (Q * (stage * word)) :=
  match s with
  | Fresh => [(1 # 4, (OfType 0, Type_ 0)); (1 # 4, (OfType 1, Type_ 1)); (1 # 2, (OfType 2, Type_ 2))]
  | OfType 0 => if m then [(1, (Over, Bit true))] else [(1 # 11, (Over, Star)); (10 # 11, (Over, Bit true))]
  | OfType 1 => if m then [(10 # 11, (Over, Bit false)); (1 # 11, (Over, Star))] else [(1, (Over, Bit false))]
  | OfType _ =>
      if m then [(10 # 21, (Over, Bit false)); (11 # 21, (Over, Bit true))]
      else [(11 # 21, (Over, Bit false)); (10 # 21, (Over, Bit true))]
  | Over => [(1, (Over, Star))]
  end.

Definition toy : machine.
Proof.
  refine (Machine stage bool word same_word toy_step _ _).
  - intros [|[|[|k]]|] [|] o; simpl; intuition (subst; simpl; lra).
  - intros [|[|[|k]]|] [|]; simpl; reflexivity.
Defined.

(* The relation: the first pair is (0, 0), the second may be (0, 1) but not (1, 0), and there is no third. *)
Definition one_way (g : list (bool * bool)) : bool :=
  match g with
  | [p] => negb (fst p) && negb (snd p)
  | [p; q] => negb (fst p) && negb (snd p) && implb (fst q) (snd q)
  | _ => false
  end.

Notation world := (worlds toy one_way).

(* ---------- each part is (ln 1.1, 1/44) private ---------- *)
Lemma stopped b g s p : one_way (g ++ [p]) = false -> step world (b, g, s) p = [(1, ((b, g, s), None))].
Proof.
  intro E. change (step world (b, g, s) p) with (world_step toy one_way (b, g, s) p). unfold world_step.
  match goal with |- (if ?x then _ else _) = _ => change x with (one_way (g ++ [p])) end. rewrite E. reflexivity.
Qed.

Lemma goes_on b g s p : one_way (g ++ [p]) = true -> step world (b, g, s) p =
  map (fun o => (fst o, ((b, g ++ [p], fst (snd o)), Some (snd (snd o))))) (toy_step s (if b then fst p else snd p)).
Proof.
  intro E. change (step world (b, g, s) p) with (world_step toy one_way (b, g, s) p). unfold world_step.
  match goal with |- (if ?x then _ else _) = _ => change x with (one_way (g ++ [p])) end. rewrite E. reflexivity.
Qed.

Lemma over_same A : fair A -> forall b b' g s s', (2 <= length g)%nat ->
  chance world A (b, g, s) == chance world A (b', g, s').
Proof.
  unfold chance. induction A as [e|p next IH|n w next IH]; intros F b b' g s s' H; cbn [expect fair] in *.
  - reflexivity.
  - assert (E : one_way (g ++ [p]) = false) by (destruct g as [|x [|y [|z g]]]; simpl in *; try lia; reflexivity).
    rewrite !stopped by auto. cbn [qsum fst snd].
    rewrite (IH None (F None) b b' g s s' H). reflexivity.
  - apply qsum_ext. intros i _. rewrite (IH i (proj2 (proj2 F) i) b b' g s s' H). reflexivity.
Qed.

Lemma refused_le c d x y : 0 <= d -> x <= c * y + d -> 1 * x + 0 <= c * (1 * y + 0) + d.
Proof. intros. lra. Qed.

Lemma mixture_le {c d} n w (f g : nat -> Q) : (forall i, 0 <= w i) -> qsum w (seq 0 n) == 1 -> (forall i, f i <= c * g i + d) ->
  qsum (fun i => w i * f i) (seq 0 n) <= c * qsum (fun i => w i * g i) (seq 0 n) + d.
Proof.
  intros W T H. apply Qle_trans with (qsum (fun i => w i * (c * g i + d)) (seq 0 n)).
  - apply qsum_le. intros i _. apply scale_le; auto.
  - rewrite (qsum_ext _ (fun i => c * (w i * g i) + w i * d)) by (intros; ring).
    rewrite qsum_plus, qsum_scale, qsum_scale_r, T. lra.
Qed.

(* What type k may leak in world b. *)
Definition leak (b : bool) (k : nat) : Q := match b, k with true, 0%nat | false, 1%nat => 1 # 11 | _, _ => 0 end.
Notation first := (false, false).

Lemma typed A : fair A -> forall b k,
  chance world A (b, [first], OfType k) <= (11 # 10) * chance world A (negb b, [first], OfType k) + leak b k.
Proof.
  assert (L : forall b k, 0 <= leak b k) by (intros [|] [|[|k]]; simpl; lra).
  induction A as [e|p next IH|n w next IH]; intros F b k; unfold chance in *; cbn [expect fair] in *.
  - pose proof (L b k). destruct e; simpl; lra.
  - destruct (one_way ([first] ++ [p])) eqn:E; [rewrite !goes_on by auto|rewrite !stopped by auto].
    + assert (V : forall x, exists v, 0 <= v <= 1 /\ forall (b : bool) (s : stage),
        expect world (next (Some x)) (fun e _ => hit e) (b, [first; p], s) == v).
      { intro x. exists (chance world (next (Some x)) (true, [first; p], Over)). split.
        - split; [apply chance_nonneg; auto|apply chance_le_1; auto].
        - intros b'' s''. apply (over_same (next (Some x)) (F _)). simpl. lia. }
      rewrite !qsum_map. cbn [fst snd].
      destruct (V Star) as (vs & Vs & Es), (V (Bit true)) as (vt & Vt & Et), (V (Bit false)) as (vf & Vf & Ef).
      destruct p as [[|] [|]], b, k as [|[|k]]; try discriminate; cbn [toy_step negb qsum fst snd leak app];
        cbn [app] in *; rewrite ?Es, ?Et, ?Ef; lra.
    + cbn [qsum fst snd]. apply refused_le; [apply L|]. apply (IH None (F None) b k).
  - destruct F as (W & T & F). apply mixture_le; auto.
Qed.

Lemma three_le l0 l1 l2 x0 x1 x2 y0 y1 y2 : (1 # 4) * l0 + (1 # 4) * l1 + (1 # 2) * l2 == 1 # 44 ->
  x0 <= (11 # 10) * y0 + l0 -> x1 <= (11 # 10) * y1 + l1 -> x2 <= (11 # 10) * y2 + l2 ->
  (1 # 4) * x0 + ((1 # 4) * x1 + ((1 # 2) * x2 + 0)) <=
  (11 # 10) * ((1 # 4) * y0 + ((1 # 4) * y1 + ((1 # 2) * y2 + 0))) + (1 # 44).
Proof. intros. lra. Qed.

Lemma fresh A : fair A -> forall b, chance world A (b, [], Fresh) <= (11 # 10) * chance world A (negb b, [], Fresh) + (1 # 44).
Proof.
  induction A as [e|p next IH|n w next IH]; intros F b; unfold chance in *; cbn [expect fair] in *.
  - destruct e; simpl; lra.
  - destruct (one_way ([] ++ [p])) eqn:E; [rewrite !goes_on by auto|rewrite !stopped by auto].
    + destruct p as [[|] [|]]; try discriminate. rewrite !qsum_map. cbn [fst snd toy_step qsum app].
      apply (three_le (leak b 0) (leak b 1) (leak b 2)); [destruct b; reflexivity| | |].
      * apply (typed (next (Some (Type_ 0))) (F _) b 0).
      * apply (typed (next (Some (Type_ 1))) (F _) b 1).
      * apply (typed (next (Some (Type_ 2))) (F _) b 2).
    + cbn [qsum fst snd]. apply refused_le; [lra|]. apply (IH None (F None) b).
  - destruct F as (W & T & F). apply mixture_le; auto.
Qed.

Theorem toy_private : private_under toy one_way (11 # 10) (1 # 44) Fresh.
Proof. split; intros A F; [apply (fresh A F true)|apply (fresh A F false)]. Qed.

(* ---------- three parts, of which two may be touched ---------- *)
Definition equal_bits (p : bool * bool) : bool := Bool.eqb (fst p) (snd p).
Definition at_most_two (touched : nat) (_ : unit) : option nat := if (touched <? 2)%nat then Some (S touched) else None.
Definition three : machine :=
  live_parts world unit (fun _ b => (b, [], Fresh)) equal_bits nat at_most_two.
Definition three_start (b : bool) : state three := (b, (0%nat, []), []).

Notation plan := (strategy (request world unit) (reply world) bool).
Definition word_of (r : reply world) : option word := match r with Answered a => a | _ => None end.
Definition begin_ (next : plan) : plan := Send (@Launch world unit tt) (fun _ => next).
Definition type_of (i : nat) (next : nat -> plan) : plan :=
  Send (@Ask world unit i first) (fun r : reply world => match word_of r with Some (Type_ k) => next k | _ => Return false end).
Definition differ (i : nat) (next : word -> plan) : plan :=
  Send (@Ask world unit i (false, true)) (fun r : reply world => match word_of r with Some w => next w | _ => Return false end).
(* Which of the three parts have a type. *)
Definition having (k : nat) (types : list nat) : list nat :=
  filter (fun i => Nat.eqb (nth i types 9%nat) k) [0; 1; 2]%nat.

Definition star (w : word) : bool := match w with Star => true | _ => false end.
Definition if_true (w : word) : bool := match w with Bit true => true | _ => false end.

(* "World true" if a part of type 0 shows a star; not if a part of type 1 does. *)
Definition try_0 (i : nat) : plan := differ i (fun w => Return (star w)).
Definition try_1 (i : nat) : plan := differ i (fun w => Return (negb (star w))).

Definition attack_on (types : list nat) : plan :=
  match having 0 types, having 1 types, having 2 types with
  | i :: j :: _, _, _ => differ i (fun w => if star w then Return true else try_0 j)
  | _, i :: j :: _, _ => differ i (fun w => if star w then Return false else try_1 j)
  | i :: _, j :: _, k :: _ => differ k (fun w => if if_true w then try_0 i else try_1 j)
  | i :: _, _, _ => try_0 i
  | _, i :: _, _ => try_1 i
  | _, _, k :: _ => differ k (fun w => Return (negb (if_true w)))
  | _, _, _ => Return false
  end.

Definition attack : plan :=
  begin_ (begin_ (begin_ (type_of 0 (fun a => type_of 1 (fun b => type_of 2 (fun c => attack_on [a; b; c])))))).

(* The delta of two randomized responses of 11 to 10, at epsilon 0. *)
Definition weights (b : bool) : list Q := if b then [11 # 21; 10 # 21] else [10 # 21; 11 # 21].
Definition both (b : bool) : list Q := flat_map (fun x => map (fun y => x * y) (weights b)) (weights b).
Definition delta_of_two : Q :=
  qsum (fun p => let x := fst p - snd p in if Qle_bool 0 x then x else 0) (combine (both true) (both false)).

(* As printed: delta + delta' with 1 - delta' = (1 - 1/44)^3, the deltas of all three parts. *)
Definition printed : Q := delta_of_two + (1 - power (1 - (1 # 44)) 3).

Theorem counterexample_values :
  chance three attack (three_start true) - chance three attack (three_start false) == 607 # 5082 /\
  delta_of_two == 1 # 21 /\ printed < 607 # 5082.
Proof. repeat split; vm_compute; reflexivity. Qed.

Theorem counterexample_e1 : private_under toy one_way (11 # 10) (1 # 44) Fresh /\
  ~ private three 1 printed (three_start true) (three_start false).
Proof.
  split; [apply toy_private|]. intros [H _]. destruct counterexample_values as (V & _ & P).
  assert (F : fair attack).
  { assert (D : forall i next, (forall w, fair (next w)) -> fair (differ i next)).
    { intros i next N. unfold differ. cbn [fair]. intro r. destruct (word_of r); [apply N|exact I]. }
    assert (T : forall i next, (forall k, fair (next k)) -> fair (type_of i next)).
    { intros i next N. unfold type_of. cbn [fair]. intro r. destruct (word_of r) as [[k| |b]|]; try exact I. apply N. }
    unfold attack, begin_. cbn [fair]. intros _ _ _. apply T. intro k0. apply T. intro k1. apply T. intro k2.
    unfold attack_on, try_0, try_1.
    repeat match goal with |- fair match ?x with [] => _ | _ :: _ => _ end => destruct x end; try exact I;
      apply D; intro w; try exact I; try (destruct (star w)); try (destruct (if_true w)); try exact I;
      apply D; intro; exact I. }
  specialize (H attack F). lra.
Qed.
