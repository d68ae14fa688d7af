(* k-sparse parallel composition: any number of parts, of which the data may touch only a few.

   Static data: a part is launched on a pair of data sets, one for each world, that are equal or differ; at most n of the
   pairs differ. Continual data: a part receives pairs of messages for ever, and is touched by its first pair that differs.
   Henzinger et al. 2024, Cor 5.5 and 5.15. *)
Require Import sums machines composite filter reduction approximate.
Require FinFun.
Open Scope Q_scope.

(* ---------- data that do not change ---------- *)
Section Static.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable accepts : K -> message M -> bool.
Variable differs : K -> bool.  (* whether the two data sets of a part differ *)
Hypothesis equal_data : forall k, differs k = false -> private M 1 0 (ini k true) (ini k false).
Variables c d : Q.
Hypothesis c_ge_1 : 1 <= c.
Hypothesis d_01 : 0 <= d <= 1.
Hypothesis claims : forall k, private M c d (ini k true) (ini k false).
Variable n : nat.

Definition sparse_charge (touched : nat) (k : K) : nat * bool :=
  if differs k then if (touched <? n)%nat then (S touched, true) else (touched, false) else (touched, true).

Definition parts : machine := session M K ini nat sparse_charge (fun _ => accepts).
Definition parts_start (b : bool) : state parts := opened M K ini nat sparse_charge (fun _ => accepts) 0%nat [] b.

Definition static_cost (k : K) : Q := if differs k then c else 1.
Definition static_delta (k : K) : Q := if differs k then d else 0.

Lemma static_claims k : private M (static_cost k) (static_delta k) (ini k true) (ini k false).
Proof.
  unfold static_cost, static_delta. destruct (differs k) eqn:E; [apply claims|].
  apply equal_data. auto.
Qed.

Lemma sparse_grows s k : (s <= n)%nat -> snd (sparse_charge s k) = true ->
  power c s * static_cost k <= power c (fst (sparse_charge s k)).
Proof.
  unfold sparse_charge, static_cost. intros Hs. destruct (differs k); [destruct (s <? n)%nat|]; simpl; try discriminate; intros _; lra.
Qed.

Lemma sparse_keeps s k : (s <= n)%nat -> (fst (sparse_charge s k) <= n)%nat.
Proof.
  unfold sparse_charge. intros Hs. destruct (differs k); [destruct (Nat.ltb_spec s n)|]; simpl; lia.
Qed.

Theorem parallel_static_pure : d == 0 -> private parts (power c n) 0 (parts_start true) (parts_start false).
Proof.
  intro D. apply (rule_pure M K ini nat sparse_charge (fun _ => accepts) static_cost) with
    (ok := fun s => (s <= n)%nat) (growth := power c).
  - intro k. unfold static_cost. destruct (differs k); lra.
  - intros s Hs. apply power_le; auto.
  - intros s k. apply sparse_keeps.
  - intros s k. apply sparse_grows.
  - intros s k Hs. unfold sparse_charge. destruct (differs k); [destruct (s <? n)%nat|]; simpl; try discriminate; intros _; lra.
  - intro k. apply weaker with (c := static_cost k) (d := static_delta k); [lra| |apply static_claims].
    unfold static_delta. destruct (differs k); lra.
  - lia.
  - apply power_nonneg. lra.
  - simpl. lra.
Qed.

(* The same for (epsilon, delta), with basic composition of n of them. *)
Definition times_n (k : nat) (x : Q) : Q := inject_Z (Z.of_nat k) * x.

Theorem parallel_static_approximate L : NoDup L -> (forall a : answer M, In a L) ->
  private parts (power c n) (times_n n d) (parts_start true) (parts_start false).
Proof.
  intros N C.
  apply weaker with (c := power c n) (d := 1 - (1 - times_n (n - 0) d) * 1); [lra| |].
  { replace (n - 0)%nat with n by lia. lra. }
  apply (rule_approximate M K ini nat sparse_charge (fun _ => accepts) L N C static_cost static_delta) with
    (ok := fun s => (s <= n)%nat) (growth := power c) (spare := fun s => times_n (n - s) d) (s := 0%nat) (ks := []).
  - intro k. unfold static_cost. destruct (differs k); lra.
  - intro k. unfold static_delta. destruct (differs k); lra.
  - apply static_claims.
  - intros s Hs. split; [apply power_le; auto|]. apply Qmult_le_0_compat; [|tauto].
    unfold inject_Z, Qle. simpl. lia.
  - intros s k. apply sparse_keeps.
  - intros s k Hs E. split; [apply sparse_grows; auto|].
    unfold sparse_charge, static_delta in *. destruct (differs k); [destruct (Nat.ltb_spec s n); [|discriminate]|]; simpl; [|lra].
    unfold times_n. replace (Z.of_nat (n - s)) with (Z.of_nat (n - S s) + 1)%Z by lia.
    rewrite inject_Z_plus, Qmult_plus_distr_l. change (inject_Z 1) with 1. lra.
  - intros s k Hs. unfold sparse_charge. destruct (differs k); [destruct (s <? n)%nat|]; simpl; try discriminate; intros _; split; lra.
  - lia.
  - simpl. lra.
Qed.
End Static.

(* ---------- data that keep arriving ---------- *)
(* A mechanism in one of two worlds: the adversary sends pairs of messages, and world b receives the b-th. A pair that the
   relation does not allow after the earlier ones reaches nothing (Henzinger et al. 2024, Def 4.1: V[f], I(b), M). *)
Section Worlds.
Variable M : machine.
Variable allowed : list (message M * message M) -> bool.

Definition world_state : Type := bool * list (message M * message M) * state M.
Definition world_step (s : world_state) (p : message M * message M) : list (Q * (world_state * option (answer M))) :=
  let '(b, g, s) := s in
  if allowed (g ++ [p])
  then map (fun o => (fst o, ((b, g ++ [p], fst (snd o)), Some (snd (snd o))))) (step M s (if b then fst p else snd p))
  else [(1, ((b, g, s), None))].

Definition worlds : machine.
Proof.
  refine (Machine world_state (message M * message M) (option (answer M)) (option_dec (same_answer M)) world_step _ _).
  - intros [[b g] s] p o. unfold world_step. destruct (allowed _).
    + rewrite in_map_iff. intros (x & <- & Hx). simpl. eapply step_nonneg; eauto.
    + intros [<-|[]]. simpl. lra.
  - intros [[b g] s] p. unfold world_step. destruct (allowed _); [rewrite qsum_map; apply step_total|simpl; ring].
Defined.

(* (epsilon, delta)-privacy of a mechanism under a relation. *)
Definition private_under (c d : Q) (s : state M) : Prop := private worlds c d (true, [], s) (false, [], s).

Lemma equal_pairs h : Forall (fun x => fst (fst x) = snd (fst x)) h -> forall g s,
  law worlds (true, g, s) h == law worlds (false, g, s) h.
Proof.
  induction 1 as [|[p a] h E H IH]; intros g s; [reflexivity|]. simpl in E. destruct p as [m m']. simpl in E. subst m'.
  cbn [law worlds step]. unfold world_step. destruct (allowed _).
  - rewrite !qsum_map. apply qsum_ext. intros o _. cbn [fst snd]. destruct (same_answer _ _ _); [|reflexivity].
    rewrite IH. reflexivity.
  - cbn [qsum fst snd]. destruct (same_answer _ _ _); [rewrite IH; reflexivity|reflexivity].
Qed.
End Worlds.

Section Continual.
Variable M : machine.                       (* what a part may be, in either world: messages are pairs *)
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable equal : message M -> bool.         (* the two messages of a pair are equal *)
Hypothesis untouched : forall k h, forallb (fun x => equal (fst x)) h = true -> law M (ini k true) h == law M (ini k false) h.
Variable cost : K -> Q.
Hypothesis cost_ge_1 : forall k, 1 <= cost k.
Hypothesis claims : forall k, private M (cost k) 0 (ini k true) (ini k false).

(* A rule charges a part when its first differing pair comes. *)
Variable S' : Type.
Variable charge : S' -> K -> option S'.
Variable ok : S' -> Prop.
Variable growth : S' -> Q.
Variable B : Q.
Hypothesis ok_growth : forall s, ok s -> growth s <= B.
Hypothesis charged : forall s k s', ok s -> charge s k = Some s' -> ok s' /\ growth s * cost k <= growth s'.

(* Every part with whether it is touched. *)
Definition touches : Type := S' * list (K * bool).

Definition touch_gate (t : touches) (q : request M K) : bool :=
  match q with
  | Launch _ => true
  | Ask i m =>
      match nth_error (snd t) i with
      | None => false
      | Some (k, touched) => touched || equal m || match charge (fst t) k with Some _ => true | None => false end
      end
  end.

Definition touch_next (t : touches) (q : request M K) (r : reply M) : touches :=
  match q, r with
  | Launch k, Launched => (fst t, snd t ++ [(k, false)])
  | Ask i m, Answered _ =>
      match nth_error (snd t) i with
      | None => t
      | Some (k, touched) =>
          if touched || equal m then t
          else match charge (fst t) k with Some s => (s, update i (k, true) (snd t)) | None => t end
      end
  | _, _ => t
  end.

Definition live_parts : machine := composite M K ini touches touch_gate touch_next.

Notation behaviour := (list (message M * answer M) -> Q).
Definition part_odds (x : K * bool) : behaviour := fun h =>
  if snd x then cost (fst x) else if forallb (fun y => equal (fst y)) h then 1 else cost (fst x).
Definition paid (x : K * bool) : Q := if snd x then cost (fst x) else 1.

Lemma parts_bound h : forall s l, ok s -> 0 <= B -> qprod paid l <= growth s ->
  joint M K touches touch_gate touch_next (fun k => part_odds (k, false)) (s, l) (map part_odds l) h <= B.
Proof.
  induction h as [|[q r] h IH]; intros s l Ok HB H.
  - simpl. assert (E : qprod (fun f : behaviour => f []) (map part_odds l) == qprod paid l).
    { clear. induction l as [|[k [|]] l IH]; simpl; [reflexivity| |]; rewrite IH; reflexivity. }
    rewrite E. pose proof (ok_growth s Ok). lra.
  - cbn [joint]. destruct (touch_gate (s, l) q) eqn:G.
    + destruct q as [k|i m], r as [| |a]; try exact HB.
      * simpl. change (map part_odds l ++ [part_odds (k, false)]) with (map part_odds l ++ map part_odds [(k, false)]).
        rewrite <- map_app. apply IH; auto. rewrite qprod_app. simpl. rewrite !Qmult_1_r. auto.
      * rewrite nth_error_map_some. destruct (nth_error l i) as [x|] eqn:E; simpl; [exact HB|]. apply IH; auto.
      * rewrite nth_error_map_some. destruct (nth_error l i) as [[k t]|] eqn:E; [|exact HB]. cbn [option_map].
        assert (Ei : nth_error (map part_odds l) i = Some (part_odds (k, t))) by (rewrite nth_error_map_some, E; reflexivity).
        unfold touch_gate in G. unfold touch_next. cbn [fst snd] in *. rewrite E in *. destruct t.
        -- cbn [orb]. assert (U : update i (after M m a (part_odds (k, true))) (map part_odds l) = map part_odds l)
             by (apply update_same; exact Ei).
           rewrite U. apply IH; auto.
        -- cbn [orb] in *. destruct (equal m) eqn:Em.
           ++ assert (U : update i (after M m a (part_odds (k, false))) (map part_odds l) = map part_odds l).
              { apply update_same. rewrite Ei. f_equal. unfold after, part_odds. cbn [fst snd forallb]. rewrite Em. reflexivity. }
              rewrite U. apply IH; auto.
           ++ cbn [orb] in *. destruct (charge s k) as [s'|] eqn:Ec; [|discriminate].
              destruct (charged s k s' Ok Ec) as [Ok' Gr].
              assert (U : update i (after M m a (part_odds (k, false))) (map part_odds l) = map part_odds (update i (k, true) l)).
              { rewrite map_update. f_equal. unfold after, part_odds. cbn [fst snd forallb]. rewrite Em. reflexivity. }
              rewrite U. apply IH; auto.
              destruct (qprod_update paid l i (k, false) E) as (rest & E1 & U1). rewrite U1. unfold paid at 1. cbn [fst snd].
              rewrite E1 in H. unfold paid at 1 in H. cbn [snd] in H.
              assert (rest * cost k <= growth s * cost k) by (apply Qmult_le_compat_r; [lra|pose proof (cost_ge_1 k); lra]). lra.
    + destruct r; try exact HB. assert (E : touch_next (s, l) q Refused = (s, l)) by (destruct q; reflexivity).
      rewrite E. apply IH; auto.
Qed.

Theorem parallel_rule s : ok s -> 0 <= B -> 1 <= growth s ->
  private live_parts B 0 (true, (s, []), []) (false, (s, []), []).
Proof.
  intros Ok HB H.
  assert (W : forall b, within live_parts B 0 (b, (s, []), []) (negb b, (s, []), [])).
  { intro b. apply (composite_within M K ini touches touch_gate touch_next (fun k => part_odds (k, false)) B b (s, []) []); auto.
    - intros k x. unfold part_odds. simpl. pose proof (cost_ge_1 k). destruct (forallb _ x); lra.
    - intros k x. unfold part_odds. simpl. destruct (forallb _ x) eqn:E.
      + pose proof (untouched k x E). destruct b; simpl; lra.
      + destruct (claims k) as [C1 C0]. destruct b; simpl; apply histories_of_pure; auto.
    - intro h. apply (parts_bound h s []); auto. }
  split; [apply (W true)|apply (W false)].
Qed.
End Continual.

(* Parts of any mechanism under any relation, each of odds at most c, of which at most n may be touched. *)
Section Sparse.
Variable M : machine.
Variable same_message : forall x y : message M, {x = y} + {x <> y}.
Variable allowed : list (message M * message M) -> bool.
Variable start : state M.
Variable c : Q.
Hypothesis c_ge_1 : 1 <= c.
Hypothesis claim : private_under M allowed c 0 start.
Variable n : nat.

Definition world_of (_ : unit) (b : bool) : state (worlds M allowed) := (b, [], start).
Definition is_equal (p : message M * message M) : bool := if same_message (fst p) (snd p) then true else false.
Definition at_most (touched : nat) (_ : unit) : option nat := if (touched <? n)%nat then Some (S touched) else None.
Definition sparse_parts : machine := live_parts (worlds M allowed) unit world_of is_equal nat at_most.

Theorem parallel_pure : private sparse_parts (power c n) 0 (true, (0%nat, []), []) (false, (0%nat, []), []).
Proof.
  apply (parallel_rule (worlds M allowed) unit world_of is_equal) with (cost := fun _ => c) (ok := fun s => (s <= n)%nat) (growth := power c); auto.
  - intros k h H. apply equal_pairs. apply Forall_forall. intros x Hx. rewrite forallb_forall in H. specialize (H x Hx).
    unfold is_equal in H. destruct (same_message _ _); [auto|discriminate].
  - intros s Hs. apply power_le; auto.
  - intros s k s' Hs. unfold at_most. destruct (Nat.ltb_spec s n); [|discriminate]. intros [= <-]. simpl. split; [lia|lra].
  - lia.
  - apply power_nonneg. lra.
  - simpl. lra.
Qed.
End Sparse.

(* ---------- first-pair consistent parts ---------- *)
(* The first pair of a part says whether its data differ: if it is equal, all later pairs are. Then a part is counted when
   it is created, and deltas are covered (Henzinger et al. 2024, Thm 5.14). A part is launched with its first pair, which
   must then come first. *)
Section FirstPair.
Variable M : machine.
Variable same_message : forall x y : message M, {x = y} + {x <> y}.
Variable allowed : list (message M * message M) -> bool.
Variable start : state M.
Notation pair_of := (message M * message M)%type.

Definition equal_pair (p : pair_of) : bool := if same_message (fst p) (snd p) then true else false.
Definition same_pair (p q : pair_of) : bool :=
  (if same_message (fst p) (fst q) then true else false) && (if same_message (snd p) (snd q) then true else false).

(* The history begins with the pair that was announced. *)
Definition consistent_pairs (g : list pair_of) : bool :=
  match g with
  | announced :: first :: later =>
      same_pair announced first && allowed (first :: later) &&
      (negb (equal_pair first) || forallb equal_pair later)
  | _ => false
  end.

Lemma consistent_allowed k l : consistent_pairs (k :: l) = true -> allowed l = true.
Proof.
  destruct l as [|x l]; intro E; [discriminate E|]. unfold consistent_pairs in E.
  apply andb_prop in E as [E _]. apply andb_prop in E as [_ E]. exact E.
Qed.

Lemma consistent_next k g p : consistent_pairs (k :: g ++ [p]) = true -> equal_pair k = true -> forallb equal_pair g = true ->
  equal_pair p = true /\ forallb equal_pair (g ++ [p]) = true.
Proof.
  intros E Ek Eg. destruct g as [|x g]; cbn [app consistent_pairs] in E.
  - apply andb_prop in E as [E _]. apply andb_prop in E as [E _]. unfold same_pair in E.
    destruct k as [k0 k1], p as [p0 p1]. cbn [fst snd] in *.
    destruct (same_message k0 p0) as [e0|e0] in E; [|discriminate E]. destruct (same_message k1 p1) as [e1|e1] in E; [|discriminate E].
    subst p0 p1. cbn [app forallb]. rewrite Ek. auto.
  - apply andb_prop in E as [_ E]. cbn [forallb] in Eg. apply andb_prop in Eg as [Ex Eg]. rewrite Ex in E. cbn [negb orb] in E.
    rewrite forallb_app in E. apply andb_prop in E as [_ E]. cbn [forallb] in E. rewrite andb_true_r in E.
    rewrite forallb_app. cbn [forallb]. rewrite Ex, Eg, E. auto.
Qed.

Definition part_of (announced : pair_of) (b : bool) : state (worlds M consistent_pairs) := (b, [announced], start).

(* The adversary that keeps to the stricter rule by itself. *)
Fixpoint keeping (A : strategy pair_of (option (answer M)) bool) (k : pair_of) (g : list pair_of) : strategy pair_of (option (answer M)) bool :=
  match A with
  | Return e => Return e
  | Send p next =>
      if consistent_pairs (k :: g ++ [p]) then Send p (fun a => keeping (next a) k (g ++ [p])) else keeping (next None) k g
  | Toss n w next => Toss n w (fun i => keeping (next i) k g)
  end.

Lemma keeping_fair A : fair A -> forall k g, fair (keeping A k g).
Proof.
  induction A as [e|p next IH|n w next IH]; intros F k g; cbn [keeping fair] in *; auto.
  - destruct (consistent_pairs _); [cbn [fair]; auto|auto].
  - destruct F as (W & T & F). auto.
Qed.

Lemma keeping_chance A : forall k b g s,
  chance (worlds M consistent_pairs) A (b, k :: g, s) == chance (worlds M allowed) (keeping A k g) (b, g, s).
Proof.
  unfold chance. induction A as [e|p next IH|n w next IH]; intros k b g s; cbn [keeping expect].
  - reflexivity.
  - change (step (worlds M consistent_pairs)) with (world_step M consistent_pairs). unfold world_step. cbn [app].
    destruct (consistent_pairs (k :: g ++ [p])) eqn:E.
    + assert (E' : allowed (g ++ [p]) = true) by exact (consistent_allowed k (g ++ [p]) E).
      repeat match goal with |- context [if ?x then _ else _] => change x with (consistent_pairs (k :: g ++ [p])); rewrite E end.
      cbn [expect]. change (step (worlds M allowed)) with (world_step M allowed). unfold world_step.
      repeat match goal with |- context [if ?x then map _ _ else _] => change x with (allowed (g ++ [p])); rewrite E' end.
      etransitivity; [exact (qsum_map _ _ _)|]. symmetry. etransitivity; [exact (qsum_map _ _ _)|]. symmetry.
      apply qsum_ext. intros o _. cbn [fst snd]. apply Qmult_comp; [reflexivity|]. apply (IH (Some (snd (snd o))) k b (g ++ [p])).
    + repeat match goal with |- context [if ?x then _ else _] => change x with (consistent_pairs (k :: g ++ [p])); rewrite E end.
      cbn [qsum fst snd]. apply one_outcome. apply (IH None k b g s).
  - apply qsum_ext. intros i _. rewrite (IH i k b g s). reflexivity.
Qed.

Variables c d : Q.
Hypothesis c_ge_1 : 1 <= c.
Hypothesis d_01 : 0 <= d <= 1.
Hypothesis claim : private_under M allowed c d start.
Variable accepts : pair_of -> pair_of -> bool.
Variable n : nat.

Lemma part_claim k : private (worlds M consistent_pairs) c d (part_of k true) (part_of k false).
Proof.
  destruct claim as [H1 H0]. split; intros A F; unfold part_of; rewrite !keeping_chance; [apply H1|apply H0]; apply keeping_fair; auto.
Qed.

Lemma equal_ones h : forall k g s, equal_pair k = true -> forallb equal_pair g = true ->
  law (worlds M consistent_pairs) (true, k :: g, s) h == law (worlds M consistent_pairs) (false, k :: g, s) h.
Proof.
  induction h as [|[p a] h IH]; intros k g s Ek Eg; [reflexivity|].
  cbn [law]. change (step (worlds M consistent_pairs)) with (world_step M consistent_pairs). unfold world_step. cbn [app].
  destruct (consistent_pairs (k :: g ++ [p])) eqn:E.
  - pose proof (consistent_next k g p E Ek Eg) as Ep.
    destruct Ep as [Ep Eg']. assert (Em : fst p = snd p) by (unfold equal_pair in Ep; destruct (same_message (fst p) (snd p)); [auto|discriminate]).
    rewrite Em. repeat match goal with |- context [if ?x then map _ _ else _] => change x with (consistent_pairs (k :: g ++ [p])); rewrite E end.
    etransitivity; [exact (qsum_map _ _ _)|]. symmetry. etransitivity; [exact (qsum_map _ _ _)|]. symmetry.
    apply qsum_ext. intros o _. cbn [fst snd]. destruct (same_answer _ _ _); [|reflexivity].
    apply Qmult_comp; [reflexivity|]. apply (IH k (g ++ [p]) (fst (snd o)) Ek Eg').
  - repeat match goal with |- context [if ?x then map _ _ else _] => change x with (consistent_pairs (k :: g ++ [p])); rewrite E end.
    cbn [qsum fst snd]. destruct (same_answer _ _ _); [|reflexivity].
    apply Qplus_comp; [|reflexivity]. apply Qmult_comp; [reflexivity|]. apply (IH k g s Ek Eg).
Qed.

Definition differs_first (k : pair_of) : bool := negb (equal_pair k).
Definition first_pair_parts : machine := parts (worlds M consistent_pairs) pair_of part_of accepts differs_first n.
Definition first_pair_start (b : bool) : state first_pair_parts :=
  parts_start (worlds M consistent_pairs) pair_of part_of accepts differs_first n b.

Lemma equal_first k : differs_first k = false -> private (worlds M consistent_pairs) 1 0 (part_of k true) (part_of k false).
Proof.
  intro E. apply negb_false_iff in E. split; apply pure_by_histories; try lra; intro h; unfold part_of.
  - rewrite (equal_ones h k [] start E eq_refl). lra.
  - rewrite (equal_ones h k [] start E eq_refl). lra.
Qed.

Theorem parallel_first_pair L : NoDup L -> (forall a : answer M, In a L) ->
  private first_pair_parts (power c n) (times_n n d) (first_pair_start true) (first_pair_start false).
Proof.
  intros N C.
  apply (parallel_static_approximate (worlds M consistent_pairs) pair_of part_of accepts differs_first equal_first c d c_ge_1 d_01
    part_claim n (None :: map Some L)).
  - constructor; [intro H; apply in_map_iff in H as (x & E & _); discriminate|].
    apply FinFun.Injective_map_NoDup; [intros x y E; congruence|auto].
  - intros [a|]; simpl; [right; apply in_map; auto|left; reflexivity].
Qed.
End FirstPair.
