(* Fixed losses: any number of (epsilon_i, delta_i) machines at once cost no more than their randomized responses do.

   Lyu 2022, Thm 1; Henzinger et al. 2024, Thm 4.10. By the reduction each machine is a simulator that sees one answer of
   RR. So what an adversary gets out of all machines is the mean, over the answers of all RRs, of what it gets out of the
   simulators, which is a number between 0 and 1: a test of the answers. *)
Require Import sums machines composite filter reduction approximate response.
Open Scope Q_scope.

(* All lists of n answers. *)
Fixpoint answers_of (n : nat) : list (list response) :=
  match n with O => [[]] | S n => flat_map (fun r => map (cons r) (answers_of n)) responses end.

Section Fixed.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable accepts : K -> message M -> bool.
Variable L : list (answer M).
Hypothesis L_once : NoDup L.
Hypothesis L_all : forall a, In a L.
Variable cost delta : K -> Q.
Hypothesis cost_ge_1 : forall k, 1 <= cost k.
Hypothesis delta_01 : forall k, 0 <= delta k <= 1.
Hypothesis claims : forall k, private M (cost k) (delta k) (ini k true) (ini k false).

(* The probability that the RRs of ks answer rs in world b, and the mean of a test of their answers. *)
Fixpoint weight (b : bool) (ks : list K) (rs : list response) : Q :=
  match ks, rs with
  | k :: ks, r :: rs => rr (cost k) (delta k) b r * weight b ks rs
  | _, _ => 1
  end.
Definition mean (b : bool) (ks : list K) (test : list response -> Q) : Q :=
  qsum (fun rs => weight b ks rs * test rs) (answers_of (length ks)).

(* The randomized responses of ks, together, are (B, D). *)
Definition responses_within (B D : Q) (ks : list K) : Prop :=
  forall b test, (forall rs, In rs (answers_of (length ks)) -> 0 <= test rs <= 1) ->
  mean b ks test <= B * mean (negb b) ks test + D.

Notation gate := (rule_gate M K unit (fun s _ => (s, false)) (fun _ => accepts)).
Notation next_ := (rule_next M K unit (fun s _ => (s, false))).
Notation behaviour := (list (message M * answer M) -> Q).
Notation Joint := (joint M K (ledger K unit) gate next_).
Notation replies := (replies M L).

Section Range.
Variable Ms : list (message M).
Variable born : K -> behaviour.

Definition alike (n : nat) (p : behaviour * behaviour) : Prop := forall h, inside Ms n h -> fst p h == snd p h.

Lemma weigh_alike A : forall n ks l, asks M K Ms A n -> Forall (alike n) l ->
  weigh replies A (Joint born (tt, ks) (map fst l)) == weigh replies A (Joint born (tt, ks) (map snd l)).
Proof.
  induction A as [e|q next IH|j w next IH]; intros n ks l Aa G; cbn [asks] in *.
  - cbn [weigh]. apply Qmult_comp; [reflexivity|]. simpl. induction G as [|p l Hp Gl IHl]; simpl; [reflexivity|].
    rewrite IHl, (Hp []) by (split; [simpl; lia|constructor]). reflexivity.
  - destruct n as [|n]; [contradiction|]. destruct Aa as [Aq Aa].
    assert (Gw : Forall (alike n) l).
    { eapply Forall_impl; [|exact G]. intros p Hp h [I1 I2]. apply Hp. split; [lia|auto]. }
    destruct (gate (tt, ks) q) eqn:E.
    + destruct q as [k|i m]; [discriminate|]. destruct (nth_error l i) as [p|] eqn:En.
      * rewrite (weigh_asked M K unit _ (fun _ => accepts) L born next (tt, ks) (map fst l) i m (fst p))
          by (auto; rewrite nth_error_map_some, En; reflexivity).
        rewrite (weigh_asked M K unit _ (fun _ => accepts) L born next (tt, ks) (map snd l) i m (snd p))
          by (auto; rewrite nth_error_map_some, En; reflexivity).
        apply qsum_ext. intros a _.
        pose proof (IH (Answered a) n ks (update i (after M m a (fst p), after M m a (snd p)) l) (Aa _)) as I.
        rewrite !map_update in I. apply I. apply forall_update; auto.
        intros h [I1 I2]. apply (forall_nth _ _ _ _ G En ((m, a) :: h)). split; [simpl; lia|constructor; auto].
      * rewrite (weigh_missing M K unit _ (fun _ => accepts) L born next (tt, ks) (map fst l)) by (auto; rewrite nth_error_map_some, En; reflexivity).
        rewrite (weigh_missing M K unit _ (fun _ => accepts) L born next (tt, ks) (map snd l)) by (auto; rewrite nth_error_map_some, En; reflexivity).
        apply (IH Refused n ks l); auto.
    + rewrite (weigh_refused M K unit _ (fun _ => accepts) L born next (tt, ks) (map fst l)) by auto.
      rewrite (weigh_refused M K unit _ (fun _ => accepts) L born next (tt, ks) (map snd l)) by auto.
      destruct q as [k|i m]; cbn [rule_next fst snd]; apply (IH Refused n ks l); auto.
  - cbn [weigh]. apply qsum_ext. intros i Hi. apply in_seq in Hi. rewrite (IH i n ks l); auto; [reflexivity|]. apply Aa. lia.
Qed.

(* A behaviour that is a process as far as an adversary of n messages can see. *)
Definition process (n : nat) (f : behaviour) : Prop :=
  (forall h, inside Ms n h -> 0 <= f h) /\
  (forall h m, inside Ms n h -> (length h < n)%nat -> In m Ms -> qsum (fun a => f (h ++ [(m, a)])) L == f h).

Lemma weigh_process A : forall n ks l, fair A -> asks M K Ms A n -> Forall (process n) l ->
  0 <= weigh replies A (Joint born (tt, ks) l) /\ weigh replies A (Joint born (tt, ks) l) <= qprod (fun f : behaviour => f []) l.
Proof.
  assert (P : forall n l, Forall (process n) l -> 0 <= qprod (fun f : behaviour => f []) l).
  { intros n l G. apply qprod_nonneg. intros f Hf. rewrite Forall_forall in G. apply (G f Hf). split; [simpl; lia|constructor]. }
  induction A as [e|q next IH|j w next IH]; intros n ks l Fa Aa G; cbn [fair asks] in *.
  - pose proof (P n l G). cbn [weigh joint]. destruct e; simpl hit; lra.
  - destruct n as [|n]; [contradiction|]. destruct Aa as [Aq Aa].
    assert (Gw : Forall (process n) l).
    { eapply Forall_impl; [|exact G]. intros f [P1 P2]. split; [intros h [I1 I2]; apply P1; split; [lia|auto]|].
      intros h m [I1 I2] Lt Im. apply P2; [split; [lia|auto]|lia|auto]. }
    destruct (gate (tt, ks) q) eqn:E.
    + destruct q as [k|i m]; [discriminate|]. destruct (nth_error l i) as [f|] eqn:En.
      * rewrite (weigh_asked M K unit _ (fun _ => accepts) L born next (tt, ks) l i m f) by auto.
        destruct (forall_nth _ _ _ _ G En) as [P1 P2].
        assert (I : forall a, 0 <= weigh replies (next (Answered a)) (Joint born (tt, ks) (update i (after M m a f) l)) /\
          weigh replies (next (Answered a)) (Joint born (tt, ks) (update i (after M m a f) l)) <=
          qprod (fun f : behaviour => f []) (update i (after M m a f) l)).
        { intro a. apply (IH (Answered a) n ks); auto. apply forall_update; auto. split.
          - intros h [I1 I2]. apply (P1 ((m, a) :: h)). split; [simpl; lia|constructor; auto].
          - intros h m' [I1 I2] Lt Im. apply (P2 ((m, a) :: h) m'); [split; [simpl; lia|constructor; auto]|simpl; lia|auto]. }
        split; [apply qsum_nonneg; intros a _; apply I|].
        eapply Qle_trans; [apply qsum_le; intros a _; apply I|].
        destruct (qprod_update (fun f : behaviour => f []) l i f En) as (rest & E1 & U).
        rewrite (qsum_ext _ (fun a => f [(m, a)] * rest)) by (intros a _; rewrite U; reflexivity).
        assert (C : qsum (fun a => f [(m, a)]) L == f []) by (apply (P2 [] m); [split; [simpl; lia|constructor]|simpl; lia|auto]).
        rewrite qsum_scale_r, C, E1. lra.
      * rewrite (weigh_missing M K unit _ (fun _ => accepts) L born next (tt, ks) l) by auto. apply (IH Refused n ks l); auto.
    + rewrite (weigh_refused M K unit _ (fun _ => accepts) L born next (tt, ks) l) by auto.
      destruct q as [k|i m]; cbn [rule_next fst snd]; apply (IH Refused n ks l); auto.
  - destruct Fa as (W & T & Fa). cbn [weigh].
    assert (I : forall i, (i < j)%nat -> 0 <= weigh replies (next i) (Joint born (tt, ks) l) /\
      weigh replies (next i) (Joint born (tt, ks) l) <= qprod (fun f : behaviour => f []) l) by (intros i Hi; apply (IH i n); auto).
    split.
    + apply qsum_nonneg. intros i Hi. apply in_seq in Hi. apply Qmult_le_0_compat; [auto|apply I; lia].
    + apply Qle_trans with (qsum (fun i => w i * qprod (fun f : behaviour => f []) l) (seq 0 j)).
      * apply qsum_le. intros i Hi. apply in_seq in Hi. apply scale_le; [auto|apply I; lia].
      * rewrite qsum_scale_r, T. lra.
Qed.
End Range.

Section Means.
Variable Ms : list (message M).
Variable n : nat.
Variable born : K -> behaviour.

Definition pretended (k : K) (r : response) : behaviour := simulated M L (cost k) (delta k) (ini k) Ms n r.
Definition mixed (b : bool) (k : K) : behaviour := fun h => qsum (fun r => rr (cost k) (delta k) b r * pretended k r h) responses.
Fixpoint pretending (ks : list K) (rs : list response) : list behaviour :=
  match ks, rs with k :: ks, r :: rs => pretended k r :: pretending ks rs | _, _ => [] end.

Lemma expand A l b ks : forall pre,
  weigh replies A (Joint born l (pre ++ map (mixed b) ks)) ==
  qsum (fun rs => weight b ks rs * weigh replies A (Joint born l (pre ++ pretending ks rs))) (answers_of (length ks)).
Proof.
  induction ks as [|k ks IH]; intro pre.
  - simpl. ring.
  - cbn [map length answers_of]. rewrite qsum_flat.
    assert (U : forall f : behaviour, update (length pre) f (pre ++ mixed b k :: map (mixed b) ks) = pre ++ f :: map (mixed b) ks).
    { intro f. clear. induction pre as [|x l IH]; simpl; [reflexivity|]. rewrite IH. reflexivity. }
    assert (E : nth_error (pre ++ mixed b k :: map (mixed b) ks) (length pre) = Some (mixed b k)).
    { clear. induction pre as [|x l IH]; simpl; auto. }
    rewrite (weigh_ext replies A _ (fun h => qsum (fun r => rr (cost k) (delta k) b r * Joint born l (pre ++ pretended k r :: map (mixed b) ks) h) responses)).
    + rewrite (weigh_sum replies responses A (fun r h => rr (cost k) (delta k) b r * Joint born l (pre ++ pretended k r :: map (mixed b) ks) h)).
      apply qsum_ext. intros r _. rewrite weigh_scale, qsum_map. cbn [weight pretending].
      pose proof (IH (pre ++ [pretended k r])) as I. rewrite <- app_assoc in I. cbn [app] in I. rewrite I, <- qsum_scale.
      apply qsum_ext. intros rs _. rewrite <- app_assoc. cbn [app]. ring.
    + intro h. pose proof (joint_mix M K (ledger K unit) gate next_ born (rr (cost k) (delta k) b) (pretended k) responses h l _ _ _ E) as J.
      rewrite U in J. etransitivity; [exact J|]. apply qsum_ext. intros r _. rewrite U. reflexivity.
Qed.
End Means.

Lemma answers_length n rs : In rs (answers_of n) -> length rs = n.
Proof.
  revert rs. induction n as [|n IH]; intros rs; cbn [answers_of]; [intros [<-|[]]; reflexivity|].
  rewrite in_flat_map. intros (r & _ & H). apply in_map_iff in H as (rs' & <- & H). simpl. f_equal. auto.
Qed.

Theorem concurrent_fixed B D ks : responses_within B D ks ->
  private (concurrent M K ini accepts) B D (opened M K ini unit _ _ tt ks true) (opened M K ini unit _ _ tt ks false).
Proof.
  intro H.
  assert (W : forall b, within (concurrent M K ini accepts) B D (opened M K ini unit _ _ tt ks b) (opened M K ini unit _ _ tt ks (negb b))).
  { intros b A F.
    set (N := rounds replies A). set (Ms := flat_map (asked M K) (sent replies A)).
    pose proof (asks_enough M K L L_all Ms A N (le_n _) (incl_refl _)) as Aa.
    set (born := fun k => law M (ini k true)).
    set (test := fun rs => weigh replies A (Joint born (tt, ks) (pretending Ms N ks rs))).
    assert (E : forall b', chance (concurrent M K ini accepts) A (opened M K ini unit _ _ tt ks b') == mean b' ks test).
    { intro b'. etransitivity; [apply (chance_weigh (concurrent M K ini accepts) replies A (replies_once M L L_once)); intros r _; apply (replies_all M L L_all)|].
      etransitivity; [apply weigh_ext; intro h; unfold opened; apply law_composite|]. rewrite map_map.
      etransitivity.
      { apply weigh_ext. intro h.
        assert (B' : forall h l fs, Joint (fun k => law M (ini k b')) l fs h == Joint born l fs h).
        { clear. induction h as [|[q r] h IH]; intros l fs; [reflexivity|]. cbn [joint].
          destruct (gate l q) eqn:E; [|destruct r; try reflexivity; apply IH].
          destruct q as [k|i m]; [discriminate|]. destruct r as [| |a]; try reflexivity; destruct (nth_error fs i); try reflexivity; apply IH. }
        apply B'. }
      pose proof (weigh_alike Ms born A N ks (map (fun k => (law M (ini k b'), mixed Ms N b' k)) ks) Aa) as S.
      rewrite !map_map in S. cbn [fst snd] in S. rewrite S.
      - apply (expand Ms N born A (tt, ks) b' ks []).
      - apply Forall_forall. intros p Hp. apply in_map_iff in Hp as (k & <- & _). intros h I. cbn [fst snd].
        apply (reduction_law M L L_once L_all (cost k) (delta k) (cost_ge_1 k) (delta_01 k) (ini k) (claims k) Ms N b' h I). }
    rewrite !E. apply H. intros rs Hrs. apply answers_length in Hrs. unfold test.
    assert (G : Forall (process Ms N) (pretending Ms N ks rs) /\ qprod (fun f : behaviour => f []) (pretending Ms N ks rs) == 1).
    { revert rs Hrs. generalize ks. clear - cost_ge_1 delta_01 claims L_once L_all.
      induction ks as [|k l IH]; intros [|r rs] Hrs; try discriminate; simpl; [split; [constructor|reflexivity]|].
      destruct (IH rs ltac:(simpl in Hrs; lia)) as [I1 I2].
      destruct (simulated_process M L L_once L_all (cost k) (delta k) (cost_ge_1 k) (delta_01 k) (ini k) (claims k) Ms N r) as (S1 & S2 & S3).
      split; [constructor; [split; auto|auto]|]. unfold pretended at 1. rewrite S1, I2. ring. }
    destruct G as [G1 G2]. destruct (weigh_process Ms born A N ks _ F Aa G1) as [P1 P2]. split; [exact P1|]. rewrite <- G2. exact P2. }
  split; [apply (W true)|apply (W false)].
Qed.
End Fixed.
