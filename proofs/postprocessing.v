(* Postprocessing by an interactive machine, and data that differ in several units.

   A postprocessor stands between the adversary and the mechanism. Every request reaches the postprocessor first: it may
   ask the mechanism as often as it likes, or not at all, before it answers. (Haney et al. 2023, Alg 7, lets the first
   query through to the mechanism: errata, Haney E2. Henzinger et al. 2024, Alg 1, has this order.) *)
Require Import sums machines.
Open Scope Q_scope.

Fixpoint bind {Msg Ans X Y} (t : strategy Msg Ans X) (k : X -> strategy Msg Ans Y) : strategy Msg Ans Y :=
  match t with
  | Return x => k x
  | Send m next => Send m (fun a => bind (next a) k)
  | Toss n w next => Toss n w (fun i => bind (next i) k)
  end.

Lemma bind_fair {Msg Ans X Y} (t : strategy Msg Ans X) (k : X -> strategy Msg Ans Y) :
  fair t -> (forall x, fair (k x)) -> fair (bind t k).
Proof. induction t as [x|m next IH|n w next IH]; simpl; intuition. Qed.

Lemma expect_ext M {Out} (t : strategy (message M) (answer M) Out) : forall f g s,
  (forall x s, f x s == g x s) -> expect M t f s == expect M t g s.
Proof.
  induction t as [x|m next IH|n w next IH]; intros f g s H; simpl; auto; apply qsum_ext; intros i _; rewrite (IH _ f g) by auto; reflexivity.
Qed.

Lemma expect_bind M {X Y} (t : strategy (message M) (answer M) X) (k : X -> strategy (message M) (answer M) Y) : forall f s,
  expect M (bind t k) f s == expect M t (fun x s => expect M (k x) f s) s.
Proof.
  induction t as [x|m next IH|n w next IH]; intros f s; simpl; [reflexivity| |];
    apply qsum_ext; intros i _; rewrite IH; reflexivity.
Qed.

(* How a strategy may end against a machine. *)
Fixpoint outcomes (M : machine) {X} (t : strategy (message M) (answer M) X) (s : state M) : list (Q * (X * state M)) :=
  match t with
  | Return x => [(1, (x, s))]
  | Send m next => flat_map (fun o => map (fun r => (fst o * fst r, snd r)) (outcomes M (next (snd (snd o))) (fst (snd o)))) (step M s m)
  | Toss n w next => flat_map (fun i => map (fun r => (w i * fst r, snd r)) (outcomes M (next i) s)) (seq 0 n)
  end.

Lemma expect_outcomes M {X} (t : strategy (message M) (answer M) X) f : forall s,
  qsum (fun o => fst o * f (fst (snd o)) (snd (snd o))) (outcomes M t s) == expect M t f s.
Proof.
  induction t as [x|m next IH|n w next IH]; intro s; simpl; [ring| |];
    rewrite qsum_flat; apply qsum_ext; intros i _; rewrite qsum_map; simpl; rewrite <- IH, <- qsum_scale;
    apply qsum_ext; intros r _; ring.
Qed.

Lemma outcomes_nonneg M {X} (t : strategy (message M) (answer M) X) : fair t -> forall s o, In o (outcomes M t s) -> 0 <= fst o.
Proof.
  induction t as [x|m next IH|n w next IH]; intros F s o; simpl in *.
  - intros [<-|[]]. simpl. lra.
  - rewrite in_flat_map. intros (p & Hp & H). apply in_map_iff in H as (r & <- & Hr). simpl.
    apply Qmult_le_0_compat; [eapply step_nonneg; eauto|eapply IH; eauto].
  - destruct F as (W & _ & F). rewrite in_flat_map. intros (i & Hi & H). apply in_map_iff in H as (r & <- & Hr). simpl.
    apply Qmult_le_0_compat; [auto|eapply IH; eauto].
Qed.

Lemma outcomes_total M {X} (t : strategy (message M) (answer M) X) : fair t -> forall s, qsum fst (outcomes M t s) == 1.
Proof.
  intros F s. rewrite (qsum_ext _ (fun o => fst o * 1)) by (intros; ring).
  rewrite (expect_outcomes M t (fun _ _ => 1)). revert s F.
  induction t as [x|m next IH|n w next IH]; intros s F; simpl in *; [reflexivity| |].
  - rewrite <- (step_total M s m). apply qsum_ext. intros o _. rewrite IH by auto. ring.
  - destruct F as (W & T & F). rewrite <- T. apply qsum_ext. intros i _. rewrite IH by auto. ring.
Qed.

Section Postprocessing.
Variable M : machine.
Variables Own Request Reply : Type. (* the postprocessor's state; what it is asked and what it answers *)
Variable same : forall x y : Reply, {x = y} + {x <> y}.
Variable react : Own -> Request -> strategy (message M) (answer M) (Own * Reply).
Hypothesis react_fair : forall p q, fair (react p q).

Definition postprocessed : machine.
Proof.
  refine (Machine (Own * state M) Request Reply same
    (fun s q => map (fun o => (fst o, ((fst (fst (snd o)), snd (snd o)), snd (fst (snd o))))) (outcomes M (react (fst s) q) (snd s))) _ _).
  - intros s q o. rewrite in_map_iff. intros (r & <- & Hr). simpl. eapply outcomes_nonneg; eauto.
  - intros s q. rewrite qsum_map. simpl. apply (outcomes_total M (react (fst s) q)); auto.
Defined.

(* The adversary that runs the postprocessor itself. *)
Fixpoint through (A : strategy Request Reply bool) (p : Own) : adversary M :=
  match A with
  | Return b => Return b
  | Send q next => bind (react p q) (fun o => through (next (snd o)) (fst o))
  | Toss n w next => Toss n w (fun i => through (next i) p)
  end.

Lemma through_fair A : fair A -> forall p, fair (through A p).
Proof.
  induction A as [b|q next IH|n w next IH]; intros F p; simpl in *; auto.
  - apply bind_fair; auto.
  - destruct F as (W & T & F). auto.
Qed.

Lemma through_chance A : forall p s, chance postprocessed A (p, s) == chance M (through A p) s.
Proof.
  unfold chance. induction A as [b|q next IH|n w next IH]; intros p s; simpl.
  - reflexivity.
  - rewrite qsum_map, expect_bind. simpl.
    rewrite <- (expect_outcomes M (react p q) (fun o s => expect M (through (next (snd o)) (fst o)) (fun b _ => hit b) s)).
    apply qsum_ext. intros o _. rewrite IH. reflexivity.
  - apply qsum_ext. intros i _. rewrite IH. reflexivity.
Qed.

Theorem postprocessing c d p s0 s1 : private M c d s0 s1 -> private postprocessed c d (p, s0) (p, s1).
Proof.
  intros [H K]. split; intros A F; rewrite !through_chance; [apply H|apply K]; apply through_fair; auto.
Qed.
End Postprocessing.

(* ---------- groups ---------- *)
Theorem group_step M c0 d0 c1 d1 s0 s1 s2 : 0 <= c0 -> within M c0 d0 s0 s1 -> within M c1 d1 s1 s2 ->
  within M (c0 * c1) (d0 + c0 * d1) s0 s2.
Proof.
  intros Hc H K A F. specialize (H A F). specialize (K A F).
  assert (c0 * chance M A s1 <= c0 * (c1 * chance M A s2 + d1)) by (apply scale_le; auto).
  setoid_replace (c0 * c1 * chance M A s2 + (d0 + c0 * d1)) with (c0 * (c1 * chance M A s2 + d1) + d0) by ring. lra.
Qed.

(* 1 + c + ... + c^(n-1) *)
Fixpoint powers (c : Q) (n : nat) : Q := match n with O => 0 | S n => 1 + c * powers c n end.

(* A chain of neighbours: data at distance n. *)
Fixpoint chain M c d (s : state M) (l : list (state M)) : Prop :=
  match l with [] => True | s' :: l => private M c d s s' /\ chain M c d s' l end.

Theorem group_privacy M c d l : 0 <= c -> forall s, chain M c d s l ->
  within M (power c (length l)) (d * powers c (length l)) s (last l s).
Proof.
  intro Hc. induction l as [|s' l IH]; intros s H.
  - intros A F. simpl. lra.
  - destruct H as [[H _] C]. specialize (IH s' C).
    assert (E : last (s' :: l) s = last l s') by (clear; revert s'; induction l as [|x l IH]; intro s'; [reflexivity|]; simpl in *; destruct l; auto).
    rewrite E. pose proof (group_step M c d _ _ s s' (last l s') Hc H IH) as G.
    intros A F. specialize (G A F). cbn [length power powers].
    setoid_replace (d * (1 + c * powers c (length l))) with (d + c * (d * powers c (length l))) by ring. exact G.
Qed.
