(* The union of filters: a part goes out for good (theory, The default filter).

   A launch is admitted while some part that is in admits it; a part that refuses what another admits goes out. Each part
   by itself is a valid filter for (B, d_i), by whatever theorem. Then the union is valid for (B, sum of the d_i). *)
Require Import sums machines composite filter.
Open Scope Q_scope.

Section Union.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable accepts : K -> message M -> bool.
Variable S' : Type.                                (* what a part remembers *)
Variable charge : nat -> S' -> K -> S' * bool.     (* the rule of the i-th part *)
Hypothesis refusals_are_free : forall i s k, snd (charge i s k) = false -> fst (charge i s k) = s.

(* The account: what each part remembers, or None once it is out. *)
Definition admits (i : nat) (k : K) (o : option S') : bool := match o with Some s => snd (charge i s k) | None => false end.
Definition go_on (i : nat) (k : K) (o : option S') : option S' :=
  match o with Some s => if snd (charge i s k) then Some (fst (charge i s k)) else None | None => None end.
Fixpoint some_admits (i : nat) (k : K) (us : list (option S')) : bool :=
  match us with [] => false | o :: us => admits i k o || some_admits (S i) k us end.
Fixpoint all_go_on (i : nat) (k : K) (us : list (option S')) : list (option S') :=
  match us with [] => [] | o :: us => go_on i k o :: all_go_on (S i) k us end.

Definition union_charge (us : list (option S')) (k : K) : list (option S') * bool :=
  if some_admits 0 k us then (all_go_on 0 k us, true) else (us, false).
Definition union : machine := session M K ini (list (option S')) union_charge (fun _ => accepts).
Definition part (i : nat) : machine := session M K ini S' (charge i) (fun _ => accepts).

(* The first part that is in. *)
Fixpoint first_in (i : nat) (us : list (option S')) : option nat :=
  match us with [] => None | Some _ :: _ => Some i | None :: us => first_in (S i) us end.
Definition is_first (i : nat) (us : list (option S')) : bool := match first_in 0 us with Some j => Nat.eqb j i | None => false end.

Lemma first_in_nth us : forall i j, first_in i us = Some j -> (i <= j)%nat /\ exists s, nth_error us (j - i) = Some (Some s).
Proof.
  induction us as [|[s|] us IH]; intros i j H; simpl in H; [discriminate| |].
  - injection H as <-. split; [lia|]. exists s. replace (i - i)%nat with 0%nat by lia. reflexivity.
  - destruct (IH (S i) j H) as (L & s & E). split; [lia|]. exists s. replace (j - i)%nat with (S (j - S i)) by lia. exact E.
Qed.

Lemma nth_all_go_on k us : forall i j, nth_error (all_go_on i k us) j = option_map (go_on (i + j) k) (nth_error us j).
Proof.
  induction us as [|o us IH]; intros i [|j]; simpl; try reflexivity.
  - rewrite Nat.add_0_r. reflexivity.
  - rewrite IH. replace (S i + j)%nat with (i + S j)%nat by lia. reflexivity.
Qed.

Lemma length_all_go_on k us : forall i, length (all_go_on i k us) = length us.
Proof. induction us; intro i; simpl; auto. Qed.

Lemma still_in k us : forall i, some_admits i k us = true -> first_in i (all_go_on i k us) <> None.
Proof.
  induction us as [|[s|] us IH]; intros i H; simpl in *; [discriminate| |].
  - destruct (snd (charge i s k)); [discriminate|]. apply IH. auto.
  - apply IH. auto.
Qed.

Lemma refused_by_all k us : forall i j s, some_admits i k us = false -> nth_error us j = Some (Some s) -> snd (charge (i + j) s k) = false.
Proof.
  induction us as [|o us IH]; intros i [|j] s H E; simpl in *; try discriminate.
  - injection E as ->. apply orb_false_elim in H as [H _]. rewrite Nat.add_0_r. exact H.
  - apply orb_false_elim in H as [_ H]. replace (i + S j)%nat with (S i + j)%nat by lia. apply IH; auto.
Qed.

(* The adversary that runs against the i-th part alone, until that goes out, and counts what ends with it as the first. *)
Fixpoint follow_part (i : nat) (A : strategy (request M K) (reply M) bool) (us : list (option S')) : strategy (request M K) (reply M) bool :=
  match A with
  | Return e => Return (e && is_first i us)
  | Toss n w next => Toss n w (fun x => follow_part i (next x) us)
  | Send q next =>
      match q with
      | Launch k =>
          if some_admits 0 k us then
            match nth_error (all_go_on 0 k us) i with
            | Some (Some _) => Send q (fun _ => follow_part i (next Launched) (all_go_on 0 k us))
            | _ => Return false
            end
          else Send q (fun _ => follow_part i (next Refused) us)
      | Ask _ _ => Send q (fun r => follow_part i (next r) us)
      end
  end.

Lemma follow_part_fair i A : fair A -> forall us, fair (follow_part i A us).
Proof.
  induction A as [e|q next IH|n w next IH]; intros F us; cbn [follow_part fair] in *; auto.
  - destruct q as [k|j m].
    + destruct (some_admits 0 k us); [destruct (nth_error _ i) as [[s|]|]|]; cbn [fair]; auto.
    + cbn [fair]. auto.
  - destruct F as (W & T & F). auto.
Qed.

Definition share_of (i : nat) (A : strategy (request M K) (reply M) bool) (us : list (option S')) (b : bool) (ks : list K) (children : list (state M)) : Q :=
  match nth_error us i with
  | Some (Some s) => chance (part i) (follow_part i A us) (b, (s, ks), children)
  | _ => 0
  end.

(* What the adversary gets from the union is what these adversaries get from the parts, together. *)
Lemma union_shares A : forall us b ks children, first_in 0 us <> None ->
  chance union A (b, (us, ks), children) == qsum (fun i => share_of i A us b ks children) (seq 0 (length us)).
Proof.
  induction A as [e|q next IH|n w next IH]; intros us b ks children H.
  - destruct (first_in 0 us) as [j|] eqn:E; [|congruence].
    destruct (first_in_nth us 0 j E) as (_ & s & Es). replace (j - 0)%nat with j in Es by lia.
    rewrite (qsum_ext _ (fun i => if Nat.eq_dec j i then hit e else 0)).
    + rewrite (qsum_pick Nat.eq_dec (fun _ => hit e)); [reflexivity|apply seq_NoDup|].
      apply in_seq. split; [lia|]. apply nth_error_Some. congruence.
    + intros i _. unfold share_of. destruct (Nat.eq_dec j i) as [->|N].
      * rewrite Es. unfold chance. cbn [follow_part expect]. unfold is_first. rewrite E, Nat.eqb_refl, andb_true_r. reflexivity.
      * destruct (nth_error us i) as [[s'|]|]; try reflexivity. unfold chance. cbn [follow_part expect]. unfold is_first. rewrite E.
        apply Nat.eqb_neq in N. rewrite N, andb_false_r. reflexivity.
  - destruct q as [k|j m].
    + destruct (some_admits 0 k us) eqn:E.
      * transitivity (chance union (next Launched) (b, (all_go_on 0 k us, ks ++ [k]), children ++ [ini k b])).
        { unfold chance. cbn [expect]. change (step union) with (composite_step M K ini _ (rule_gate M K _ union_charge (fun _ => accepts)) (rule_next M K _ union_charge)).
          unfold composite_step. cbn [rule_gate rule_next fst snd]. assert (C : union_charge us k = (all_go_on 0 k us, true)) by (unfold union_charge; rewrite E; reflexivity).
          rewrite !C. cbn [fst snd qsum]. apply one_outcome. reflexivity. }
        rewrite IH by (apply still_in; auto). rewrite length_all_go_on. apply qsum_ext. intros i _. unfold share_of.
        rewrite nth_all_go_on. cbn [plus]. destruct (nth_error us i) as [[s|]|] eqn:Es; cbn [option_map go_on]; try reflexivity.
        cbn [follow_part]. rewrite E, nth_all_go_on, Es. cbn [option_map go_on plus].
        destruct (snd (charge i s k)) eqn:V; [|reflexivity].
        unfold chance. cbn [expect]. change (step (part i)) with (composite_step M K ini _ (rule_gate M K _ (charge i) (fun _ => accepts)) (rule_next M K _ (charge i))).
        unfold composite_step. cbn [rule_gate rule_next fst snd]. rewrite V. cbn [qsum fst snd]. symmetry. apply one_outcome. reflexivity.
      * transitivity (chance union (next Refused) (b, (us, ks), children)).
        { unfold chance. cbn [expect]. change (step union) with (composite_step M K ini _ (rule_gate M K _ union_charge (fun _ => accepts)) (rule_next M K _ union_charge)).
          unfold composite_step. cbn [rule_gate rule_next fst snd]. assert (C : union_charge us k = (us, false)) by (unfold union_charge; rewrite E; reflexivity).
          rewrite !C. cbn [fst snd qsum]. apply one_outcome. reflexivity. }
        rewrite IH by auto. apply qsum_ext. intros i _. unfold share_of.
        destruct (nth_error us i) as [[s|]|] eqn:Es; try reflexivity.
        cbn [follow_part]. rewrite E. pose proof (refused_by_all k us 0 i s E Es) as V. cbn [plus] in V.
        unfold chance. cbn [expect]. change (step (part i)) with (composite_step M K ini _ (rule_gate M K _ (charge i) (fun _ => accepts)) (rule_next M K _ (charge i))).
        unfold composite_step. cbn [rule_gate rule_next fst snd]. rewrite V, (refusals_are_free i s k V). cbn [qsum fst snd]. symmetry. apply one_outcome. reflexivity.
    + unfold chance in *. cbn [expect]. change (step union) with (composite_step M K ini _ (rule_gate M K _ union_charge (fun _ => accepts)) (rule_next M K _ union_charge)).
      transitivity (qsum (fun o => fst o * qsum (fun i => share_of i (next (snd (snd o))) us b ks (snd (fst (snd o)))) (seq 0 (length us)))
        (composite_step M K ini (ledger K (list (option S'))) (rule_gate M K _ union_charge (fun _ => accepts)) (rule_next M K _ union_charge) (b, (us, ks), children) (Ask j m))).
      { apply qsum_ext. intros o Ho. apply Qmult_comp; [reflexivity|].
        assert (St : exists r c, snd o = ((b, (us, ks), c), r)).
        { unfold composite_step in Ho. cbn [rule_next] in Ho. destruct (rule_gate _ _ _ _ _ _ _); [destruct (nth_error children j)|].
          - apply in_map_iff in Ho as (x & <- & _). cbn. eauto.
          - destruct Ho as [<-|[]]. cbn. eauto.
          - destruct Ho as [<-|[]]. cbn. eauto. }
        destruct o as [w x]. cbn [snd] in St. destruct St as (r & c & ->). cbn [fst snd]. apply IH. auto. }
      rewrite (qsum_ext _ (fun o => qsum (fun i => fst o * share_of i (next (snd (snd o))) us b ks (snd (fst (snd o)))) (seq 0 (length us))))
        by (intros o _; rewrite qsum_scale; reflexivity).
      rewrite qsum_swap. apply qsum_ext. intros i _. unfold share_of.
      destruct (nth_error us i) as [[s|]|] eqn:Es; [|apply qsum_zeros; intros; ring|apply qsum_zeros; intros; ring].
      cbn [follow_part]. unfold chance. cbn [expect]. change (step (part i)) with (composite_step M K ini _ (rule_gate M K _ (charge i) (fun _ => accepts)) (rule_next M K _ (charge i))).
      unfold composite_step. cbn [rule_gate rule_next fst snd].
      destruct (nth_error ks j) as [k|]; [destruct (accepts k m)|]; [destruct (nth_error children j) as [child|]| |].
      * etransitivity; [exact (qsum_map _ _ _)|]. symmetry. etransitivity; [exact (qsum_map _ _ _)|]. reflexivity.
      * reflexivity.
      * reflexivity.
      * reflexivity.
  - unfold chance in *. cbn [expect].
    rewrite (qsum_ext _ (fun x => qsum (fun i => w x * share_of i (next x) us b ks children) (seq 0 (length us))))
      by (intros x _; rewrite IH, <- qsum_scale by auto; reflexivity).
    rewrite qsum_swap. apply qsum_ext. intros i _. unfold share_of. destruct (nth_error us i) as [[s|]|].
    + reflexivity.
    + apply qsum_zeros. intros. ring.
    + apply qsum_zeros. intros. ring.
Qed.

Theorem union_of_parts B (d : nat -> Q) (starts : list S') : starts <> [] ->
  (forall i s, nth_error starts i = Some s ->
     private (part i) B (d i) (opened M K ini S' (charge i) (fun _ => accepts) s [] true) (opened M K ini S' (charge i) (fun _ => accepts) s [] false)) ->
  private union B (qsum d (seq 0 (length starts)))
    (opened M K ini (list (option S')) union_charge (fun _ => accepts) (map Some starts) [] true)
    (opened M K ini (list (option S')) union_charge (fun _ => accepts) (map Some starts) [] false).
Proof.
  intros NE H.
  assert (W : forall b, within union B (qsum d (seq 0 (length starts)))
    (opened M K ini (list (option S')) union_charge (fun _ => accepts) (map Some starts) [] b)
    (opened M K ini (list (option S')) union_charge (fun _ => accepts) (map Some starts) [] (negb b))).
  { intros b A F. unfold opened.
    assert (In_ : first_in 0 (map Some starts) <> None) by (destruct starts; [congruence|discriminate]).
    rewrite !(union_shares A (map Some starts)) by auto. rewrite map_length, <- qsum_scale, <- qsum_plus. apply qsum_le.
    intros i Hi. apply in_seq in Hi. unfold share_of. rewrite nth_error_map_some.
    destruct (nth_error starts i) as [s|] eqn:E; [|apply nth_error_None in E; lia]. cbn [option_map].
    destruct (H i s E) as [H1 H0]. pose proof (follow_part_fair i A F (map Some starts)) as Fi.
    destruct b; [apply (H1 _ Fi)|apply (H0 _ Fi)]. }
  split; [apply (W true)|apply (W false)].
Qed.
End Union.
