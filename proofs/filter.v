(* Filters and odometers for pure losses, concurrent composition, delegation.

   A *rule* charges each launch to an account and says whether it is admitted. `charge s k` is the account after the
   request to launch k, and the verdict. The adversary chooses every launch, and with it the claimed loss `cost k`
   (= e^epsilon), by all earlier answers; it interleaves its messages to all mechanisms as it likes. *)
Require Import sums machines composite.
Open Scope Q_scope.

Section Rule.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable S : Type.                                  (* what the rule remembers *)
Variable charge : S -> K -> S * bool.               (* the account after a launch was requested; whether it is admitted *)
Variable accepts : S -> K -> message M -> bool.     (* which messages a mechanism takes: the others are malformed *)

Definition ledger : Type := S * list K.             (* the account, and what runs *)

Definition rule_gate (l : ledger) (q : request M K) : bool :=
  match q with
  | Launch k => snd (charge (fst l) k)
  | Ask i m => match nth_error (snd l) i with Some k => accepts (fst l) k m | None => false end
  end.

Definition rule_next (l : ledger) (q : request M K) (r : reply M) : ledger :=
  match q, r with
  | Launch k, Launched => (fst (charge (fst l) k), snd l ++ [k])
  | Launch k, _ => (fst (charge (fst l) k), snd l)
  | _, _ => l
  end.

(* A session under the rule, and its state in one of the two worlds with `ks` running. *)
Definition session : machine := composite M K ini ledger rule_gate rule_next.
Definition opened (s : S) (ks : list K) (b : bool) : state session := (b, (s, ks), map (fun k => ini k b) ks).

Variable cost : K -> Q.
Hypothesis cost_nonneg : forall k, 0 <= cost k.

(* What the rule must keep: while the account is `ok`, all launches together have odds of at most `growth s`. *)
Variable ok : S -> Prop.
Variable growth : S -> Q.
Variable B : Q.
Hypothesis ok_growth : forall s, ok s -> growth s <= B.
Hypothesis ok_charge : forall s k, ok s -> ok (fst (charge s k)).
Hypothesis charged : forall s k, ok s -> snd (charge s k) = true -> growth s * cost k <= growth (fst (charge s k)).
Hypothesis refused : forall s k, ok s -> snd (charge s k) = false -> growth s <= growth (fst (charge s k)).

Notation constant := (fun (c : Q) (_ : list (message M * answer M)) => c).

Lemma constant_update cs i c (m : message M) (a : answer M) : nth_error cs i = Some c ->
  update i (after M m a (constant c)) (map constant cs) = map constant cs.
Proof. intro E. apply update_same. rewrite nth_error_map_some, E. reflexivity. Qed.

Lemma rule_bound h : forall s ks cs, ok s -> 0 <= B -> qprod (fun c => c) cs <= growth s ->
  joint M K ledger rule_gate rule_next (fun k => constant (cost k)) (s, ks) (map constant cs) h <= B.
Proof.
  induction h as [|[q r] h IH]; intros s ks cs Ok HB H.
  - assert (E : forall l, qprod (fun f : list (message M * answer M) -> Q => f []) (map constant l) == qprod (fun c => c) l).
    { induction l; simpl; [reflexivity|]. rewrite IHl. reflexivity. }
    simpl. rewrite E. pose proof (ok_growth s Ok). lra.
  - cbn [joint]. destruct (rule_gate (s, ks) q) eqn:G.
    + destruct q as [k|i m], r as [| |a]; try exact HB.
      * simpl in *.
        change (joint M K ledger rule_gate rule_next (fun k => constant (cost k)) (fst (charge s k), ks ++ [k])
          (map constant cs ++ map constant [cost k]) h <= B).
        rewrite <- map_app. apply IH; auto. rewrite qprod_app. simpl. rewrite Qmult_1_r.
        eapply Qle_trans; [|apply charged; auto]. apply Qmult_le_compat_r; auto.
      * rewrite nth_error_map_some. destruct (nth_error cs i) as [c|] eqn:E; simpl; [exact HB|]. apply IH; auto.
      * rewrite nth_error_map_some. destruct (nth_error cs i) as [c|] eqn:E; simpl; [|exact HB].
        rewrite constant_update by auto. apply IH; auto.
    + destruct r; try exact HB. destruct q as [k|i m]; simpl in *; [|apply IH; auto].
      apply IH; auto. eapply Qle_trans; [exact H|apply refused; auto].
Qed.

Hypothesis claims : forall k, private M (cost k) 0 (ini k true) (ini k false).

Theorem rule_pure s ks : ok s -> 0 <= B -> qprod cost ks <= growth s ->
  private session B 0 (opened s ks true) (opened s ks false).
Proof.
  intros Ok HB H.
  assert (W : forall b, within session B 0 (opened s ks b) (opened s ks (negb b))).
  { intro b. apply (composite_within M K ini ledger rule_gate rule_next (fun k => constant (cost k))); auto.
    - intros k x. destruct (claims k) as [C1 C0], b; simpl; apply histories_of_pure; auto.
    - intro h. replace (map (fun k => constant (cost k)) ks) with (map constant (map cost ks)) by (rewrite map_map; reflexivity).
      apply rule_bound; auto. eapply Qle_trans; [|exact H].
      clear. induction ks; simpl; [lra|]. apply Qle_lteq. right.
      assert (E : forall l, qprod (fun c => c) (map cost l) == qprod cost l) by (induction l; simpl; [reflexivity|rewrite IHl; reflexivity]).
      rewrite E. reflexivity. }
  split; [apply (W true)|apply (W false)].
Qed.
End Rule.

(* ---------- concurrent composition ---------- *)
Section Concurrent.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable cost : K -> Q.
Hypothesis cost_nonneg : forall k, 0 <= cost k.
Hypothesis claims : forall k, private M (cost k) 0 (ini k true) (ini k false).
Variable accepts : K -> message M -> bool.

(* Any number of machines at once; nothing more is launched. *)
Definition concurrent : machine :=
  session M K ini unit (fun s _ => (s, false)) (fun _ => accepts).

Theorem concurrent_pure ks :
  private concurrent (qprod cost ks) 0 (opened M K ini unit _ _ tt ks true) (opened M K ini unit _ _ tt ks false).
Proof.
  apply (rule_pure M K ini unit _ _ cost cost_nonneg (fun _ => True) (fun _ => qprod cost ks)); auto; try (intros; lra).
  - discriminate.
  - apply qprod_nonneg. auto.
Qed.

(* ---------- the pure filter ---------- *)
(* Admit a launch if the product of all odds with it is at most B. A refusal changes nothing. *)
Definition filter_charge (B : Q) (spent : Q) (k : K) : Q * bool :=
  if Qle_bool (spent * cost k) B then (spent * cost k, true) else (spent, false).

Definition filter (B : Q) : machine := session M K ini Q (filter_charge B) (fun _ => accepts).
Definition filter_start (B : Q) (b : bool) : state (filter B) := opened M K ini Q (filter_charge B) (fun _ => accepts) 1 [] b.

Theorem filter_pure B : 1 <= B -> private (filter B) B 0 (filter_start B true) (filter_start B false).
Proof.
  intro HB.
  apply (rule_pure M K ini Q (filter_charge B) (fun _ => accepts) cost cost_nonneg (fun s => s <= B) (fun s => s)); auto; unfold filter_charge.
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [apply Qle_bool_iff; auto|auto].
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [intros _; lra|discriminate].
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [discriminate|intros _; lra].
  - lra.
  - simpl. lra.
Qed.

(* Mechanisms that run already are charged like those to come. *)
Theorem filter_pure_running B ks : qprod cost ks <= B -> 0 <= B ->
  private (filter B) B 0 (opened M K ini Q (filter_charge B) (fun _ => accepts) (qprod cost ks) ks true)
    (opened M K ini Q (filter_charge B) (fun _ => accepts) (qprod cost ks) ks false).
Proof.
  intros HB H0.
  apply (rule_pure M K ini Q (filter_charge B) (fun _ => accepts) cost cost_nonneg (fun s => s <= B) (fun s => s)); auto; unfold filter_charge.
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [apply Qle_bool_iff; auto|auto].
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [intros _; lra|discriminate].
  - intros s k Hs. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [discriminate|intros _; lra].
  - lra.
Qed.
End Concurrent.

(* ---------- odometers ---------- *)
(* An odometer refuses nothing and shows a reading. Its meaning: fix a threshold beforehand; the view, cut off before the
   launch that would carry the reading beyond it, is within the threshold (Haney et al. 2023, Def 2.10 to 2.14, Alg 5 as
   corrected in errata, Haney E3). `fits s` says that the reading of the account s is within the threshold. *)
Section Odometer.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable S : Type.
Variable add : S -> K -> S.
Variable accepts : K -> message M -> bool.

Definition odometer : machine := session M K ini S (fun s k => (add s k, true)) (fun _ => accepts).

Section Threshold.
Variable fits : S -> bool.

(* The filter made of the reading: once a launch would exceed the threshold, it stops for good (Haney et al. 2023, Alg 3). *)
Definition stopping_charge (s : S * bool) (k : K) : (S * bool) * bool :=
  if snd s then (s, false)
  else if fits (add (fst s) k) then ((add (fst s) k, false), true) else ((fst s, true), false).
Definition stopping_accepts (s : S * bool) (k : K) (m : message M) : bool := negb (snd s) && accepts k m.
Definition stopping : machine := session M K ini (S * bool) stopping_charge stopping_accepts.

(* Whether the next request would carry the reading beyond the threshold. *)
Definition exceeds (s : S) (q : request M K) : bool :=
  match q with Launch k => negb (fits (add s k)) | Ask _ _ => false end.

(* What an adversary returns if it sees nothing but refusals from here on: any event of the truncated view. *)
Fixpoint silent (A : strategy (request M K) (reply M) bool) : Q :=
  match A with
  | Return b => hit b
  | Send _ next => silent (next Refused)
  | Toss n w next => qsum (fun i => w i * silent (next i)) (seq 0 n)
  end.

(* The probability of an event of the truncated view, of the adversary that runs against the odometer itself. *)
Fixpoint truncated (A : strategy (request M K) (reply M) bool) (st : state odometer) : Q :=
  match A with
  | Return b => hit b
  | Send q next =>
      if exceeds (fst (snd (fst st))) q then silent (next Refused)
      else qsum (fun o => fst o * truncated (next (snd (snd o))) (fst (snd o))) (step odometer st q)
  | Toss n w next => qsum (fun i => w i * truncated (next i) st) (seq 0 n)
  end.

Lemma stopped_is_silent A : forall b s ks children, chance stopping A (b, ((s, true), ks), children) == silent A.
Proof.
  unfold chance. induction A as [x|q next IH|n w next IH]; intros b s ks children.
  - reflexivity.
  - assert (G : rule_gate M K (S * bool) stopping_charge stopping_accepts (s, true, ks) q = false).
    { destruct q as [k|i m]; simpl; [reflexivity|]. destruct (nth_error ks i); reflexivity. }
    cbn [expect step stopping session composite]. unfold composite_step. rewrite G. cbn [qsum fst snd silent].
    assert (E : rule_next M K (S * bool) stopping_charge (s, true, ks) q Refused = (s, true, ks)) by (destruct q; reflexivity).
    rewrite E. apply one_outcome. apply (IH Refused b s ks children).
  - simpl. apply qsum_ext. intros i _. rewrite IH. reflexivity.
Qed.

Lemma stopping_is_truncated A : forall b s ks children,
  chance stopping A (b, ((s, false), ks), children) == truncated A (b, (s, ks), children).
Proof.
  unfold chance. induction A as [x|q next IH|n w next IH]; intros b s ks children.
  - reflexivity.
  - cbn [truncated fst snd]. destruct (exceeds s q) eqn:X.
    + destruct q as [k|i m]; [|discriminate]. simpl in X. apply negb_true_iff in X.
      cbn [expect step stopping session composite]. unfold composite_step. cbn [rule_gate fst snd rule_next].
      assert (C : stopping_charge (s, false) k = ((s, true), false)) by (unfold stopping_charge; simpl; rewrite X; reflexivity).
      rewrite !C. cbn [fst snd qsum].
      apply one_outcome. apply (stopped_is_silent (next Refused) b s ks children).
    + cbn [expect step stopping odometer session composite]. unfold composite_step.
      destruct q as [k|i m].
      * simpl in X. apply negb_false_iff in X. cbn [rule_gate rule_next fst snd].
        assert (C : stopping_charge (s, false) k = ((add s k, false), true)) by (unfold stopping_charge; simpl; rewrite X; reflexivity).
        rewrite !C. cbn [fst snd qsum].
        rewrite <- IH. reflexivity.
      * cbn [rule_gate rule_next fst snd]. unfold stopping_accepts at 1. cbn [snd negb andb].
        destruct (nth_error ks i) as [k|]; [destruct (accepts k m)|].
        -- destruct (nth_error children i) as [child|].
           ++ rewrite !qsum_map. apply qsum_ext. intros o _. cbn [fst snd]. rewrite <- IH. reflexivity.
           ++ cbn [qsum fst snd]. rewrite <- IH. reflexivity.
        -- cbn [qsum fst snd]. rewrite <- IH. reflexivity.
        -- cbn [qsum fst snd]. rewrite <- IH. reflexivity.
  - simpl. apply qsum_ext. intros i _. rewrite <- IH. reflexivity.
Qed.
End Threshold.

(* Thresholds in any set, each with the (c, d) that it stands for. *)
Variable D : Type.
Variable fits : D -> S -> bool.
Variables c d : D -> Q.
Variable start : S.

Definition valid_odometer : Prop := forall (t : D) (A : adversary odometer), fair A ->
  truncated (fits t) A (opened M K ini S _ _ start [] true) <= c t * truncated (fits t) A (opened M K ini S _ _ start [] false) + d t
  /\ truncated (fits t) A (opened M K ini S _ _ start [] false) <= c t * truncated (fits t) A (opened M K ini S _ _ start [] true) + d t.

Definition valid_filters : Prop := forall t : D,
  private (stopping (fits t)) (c t) (d t)
    (opened M K ini (S * bool) _ _ (start, false) [] true) (opened M K ini (S * bool) _ _ (start, false) [] false).

(* Haney et al. 2023, Lemma 2.19, in both directions. *)
Theorem odometer_iff_filter : valid_odometer <-> valid_filters.
Proof.
  split.
  - intros H t. split; intros A F; unfold opened; rewrite !stopping_is_truncated; apply (H t A F).
  - intros H t A F. destruct (H t) as [H1 H0]. specialize (H1 A F). specialize (H0 A F).
    unfold opened in *. rewrite !stopping_is_truncated in H1, H0. split; auto.
Qed.
End Odometer.

(* The pure odometer: it reads the product of the odds, that is e^(sum of the epsilons). *)
Section PureOdometer.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable cost : K -> Q.
Hypothesis cost_nonneg : forall k, 0 <= cost k.
Hypothesis claims : forall k, private M (cost k) 0 (ini k true) (ini k false).
Variable accepts : K -> message M -> bool.

Definition at_least_one (t : Q) : Q := if Qle_bool 1 t then t else 1.

Theorem odometer_pure :
  valid_odometer M K ini Q (fun spent k => spent * cost k) accepts Q (fun t s => Qle_bool s t) at_least_one (fun _ => 0) 1.
Proof.
  apply odometer_iff_filter. intro t.
  apply (rule_pure M K ini (Q * bool) _ _ cost cost_nonneg (fun s => fst s <= at_least_one t) fst); auto;
    unfold stopping_charge, at_least_one; intros; repeat match goal with
    | |- context [if ?x then _ else _] => destruct x eqn:?
    | H : context [if ?x then _ else _] |- _ => destruct x eqn:?
    end; simpl in *; try discriminate; to_lra.
Qed.
End PureOdometer.

(* ---------- sessions inside sessions ---------- *)
(* One machine that may be either of two. It answers a message that is meant for the other by `None`. *)
Section Either.
Variables M N : machine.

Definition sum_same {A B} (d : forall x y : A, {x = y} + {x <> y}) (e : forall x y : B, {x = y} + {x <> y}) :
  forall x y : A + B, {x = y} + {x <> y}.
Proof. decide equality. Defined.

Definition either_step (s : state M + state N) (q : message M + message N) :
  list (Q * ((state M + state N) * option (answer M + answer N))) :=
  match s, q with
  | inl s, inl q => map (fun o => (fst o, (inl (fst (snd o)), Some (inl (snd (snd o)))))) (step M s q)
  | inr s, inr q => map (fun o => (fst o, (inr (fst (snd o)), Some (inr (snd (snd o)))))) (step N s q)
  | s, _ => [(1, (s, None))]
  end.

Definition either : machine.
Proof.
  refine (Machine (state M + state N) (message M + message N) (option (answer M + answer N))
    (option_dec (sum_same (same_answer M) (same_answer N))) either_step _ _).
  - intros [s|s] [q|q] o; simpl; try (intros [<-|[]]; simpl; lra);
      rewrite in_map_iff; intros [x [<- Hx]]; simpl; eapply step_nonneg; eauto.
  - intros [s|s] [q|q]; simpl; try ring; rewrite qsum_map; simpl; apply step_total.
Defined.

Fixpoint for_left (A : adversary either) : adversary M :=
  match A with
  | Return b => Return b
  | Send (inl m) next => Send m (fun a => for_left (next (Some (inl a))))
  | Send (inr m) next => for_left (next None)
  | Toss n w next => Toss n w (fun i => for_left (next i))
  end.

Fixpoint for_right (A : adversary either) : adversary N :=
  match A with
  | Return b => Return b
  | Send (inl m) next => for_right (next None)
  | Send (inr m) next => Send m (fun a => for_right (next (Some (inr a))))
  | Toss n w next => Toss n w (fun i => for_right (next i))
  end.

Lemma for_left_chance A : (fair A -> fair (for_left A)) /\ forall s, chance either A (inl s) == chance M (for_left A) s.
Proof.
  unfold chance. induction A as [b|[m|m] next IH|n w next IH]; simpl; split; try reflexivity; auto.
  - intros F a. apply IH. auto.
  - intro s. rewrite qsum_map. apply qsum_ext. intros o _. simpl. rewrite (proj2 (IH _)). reflexivity.
  - intro F. apply IH. auto.
  - intro s. rewrite (proj2 (IH None)). ring.
  - intros (W & T & F). repeat split; auto. intro i. apply IH. auto.
  - intro s. apply qsum_ext. intros i _. rewrite (proj2 (IH i)). reflexivity.
Qed.

Lemma for_right_chance A : (fair A -> fair (for_right A)) /\ forall s, chance either A (inr s) == chance N (for_right A) s.
Proof.
  unfold chance. induction A as [b|[m|m] next IH|n w next IH]; simpl; split; try reflexivity; auto.
  - intro F. apply IH. auto.
  - intro s. rewrite (proj2 (IH None)). ring.
  - intros F a. apply IH. auto.
  - intro s. rewrite qsum_map. apply qsum_ext. intros o _. simpl. rewrite (proj2 (IH _)). reflexivity.
  - intros (W & T & F). repeat split; auto. intro i. apply IH. auto.
  - intro s. apply qsum_ext. intros i _. rewrite (proj2 (IH i)). reflexivity.
Qed.

Theorem either_left c d s0 s1 : private M c d s0 s1 -> private either c d (inl s0) (inl s1).
Proof.
  intros [H K]. split; intros A F; rewrite !(proj2 (for_left_chance A)); [apply H|apply K]; apply for_left_chance; auto.
Qed.

Theorem either_right c d s0 s1 : private N c d s0 s1 -> private either c d (inr s0) (inr s1).
Proof.
  intros [H K]. split; intros A F; rewrite !(proj2 (for_right_chance A)); [apply H|apply K]; apply for_right_chance; auto.
Qed.
End Either.

(* Delegation: a filter with budget B launches mechanisms, and filters with budgets of their own, which count as one
   launch that costs its budget. Their analysts work at the same time. As the whole is a machine again, so do theirs. *)
Section Delegation.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable cost : K -> Q.
Hypothesis cost_nonneg : forall k, 0 <= cost k.
Hypothesis claims : forall k, private M (cost k) 0 (ini k true) (ini k false).
Variable accepts : K -> message M -> bool.

(* One machine for all delegated filters: the budget is part of the account. *)
Definition delegated_charge (s : Q * Q) (k : K) : (Q * Q) * bool :=
  let (spent, verdict) := filter_charge K cost (snd s) (fst s) k in ((spent, snd s), verdict).
Definition delegated : machine := session M K ini (Q * Q) delegated_charge (fun _ => accepts).

(* What the outer filter launches: a mechanism, or a filter with a budget of at least e^0. *)
Inductive launchable := Mechanism (k : K) | Delegate (budget : Q) (sane : 1 <= budget).
Definition outer_ini (l : launchable) (b : bool) : state (either M delegated) :=
  match l with
  | Mechanism k => inl (ini k b)
  | Delegate budget _ => inr (opened M K ini (Q * Q) delegated_charge (fun _ => accepts) (1, budget) [] b)
  end.
Definition outer_cost (l : launchable) : Q := match l with Mechanism k => cost k | Delegate budget _ => budget end.

Lemma delegated_pure B : 1 <= B -> private delegated B 0
  (opened M K ini (Q * Q) delegated_charge (fun _ => accepts) (1, B) [] true)
  (opened M K ini (Q * Q) delegated_charge (fun _ => accepts) (1, B) [] false).
Proof.
  intro HB.
  apply (rule_pure M K ini (Q * Q) delegated_charge (fun _ => accepts) cost cost_nonneg
    (fun s => fst s <= B /\ snd s = B) fst); auto; unfold delegated_charge, filter_charge; simpl; try lra.
  - tauto.
  - intros [s x] k [Hs ->]; simpl. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; split; auto. apply Qle_bool_iff; auto.
  - intros [s x] k [Hs ->]; simpl. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [intros _; lra|discriminate].
  - intros [s x] k [Hs ->]; simpl. destruct (Qle_bool (s * cost k) B) eqn:E; simpl; [discriminate|intros _; lra].
Qed.

Theorem delegation_pure B (accepted : launchable -> message (either M delegated) -> bool) : 1 <= B ->
  private (filter (either M delegated) launchable outer_ini outer_cost accepted B) B 0
    (filter_start _ launchable outer_ini outer_cost accepted B true) (filter_start _ launchable outer_ini outer_cost accepted B false).
Proof.
  apply filter_pure.
  - intros [k|budget sane]; simpl; [auto|lra].
  - intros [k|budget sane]; simpl; [apply either_left; auto|apply either_right; apply delegated_pure; auto].
Qed.
End Delegation.
