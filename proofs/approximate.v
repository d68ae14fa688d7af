(* Rules for (epsilon, delta): basic composition of adaptively chosen losses, for interactive machines with finitely many
   answers.

   The proof is the reduction at work. Each child is replaced by the part of it that is hidden (reduction.v): its mass is
   1 - delta, and the parts of the two worlds are within e^epsilon of each other on every history. *)
Require Import sums machines composite filter reduction.
Require Import FinFun.
Open Scope Q_scope.

Lemma law_consistent M L : NoDup L -> (forall a : answer M, In a L) -> forall s, consistent L (law M s).
Proof.
  intros N C s h. revert s. induction h as [|[m' a'] h IH]; intros s m; simpl.
  - rewrite qsum_swap. rewrite <- (step_total M s m). apply qsum_ext. intros o _.
    rewrite (qsum_pick (same_answer M) (fun _ => fst o * 1)) by auto. ring.
  - rewrite qsum_swap. apply qsum_ext. intros o _. destruct (same_answer M _ a').
    + rewrite qsum_scale, IH. reflexivity.
    + apply qsum_zero.
Qed.

Lemma within_told_apart M L c d s0 s1 : NoDup L -> (forall a : answer M, In a L) ->
  within M c d s0 s1 -> told_apart L c d (law M s0) (law M s1).
Proof.
  intros N C H A F. rewrite <- !(chance_weigh M L A N) by (intros a _; apply C). apply H. auto.
Qed.

(* What a strategy can send and how long it can go on, if there are finitely many answers. *)
Fixpoint sent {Msg Ans Out} (L : list Ans) (A : strategy Msg Ans Out) : list Msg :=
  match A with
  | Return _ => []
  | Send m next => m :: flat_map (fun a => sent L (next a)) L
  | Toss n w next => flat_map (fun i => sent L (next i)) (seq 0 n)
  end.

Fixpoint rounds {Msg Ans Out} (L : list Ans) (A : strategy Msg Ans Out) : nat :=
  match A with
  | Return _ => O
  | Send m next => S (list_max (map (fun a => rounds L (next a)) L))
  | Toss n w next => list_max (map (fun i => rounds L (next i)) (seq 0 n))
  end.

Lemma list_max_in x l : In x l -> (x <= list_max l)%nat.
Proof. intro H. pose proof (proj1 (list_max_le l (list_max l)) (le_n _)) as F. rewrite Forall_forall in F. auto. Qed.

Section Rule.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable S' : Type.
Variable charge : S' -> K -> S' * bool.
Variable accepts : S' -> K -> message M -> bool.
Variable L : list (answer M).
Hypothesis L_once : NoDup L.
Hypothesis L_all : forall a, In a L.

Notation gate := (rule_gate M K S' charge accepts).
Notation next_ := (rule_next M K S' charge).
Notation play_ := (session M K ini S' charge accepts).
Notation behaviour := (list (message M * answer M) -> Q).
Notation Joint := (joint M K (ledger K S') gate next_).

Definition replies : list (reply M) := Launched :: Refused :: map Answered L.
Lemma replies_once : NoDup replies.
Proof.
  unfold replies. repeat constructor.
  - intros [H|H]; [discriminate|]. apply in_map_iff in H as (a & E & _). discriminate.
  - intro H. apply in_map_iff in H as (a & E & _). discriminate.
  - apply Injective_map_NoDup; [intros x y E; congruence|auto].
Qed.
Lemma replies_all r : In r replies.
Proof. unfold replies. destruct r; simpl; auto. right. right. apply in_map. auto. Qed.

Section Steps.
Variable born : K -> behaviour.
Variable next : reply M -> strategy (request M K) (reply M) bool.

Lemma weigh_refused l fs q : gate l q = false ->
  weigh replies (Send q next) (Joint born l fs) == weigh replies (next Refused) (Joint born (next_ l q Refused) fs).
Proof.
  intro G. unfold replies at 1. cbn [weigh qsum]. rewrite qsum_map. cbn [joint]. rewrite G.
  rewrite weigh_zero, (qsum_zeros _ L) by (intros a _; apply weigh_zero). rewrite Qplus_0_r, Qplus_0_l. reflexivity.
Qed.

Lemma weigh_launched l fs k : gate l (Launch k) = true ->
  weigh replies (Send (Launch k) next) (Joint born l fs) ==
  weigh replies (next Launched) (Joint born (next_ l (Launch k) Launched) (fs ++ [born k])).
Proof.
  intro G. unfold replies at 1. cbn [weigh qsum]. rewrite qsum_map. cbn [joint]. rewrite G.
  rewrite weigh_zero, (qsum_zeros _ L) by (intros a _; apply weigh_zero). rewrite !Qplus_0_r. reflexivity.
Qed.

Lemma weigh_missing l fs i m : gate l (Ask i m) = true -> nth_error fs i = None ->
  weigh replies (Send (Ask i m) next) (Joint born l fs) == weigh replies (next Refused) (Joint born l fs).
Proof.
  intros G E. unfold replies at 1. cbn [weigh qsum]. rewrite qsum_map. cbn [joint]. rewrite G, E.
  rewrite weigh_zero, (qsum_zeros _ L) by (intros a _; apply weigh_zero). rewrite Qplus_0_r, Qplus_0_l. reflexivity.
Qed.

Lemma weigh_asked l fs i m f : gate l (Ask i m) = true -> nth_error fs i = Some f ->
  weigh replies (Send (Ask i m) next) (Joint born l fs) ==
  qsum (fun a => weigh replies (next (Answered a)) (Joint born l (update i (after M m a f) fs))) L.
Proof.
  intros G E. unfold replies at 1. cbn [weigh qsum]. rewrite qsum_map. cbn [joint]. rewrite G, E.
  rewrite !weigh_zero, !Qplus_0_l. reflexivity.
Qed.
End Steps.

Variable cost delta : K -> Q.
Hypothesis cost_ge_1 : forall k, 1 <= cost k.
Hypothesis delta_01 : forall k, 0 <= delta k <= 1.
Hypothesis claims : forall k, private M (cost k) (delta k) (ini k true) (ini k false).

Variable ok : S' -> Prop.
Variables growth spare : S' -> Q.
Variable B : Q.
Hypothesis ok_within : forall s, ok s -> growth s <= B /\ 0 <= spare s.
Hypothesis ok_charge : forall s k, ok s -> ok (fst (charge s k)).
Hypothesis charged : forall s k, ok s -> snd (charge s k) = true ->
  growth s * cost k <= growth (fst (charge s k)) /\ spare (fst (charge s k)) + delta k <= spare s.
Hypothesis refused : forall s k, ok s -> snd (charge s k) = false ->
  growth s <= growth (fst (charge s k)) /\ spare (fst (charge s k)) <= spare s.

Section World.
Variable b : bool.
Variable Ms : list (message M).
Variable N : nat.

(* A child in both worlds, and its hidden parts. *)
Record child := Child { in_0 : behaviour; in_1 : behaviour; hid_0 : behaviour; hid_1 : behaviour; odds : Q }.

Definition new (k : K) : child :=
  let f := law M (ini k b) in
  let g := law M (ini k (negb b)) in
  Child f g (fun h => fst (hidden L Ms (cost k) N (delta k) f g h)) (fun h => snd (hidden L Ms (cost k) N (delta k) f g h)) (cost k).

Definition follow (m : message M) (a : answer M) (x : child) : child :=
  Child (after M m a (in_0 x)) (after M m a (in_1 x)) (after M m a (hid_0 x)) (after M m a (hid_1 x)) (odds x).

Definition good (n : nat) (x : child) : Prop :=
  0 <= odds x /\
  (forall h, inside Ms n h -> 0 <= hid_0 x h <= in_0 x h /\ 0 <= hid_1 x h <= in_1 x h /\ hid_0 x h <= odds x * hid_1 x h) /\
  (forall h m, inside Ms n h -> (length h < n)%nat -> In m Ms ->
     qsum (fun a => in_0 x (h ++ [(m, a)])) L == in_0 x h /\ qsum (fun a => hid_0 x (h ++ [(m, a)])) L == hid_0 x h).

Lemma good_new k : good N (new k).
Proof.
  pose proof (cost_ge_1 k) as C. pose proof (delta_01 k) as D. destruct (claims k) as [H1 H0].
  assert (W : forall b, told_apart L (cost k) (delta k) (law M (ini k b)) (law M (ini k (negb b)))).
  { intros [|]; apply within_told_apart; auto. }
  pose proof (W b) as Hb. pose proof (W (negb b)) as Hn. rewrite negb_involutive in Hn.
  destruct (split_off L Ms (cost k) C N (delta k) (law M (ini k b)) (law M (ini k (negb b)))) as (_ & _ & P & Q_); auto;
    try (apply law_consistent; auto); try (intro h; apply law_nonneg); try reflexivity; try lra.
  split; [simpl; lra|split].
  - intros h I. destruct (P h I) as (U & V & UV & _). simpl. auto.
  - intros h m I Lt Im. split; [|apply (Q_ h m I Lt Im)]. apply law_consistent; auto.
Qed.

Lemma good_weaken n n' x : (n' <= n)%nat -> good n x -> good n' x.
Proof.
  intros H (O & P & Q_). split; [auto|split].
  - intros h [I1 I2]. apply P. split; [lia|auto].
  - intros h m [I1 I2] Lt Im. apply Q_; auto; [split; [lia|auto]|lia].
Qed.

Lemma good_follow n m a x : In m Ms -> good (S n) x -> good n (follow m a x).
Proof.
  intros Im (O & P & Q_). split; [auto|split].
  - intros h [I1 I2]. apply (P ((m, a) :: h)). split; [simpl; lia|constructor; auto].
  - intros h m' [I1 I2] Lt Im'. apply (Q_ ((m, a) :: h) m'); auto; [split; [simpl; lia|constructor; auto]|simpl; lia].
Qed.

Fixpoint asks (A : strategy (request M K) (reply M) bool) (n : nat) : Prop :=
  match A with
  | Return _ => True
  | Send q next =>
      match n with
      | O => False
      | S n => match q with Ask _ m => In m Ms | Launch _ => True end /\ forall r, asks (next r) n
      end
  | Toss k w next => forall i, (i < k)%nat -> asks (next i) n
  end.

Lemma products_at_end l n : Forall (good n) l ->
  0 <= qprod (fun x => hid_0 x []) l /\ qprod (fun x => hid_0 x []) l <= qprod (fun x => in_0 x []) l /\
  0 <= qprod (fun x => hid_1 x []) l /\ qprod (fun x => hid_1 x []) l <= qprod (fun x => in_1 x []) l /\
  qprod (fun x => hid_0 x []) l <= qprod odds l * qprod (fun x => hid_1 x []) l /\ 0 <= qprod odds l.
Proof.
  induction 1 as [|x l G Gl IH]; simpl; [repeat split; lra|].
  destruct G as (O & P & _). destruct (P []) as (U & V & UV); [split; [simpl; lia|constructor]|].
  destruct IH as (I1 & I2 & I3 & I4 & I5 & I6).
  repeat split; try (apply Qmult_le_0_compat; lra).
  - apply mult_le; lra.
  - apply mult_le; lra.
  - setoid_replace (odds x * qprod odds l * (hid_1 x [] * qprod (fun x => hid_1 x []) l))
      with ((odds x * hid_1 x []) * (qprod odds l * qprod (fun x => hid_1 x []) l)) by ring.
    apply mult_le; lra.
Qed.

Lemma map_in_0 l i m a x : map in_0 (update i (follow m a x) l) = update i (after M m a (in_0 x)) (map in_0 l).
Proof. rewrite map_update. reflexivity. Qed.
Lemma map_in_1 l i m a x : map in_1 (update i (follow m a x) l) = update i (after M m a (in_1 x)) (map in_1 l).
Proof. rewrite map_update. reflexivity. Qed.
Lemma odds_update l i m a x : nth_error l i = Some x -> qprod odds (update i (follow m a x) l) == qprod odds l.
Proof.
  intro E. destruct (qprod_update odds l i x E) as (rest & E1 & U). rewrite U, E1. reflexivity.
Qed.

Lemma weigh_bound A : forall n s ks l, fair A -> asks A n -> (n <= N)%nat -> ok s -> Forall (good n) l ->
  qprod odds l <= growth s ->
  weigh replies A (Joint (fun k => law M (ini k b)) (s, ks) (map in_0 l)) <=
  B * weigh replies A (Joint (fun k => law M (ini k (negb b))) (s, ks) (map in_1 l)) +
  (qprod (fun x => in_0 x []) l - (1 - spare s) * qprod (fun x => hid_0 x []) l).
Proof.
  induction A as [e|q next IH|j w next IH]; intros n s ks l Fa Aa Hn Ok G H; cbn [fair asks] in *.
  - assert (E : forall (proj : child -> behaviour), Joint (fun k => law M (ini k b)) (s, ks) (map proj l) [] == qprod (fun x => proj x []) l).
    { intro proj. simpl. clear. induction l; simpl; [reflexivity|]. rewrite IHl. reflexivity. }
    cbn [weigh]. rewrite E. change (Joint (fun k => law M (ini k (negb b))) (s, ks) (map in_1 l) []) with
      (Joint (fun k => law M (ini k b)) (s, ks) (map in_1 l) []). rewrite E.
    destruct (products_at_end l n G) as (P1 & P2 & P3 & P4 & P5 & P6). destruct (ok_within s Ok) as [HB HS].
    assert (Hq : qprod (fun x => hid_0 x []) l <= B * qprod (fun x => in_1 x []) l).
    { eapply Qle_trans; [exact P5|]. apply mult_le; lra. }
    assert (0 <= spare s * qprod (fun x => hid_0 x []) l) by (apply Qmult_le_0_compat; auto).
    unfold hit. destruct e; lra.
  - destruct n as [|n]; [contradiction|]. destruct Aa as [Aq Aa].
    assert (Gw : Forall (good n) l) by (eapply Forall_impl; [|exact G]; intros x; apply good_weaken; lia).
    destruct (gate (s, ks) q) eqn:E.
    + destruct q as [k|i m].
      * rewrite !(weigh_launched _ next (s, ks)) by auto. cbn [rule_gate rule_next fst snd] in *.
        pose proof (IH Launched n (fst (charge s k)) (ks ++ [k]) (l ++ [new k]) (Fa _) (Aa _) ltac:(lia) (ok_charge s k Ok)) as I.
        destruct (charged s k Ok E) as [C1 C2].
        rewrite !map_app in I. cbn [map new in_0 in_1] in I.
        assert (Gn : Forall (good n) (l ++ [new k])).
        { apply Forall_app. split; [auto|]. constructor; [|constructor]. apply (good_weaken N); [lia|apply good_new]. }
        assert (Hg : qprod odds (l ++ [new k]) <= growth (fst (charge s k))).
        { rewrite qprod_app. simpl. rewrite Qmult_1_r. eapply Qle_trans; [|exact C1].
          apply Qmult_le_compat_r; [auto|]. pose proof (cost_ge_1 k); lra. }
        specialize (I Gn Hg). eapply Qle_trans; [exact I|]. apply Qplus_le_r.
        rewrite !qprod_app. cbn [qprod new in_0 hid_0 law]. unfold hidden.
        assert (E1 : fst (part L Ms (cost k) N (1 - delta k) (1 - delta k) (law M (ini k b)) (law M (ini k (negb b))) []) = 1 - delta k)
          by (destruct N; reflexivity).
        rewrite E1. destruct (products_at_end l n Gw) as (P1 & _).
        destruct (ok_within _ (ok_charge s k Ok)) as [_ HS]. pose proof (delta_01 k) as D.
        set (x := qprod (fun x => in_0 x []) l) in *. set (y := qprod (fun x => hid_0 x []) l) in *.
        set (r := spare s) in *. set (r' := spare (fst (charge s k))) in *. set (d := delta k) in *.
        assert (Hr : 1 - r <= (1 - r') * (1 - d)).
        { assert (0 <= d * r') by (apply Qmult_le_0_compat; lra). nra. }
        assert (Hy : (1 - r) * y <= (1 - r') * (1 - d) * y) by (apply Qmult_le_compat_r; auto).
        lra.
      * destruct (nth_error l i) as [x|] eqn:En.
        -- rewrite (weigh_asked (fun k => law M (ini k b)) next (s, ks) (map in_0 l) i m (in_0 x))
             by (auto; rewrite nth_error_map_some, En; reflexivity).
           rewrite (weigh_asked (fun k => law M (ini k (negb b))) next (s, ks) (map in_1 l) i m (in_1 x))
             by (auto; rewrite nth_error_map_some, En; reflexivity).
           eapply Qle_trans.
           { apply qsum_le. intros a _. rewrite <- map_in_0.
             apply (IH (Answered a) n s ks (update i (follow m a x) l)); auto; try lia.
             - apply forall_update; auto. apply good_follow; auto. eapply forall_nth; eauto.
             - rewrite odds_update by auto. auto. }
           rewrite qsum_plus, qsum_scale, qsum_minus, qsum_scale.
           rewrite (qsum_ext (fun a => weigh replies (next (Answered a)) (Joint (fun k => law M (ini k (negb b))) (s, ks) (map in_1 (update i (follow m a x) l))))
             (fun a => weigh replies (next (Answered a)) (Joint (fun k => law M (ini k (negb b))) (s, ks) (update i (after M m a (in_1 x)) (map in_1 l)))))
             by (intros a _; rewrite map_in_1; reflexivity).
           apply Qplus_le_r.
           destruct (forall_nth _ _ _ _ G En) as (_ & _ & Cx).
           destruct (Cx [] m) as [C1 C2]; [split; [simpl; lia|constructor]|simpl; lia|auto|].
           destruct (qprod_update (fun x => in_0 x []) l i x En) as (r1 & E1 & U1).
           destruct (qprod_update (fun x => hid_0 x []) l i x En) as (r2 & E2 & U2).
           rewrite (qsum_ext _ (fun a => in_0 x [(m, a)] * r1)) by (intros a _; rewrite U1; reflexivity).
           rewrite (qsum_ext (fun a => qprod (fun x => hid_0 x []) (update i (follow m a x) l)) (fun a => hid_0 x [(m, a)] * r2))
             by (intros a _; rewrite U2; reflexivity).
           rewrite !qsum_scale_r. simpl in C1, C2. rewrite C1, C2, E1, E2. lra.
        -- rewrite !(weigh_missing _ next (s, ks)) by (auto; rewrite nth_error_map_some, En; reflexivity).
           apply (IH Refused n s ks l); auto. lia.
    + rewrite !(weigh_refused _ next (s, ks)) by auto. destruct q as [k|i m].
      * cbn [rule_gate rule_next fst snd] in *. destruct (refused s k Ok E) as [C1 C2].
        eapply Qle_trans; [apply (IH Refused n (fst (charge s k)) ks l); auto; [lia|lra]|].
        apply Qplus_le_r. destruct (products_at_end l n Gw) as (P1 & _).
        assert ((1 - spare s) * qprod (fun x => hid_0 x []) l <= (1 - spare (fst (charge s k))) * qprod (fun x => hid_0 x []) l)
          by (apply Qmult_le_compat_r; lra). lra.
      * cbn [rule_next fst snd]. apply (IH Refused n s ks l); auto. lia.
  - destruct Fa as (W & T & Fa). cbn [weigh].
    set (D := qprod (fun x => in_0 x []) l - (1 - spare s) * qprod (fun x => hid_0 x []) l).
    apply Qle_trans with (qsum (fun i => w i * (B * weigh replies (next i) (Joint (fun k => law M (ini k (negb b))) (s, ks) (map in_1 l)) + D)) (seq 0 j)).
    + apply qsum_le. intros i Hi. apply in_seq in Hi. apply scale_le; auto. apply (IH i n); auto. apply Aa. lia.
    + rewrite (qsum_ext _ (fun i => B * (w i * weigh replies (next i) (Joint (fun k => law M (ini k (negb b))) (s, ks) (map in_1 l))) + w i * D)) by (intros; ring).
      rewrite qsum_plus, qsum_scale, qsum_scale_r, T. lra.
Qed.
End World.

Definition asked (q : request M K) : list (message M) := match q with Ask _ m => [m] | Launch _ => [] end.

Lemma asks_enough Ms A : forall n, (rounds replies A <= n)%nat -> incl (flat_map asked (sent replies A)) Ms -> asks Ms A n.
Proof.
  induction A as [e|q next IH|j w next IH]; intros n R I; cbn [rounds sent asks] in *; auto.
  - destruct n as [|n]; [lia|]. split.
    + destruct q as [k|i m]; auto. apply I, in_flat_map. exists (Ask i m). simpl. auto.
    + intro r. apply IH.
      * apply le_S_n in R. eapply Nat.le_trans; [|exact R]. apply list_max_in.
        apply (in_map (fun a => rounds replies (next a)) replies r), replies_all.
      * intros m Hm. apply in_flat_map in Hm as (q' & Hq & Hm). apply I, in_flat_map. exists q'. split; [|auto].
        right. apply in_flat_map. exists r. split; [apply replies_all|auto].
  - intros i Hi. apply IH.
    + eapply Nat.le_trans; [|exact R]. apply list_max_in. apply (in_map (fun i => rounds replies (next i))), in_seq. lia.
    + intros m Hm. apply in_flat_map in Hm as (q' & Hq & Hm). apply I, in_flat_map. exists q'. split; [|auto].
      apply in_flat_map. exists i. split; [apply in_seq; lia|auto].
Qed.

(* Any rule that keeps the product of the odds within B, and never spends more delta than it has to spare. *)
Theorem rule_approximate s ks : ok s -> qprod cost ks <= growth s ->
  private play_ B (1 - (1 - spare s) * qprod (fun k => 1 - delta k) ks)
    (opened M K ini S' charge accepts s ks true) (opened M K ini S' charge accepts s ks false).
Proof.
  intros Ok H.
  assert (W : forall b, within play_ B (1 - (1 - spare s) * qprod (fun k => 1 - delta k) ks)
    (opened M K ini S' charge accepts s ks b) (opened M K ini S' charge accepts s ks (negb b))).
  { intros b A F.
    set (N := rounds replies A). set (Ms := flat_map asked (sent replies A)).
    pose proof (asks_enough Ms A N (le_n _) (incl_refl _)) as Aa.
    assert (E : forall b', chance play_ A (opened M K ini S' charge accepts s ks b') ==
      weigh replies A (Joint (fun k => law M (ini k b')) (s, ks) (map (fun k => law M (ini k b')) ks))).
    { intro b'. etransitivity; [apply (chance_weigh play_ replies A replies_once); intros r _; apply replies_all|].
      apply weigh_ext. intro h. unfold opened. etransitivity; [apply law_composite|]. rewrite map_map. reflexivity. }
    pose proof (weigh_bound b Ms N A N s ks (map (new b Ms N) ks) F Aa (le_n _) Ok) as I.
    rewrite !map_map in I. cbn [new in_0 in_1] in I. rewrite !E. eapply Qle_trans; [apply I|]; clear I.
    - apply Forall_forall. intros x Hx. apply in_map_iff in Hx as (k & <- & _). apply good_new.
    - assert (E' : qprod odds (map (new b Ms N) ks) == qprod cost ks) by (clear; induction ks; simpl; [reflexivity|rewrite IHks; reflexivity]).
      rewrite E'. exact H.
    - apply Qplus_le_r.
      assert (E1 : qprod (fun x => in_0 x []) (map (new b Ms N) ks) == 1) by (clear; induction ks; simpl; [reflexivity|rewrite IHks; ring]).
      assert (E2 : qprod (fun x => hid_0 x []) (map (new b Ms N) ks) == qprod (fun k => 1 - delta k) ks).
      { clear. induction ks as [|k ks IH]; simpl; [reflexivity|]. rewrite IH. apply Qmult_comp; [|reflexivity].
        unfold hidden. destruct (rounds replies A); reflexivity. }
      rewrite E1, E2. lra. }
  split; [apply (W true)|apply (W false)].
Qed.
End Rule.

Section Basic.
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

(* Any number of (epsilon_i, delta_i) machines at once. *)
Theorem concurrent_approximate ks :
  private (concurrent M K ini accepts) (qprod cost ks) (1 - qprod (fun k => 1 - delta k) ks)
    (opened M K ini unit _ _ tt ks true) (opened M K ini unit _ _ tt ks false).
Proof.
  apply weaker with (c := qprod cost ks) (d := 1 - (1 - 0) * qprod (fun k => 1 - delta k) ks); [lra|lra|].
  apply (rule_approximate M K ini unit (fun s _ => (s, false)) (fun _ => accepts) L L_once L_all
    cost delta cost_ge_1 delta_01 claims (fun _ => True) (fun _ => qprod cost ks) (fun _ => 0) (qprod cost ks)); auto;
    try (intros; split; lra); try lra; discriminate.
Qed.

(* The basic filter: admit while the odds multiply to at most B and the deltas add up to at most D. *)
Definition basic_charge (B D : Q) (s : Q * Q) (k : K) : (Q * Q) * bool :=
  if Qle_bool (fst s * cost k) B && Qle_bool (snd s + delta k) D then ((fst s * cost k, snd s + delta k), true) else (s, false).
Definition basic_filter (B D : Q) : machine := session M K ini (Q * Q) (basic_charge B D) (fun _ => accepts).

Theorem filter_basic B D : 1 <= B -> 0 <= D ->
  private (basic_filter B D) B D
    (opened M K ini (Q * Q) (basic_charge B D) (fun _ => accepts) (1, 0) [] true)
    (opened M K ini (Q * Q) (basic_charge B D) (fun _ => accepts) (1, 0) [] false).
Proof.
  intros HB HD.
  apply weaker with (c := B) (d := 1 - (1 - (D - 0)) * 1); [lra|lra|].
  apply (rule_approximate M K ini (Q * Q) (basic_charge B D) (fun _ => accepts) L L_once L_all
    cost delta cost_ge_1 delta_01 claims (fun s => fst s <= B /\ snd s <= D) fst (fun s => D - snd s) B) with (s := (1, 0)) (ks := []); auto; try (simpl; lra).
  - intros s [H1 H2]. split; lra.
  - intros s k [H1 H2]. unfold basic_charge. destruct (Qle_bool _ B) eqn:E1; [destruct (Qle_bool _ D) eqn:E2|]; simpl; split; to_lra.
  - intros s k [H1 H2]. unfold basic_charge. destruct (Qle_bool _ B) eqn:E1; [destruct (Qle_bool _ D) eqn:E2|]; simpl; try discriminate.
    intros _. split; lra.
  - intros s k [H1 H2]. unfold basic_charge. destruct (Qle_bool _ B) eqn:E1; [destruct (Qle_bool _ D) eqn:E2|]; simpl; try discriminate; intros _; split; lra.
Qed.
End Basic.
