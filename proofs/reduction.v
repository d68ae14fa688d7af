(* What an (epsilon, delta)-private machine hides, and how it is a randomized response.

   If two behaviours are within (c, d) against every adversary, each of them contains a part of mass 1 - d, and these parts
   are within c of each other on every history (`split_off`). This is the core of Lyu 2022, Thm 3 and Henzinger et al.
   2024, Lemma 4.7: from it follow the four processes that simulate both worlds from the answer of one randomized response
   with exposure (`reduction`).

   Answers are finitely many; an adversary with finitely many answers to meet sends finitely many messages (`Ms`) in
   finitely many rounds (`n`). Both are parameters. *)
Require Import sums machines.
Open Scope Q_scope.

Definition low (x y : Q) : Q := if Qle_bool x y then x else y.
Lemma low_l x y : low x y <= x.
Proof. unfold low. destruct (Qle_bool x y) eqn:E; to_lra. Qed.
Lemma low_r x y : low x y <= y.
Proof. unfold low. destruct (Qle_bool x y) eqn:E; to_lra. Qed.

(* The least of some values, and where it is. *)
Fixpoint least {X} (v : X -> Q) (stop : Q) (xs : list X) : Q * option X :=
  match xs with
  | [] => (stop, None)
  | x :: r => let b := least v stop r in if Qle_bool (v x) (fst b) then (v x, Some x) else b
  end.

Lemma least_stop {X} (v : X -> Q) stop xs : fst (least v stop xs) <= stop.
Proof. induction xs as [|x r IH]; simpl; [lra|]. destruct (Qle_bool _ _) eqn:E; simpl; to_lra. Qed.

Lemma least_in {X} (v : X -> Q) stop xs x : In x xs -> fst (least v stop xs) <= v x.
Proof.
  induction xs as [|y r IH]; simpl; [tauto|]. intros [->|H]; destruct (Qle_bool _ _) eqn:E; simpl; to_lra.
  specialize (IH H). lra. auto.
Qed.

Lemma least_is {X} (v : X -> Q) stop xs :
  match snd (least v stop xs) with
  | None => fst (least v stop xs) = stop
  | Some x => In x xs /\ fst (least v stop xs) = v x
  end.
Proof.
  induction xs as [|y r IH]; simpl; [reflexivity|]. destruct (Qle_bool _ _); simpl; [auto|].
  destruct (snd (least v stop r)); intuition.
Qed.

Section Reduction.
Context {Msg Ans : Type}.
Notation history := (list (Msg * Ans)).
Notation behaviour := (history -> Q).
Variable L : list Ans.   (* all answers *)
Variable Ms : list Msg.  (* the messages that may be sent *)
Variable c : Q.
Hypothesis c_ge_1 : 1 <= c.

Definition then_ (f : behaviour) (m : Msg) (a : Ans) : behaviour := fun h => f ((m, a) :: h).
Definition consistent (f : behaviour) : Prop := forall h m, qsum (fun a => f (h ++ [(m, a)])) L == f h.

Lemma consistent_then f m a : consistent f -> consistent (then_ f m a).
Proof. intros H h m'. apply (H ((m, a) :: h) m'). Qed.

(* How much of f an adversary cannot tell from g: what is left of f once the best adversary of n more messages has taken
   its advantage over c g. *)
Fixpoint cap (n : nat) (f g : behaviour) : Q :=
  let stop := low (f []) (c * g []) in
  match n with
  | O => stop
  | S n => fst (least (fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L) stop Ms)
  end.

(* That adversary. *)
Fixpoint best (n : nat) (f g : behaviour) : strategy Msg Ans bool :=
  let stop := Return (Qle_bool (c * g []) (f [])) in
  match n with
  | O => stop
  | S n =>
      match snd (least (fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L) (low (f []) (c * g [])) Ms) with
      | None => stop
      | Some m => Send m (fun a => best n (then_ f m a) (then_ g m a))
      end
  end.

Lemma best_fair n : forall f g, fair (best n f g).
Proof. induction n as [|n IH]; intros f g; simpl; [auto|]. destruct (snd _); simpl; auto. Qed.

Lemma best_stop (f g : behaviour) : hit (Qle_bool (c * g []) (f [])) * f [] - c * (hit (Qle_bool (c * g []) (f [])) * g []) == f [] - low (f []) (c * g []).
Proof.
  unfold low, hit. destruct (Qle_bool (c * g []) (f [])) eqn:E, (Qle_bool (f []) (c * g [])) eqn:E'; to_lra.
Qed.

Lemma best_wins n : forall f g, consistent f ->
  weigh L (best n f g) f - c * weigh L (best n f g) g == f [] - cap n f g.
Proof.
  induction n as [|n IH]; intros f g Cf.
  - simpl. apply best_stop.
  - cbn [best cap]. pose proof (least_is (fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L) (low (f []) (c * g [])) Ms) as I.
    destruct (snd _) as [m|]; [|rewrite I; simpl; apply best_stop].
    destruct I as [_ ->]. cbn [weigh]. rewrite <- qsum_scale, <- qsum_minus.
    rewrite <- (Cf [] m). simpl. rewrite <- qsum_minus. apply qsum_ext. intros a _.
    apply (IH (then_ f m a) (then_ g m a)). apply consistent_then; auto.
Qed.

Lemma cap_f n f g : cap n f g <= f [].
Proof.
  destruct n; simpl; [apply low_l|]. eapply Qle_trans; [apply least_stop|apply low_l].
Qed.

Lemma cap_next n f g m : In m Ms -> cap (S n) f g <= qsum (fun a => cap n (then_ f m a) (then_ g m a)) L.
Proof. intro H. simpl. apply (least_in (fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L)); auto. Qed.

Lemma low_nonneg x y : 0 <= x -> 0 <= y -> 0 <= low x y.
Proof. unfold low. destruct (Qle_bool x y); auto. Qed.

Lemma cap_nonneg n : forall f g, (forall h, 0 <= f h) -> (forall h, 0 <= g h) -> 0 <= cap n f g.
Proof.
  induction n as [|n IH]; intros f g Hf Hg; simpl.
  - apply low_nonneg; auto. apply Qmult_le_0_compat; auto; lra.
  - pose proof (least_is (fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L) (low (f []) (c * g [])) Ms) as I.
    destruct (snd _) as [m|].
    + destruct I as [_ ->]. apply qsum_nonneg. intros a _. apply IH; intro h; unfold then_; auto.
    + rewrite I. apply low_nonneg; auto. apply Qmult_le_0_compat; auto; lra.
Qed.

Lemma cap_cone n : forall f g, (forall h, 0 <= f h) -> (forall h, 0 <= g h) -> cap n f g <= c * cap n g f.
Proof.
  assert (St : forall f g : behaviour, (forall h, 0 <= f h) -> (forall h, 0 <= g h) ->
    low (f []) (c * g []) <= c * low (g []) (c * f [])).
  { intros f g Hf Hg. pose proof (low_l (f []) (c * g [])). pose proof (low_r (f []) (c * g [])).
    specialize (Hf []). specialize (Hg []).
    unfold low at 2. destruct (Qle_bool _ _); [auto|]. assert (f [] <= c * f []) by nra.
    assert (c * f [] <= c * (c * f [])) by (apply scale_le; lra). lra. }
  induction n as [|n IH]; intros f g Hf Hg; [simpl; auto|].
  cbn [cap]. set (v := fun m => qsum (fun a => cap n (then_ f m a) (then_ g m a)) L).
  pose proof (least_is (fun m => qsum (fun a => cap n (then_ g m a) (then_ f m a)) L) (low (g []) (c * f [])) Ms) as I.
  destruct (snd _) as [m|].
  - destruct I as [Im ->]. eapply Qle_trans; [apply (least_in v); eauto|].
    unfold v. rewrite <- qsum_scale. apply qsum_le. intros a _. apply IH; intro h; unfold then_; auto.
  - rewrite I. eapply Qle_trans; [apply least_stop|]. auto.
Qed.

(* ---------- splitting a pair of masses over the answers ---------- *)
(* (u, v) is a pair of masses within c of each other, below the pair (a, b). *)
Definition kite (u v a b : Q) : Prop := 0 <= u <= a /\ 0 <= v <= b /\ u <= c * v /\ v <= c * u.

(* If u uses up more of its room than v does: (u, v) as a mixture of what (a, b) offers. *)
Definition lean (u v a b x y : Q) : Q * Q :=
  let s := u / a in
  let t := (v - u / c) / (b - a / c) in
  (s * x, t * y + (s - t) * (x / c)).

Definition share (u v a b x y : Q) : Q * Q :=
  if Qle_bool (v * a) (u * b) then lean u v a b x y else let p := lean v u b a y x in (snd p, fst p).

Lemma div_zero x y : y == 0 -> x / y == 0.
Proof. intro H. unfold Qdiv. rewrite H. unfold Qinv. simpl. ring. Qed.

Lemma lean_coefficients u v a b : kite u v a b -> a <= c * b -> b <= c * a -> v * a <= u * b ->
  exists s t, 0 <= t /\ t <= s /\ s <= 1 /\ s * a == u /\ t * b + (s - t) * (a / c) == v /\
  forall x y, lean u v a b x y = (s * x, t * y + (s - t) * (x / c)).
Proof.
  intros (U & V & UV & VU) AB BA H. exists (u / a), ((v - u / c) / (b - a / c)).
  assert (C : ~ c == 0) by lra.
  assert (Ea : a / c * c == a) by (field; auto). assert (Eu : u / c * c == u) by (field; auto).
  set (a' := a / c) in *. set (u' := u / c) in *.
  assert (A' : a' <= b) by nra. assert (U' : u' <= v) by nra.
  assert (P : 0 <= u' /\ 0 <= a') by (split; nra).
  destruct (Qlt_le_dec 0 a) as [Pa|Za].
  - assert (Na : ~ a == 0) by lra.
    assert (S : u / a * a == u) by (field; auto). set (s := u / a) in *.
    assert (S0 : 0 <= s) by nra. assert (S1 : s <= 1) by nra.
    assert (Sv : v <= s * b) by nra. assert (Su : s * a' == u') by nra.
    destruct (Qlt_le_dec 0 (b - a')) as [Pb|Zb].
    + assert (T : (v - u') / (b - a') * (b - a') == v - u') by (field; lra).
      set (t := (v - u') / (b - a')) in *.
      repeat split; auto; nra.
    + assert (Z : (v - u') / (b - a') == 0) by (apply div_zero; lra). rewrite !Z.
      repeat split; try lra; try nra. 
  - assert (a == 0) by lra. assert (a' == 0) by nra. assert (b == 0) by nra.
    rewrite (div_zero u a) by auto. rewrite (div_zero (v - u') (b - a')) by lra.
    repeat split; try lra; try nra.
Qed.

Lemma kite_share u v a b x y : kite u v a b -> a <= c * b -> b <= c * a ->
  0 <= x -> 0 <= y -> x <= c * y -> y <= c * x -> kite (fst (share u v a b x y)) (snd (share u v a b x y)) x y.
Proof.
  assert (W : forall u v a b x y, kite u v a b -> a <= c * b -> b <= c * a -> v * a <= u * b ->
    0 <= x -> 0 <= y -> x <= c * y -> y <= c * x -> kite (fst (lean u v a b x y)) (snd (lean u v a b x y)) x y).
  { clear u v a b x y. intros u v a b x y K AB BA H X Y XY YX.
    destruct (lean_coefficients u v a b K AB BA H) as (s & t & T0 & TS & S1 & _ & _ & E). rewrite E. simpl.
    assert (C : ~ c == 0) by lra. assert (Ex : x / c * c == x) by (field; auto). set (x' := x / c) in *.
    assert (X' : 0 <= x') by nra. assert (XL : x' <= y) by nra.
    assert (TY : 0 <= t * y) by (apply Qmult_le_0_compat; auto).
    assert (SX : 0 <= (s - t) * x') by (apply Qmult_le_0_compat; lra).
    assert (SX2 : (s - t) * x' <= (s - t) * y) by (apply scale_le; lra).
    assert (TX : 0 <= t * x) by (apply Qmult_le_0_compat; auto).
    assert (STX : 0 <= (s - t) * x) by (apply Qmult_le_0_compat; lra).
    assert (TXY : t * x <= t * (c * y)) by (apply scale_le; lra).
    assert (TYX : t * y <= t * (c * x)) by (apply scale_le; lra).
    assert (SXX : (s - t) * x' <= (s - t) * (c * x)) by (apply scale_le; nra).
    assert (SXC : (s - t) * (x' * c) == (s - t) * x) by (rewrite Ex; reflexivity).
    repeat split; try lra; nra. }
  intros K AB BA X Y XY YX. unfold share. destruct (Qle_bool (v * a) (u * b)) eqn:E.
  - apply W; auto. apply Qle_bool_iff; auto.
  - apply Qle_bool_false in E. destruct K as (U & V & UV & VU).
    assert (K' : kite v u b a) by (repeat split; tauto).
    destruct (W v u b a y x K' BA AB ltac:(lra) Y X YX XY) as (P & R & PR & RP). repeat split; simpl; tauto.
Qed.

Lemma share_sums u v (x y : Ans -> Q) :
  let a := qsum x L in let b := qsum y L in
  kite u v a b -> a <= c * b -> b <= c * a ->
  qsum (fun i => fst (share u v a b (x i) (y i))) L == u /\ qsum (fun i => snd (share u v a b (x i) (y i))) L == v.
Proof.
  assert (W : forall u v (x y : Ans -> Q), let a := qsum x L in let b := qsum y L in
    kite u v a b -> a <= c * b -> b <= c * a -> v * a <= u * b ->
    qsum (fun i => fst (lean u v a b (x i) (y i))) L == u /\ qsum (fun i => snd (lean u v a b (x i) (y i))) L == v).
  { clear u v x y. intros u v x y a b K AB BA H.
    destruct (lean_coefficients u v a b K AB BA H) as (s & t & _ & _ & _ & Es & Et & E).
    split.
    - rewrite (qsum_ext _ (fun i => s * x i)) by (intros i _; rewrite E; simpl; reflexivity).
      rewrite qsum_scale. exact Es.
    - rewrite (qsum_ext _ (fun i => t * y i + ((s - t) / c) * x i)).
      + rewrite qsum_plus, !qsum_scale. fold a b. rewrite <- Et. field. lra.
      + intros i _. rewrite E. simpl. field. lra. }
  intros a b K AB BA. unfold share. destruct (Qle_bool (v * a) (u * b)) eqn:E.
  - apply W; auto. apply Qle_bool_iff; auto.
  - apply Qle_bool_false in E. destruct K as (U & V & UV & VU).
    assert (K' : kite v u b a) by (repeat split; tauto).
    destruct (W v u y x K' BA AB ltac:(fold a b; lra)) as (P & R). split; simpl; auto.
Qed.

(* The hidden parts of f and g, of masses u and v, on histories of at most n messages. *)
Fixpoint part (n : nat) (u v : Q) (f g : behaviour) (h : history) : Q * Q :=
  match h, n with
  | [], _ => (u, v)
  | _ :: _, O => (0, 0)
  | (m, a) :: r, S n =>
      let x := fun a => cap n (then_ f m a) (then_ g m a) in
      let y := fun a => cap n (then_ g m a) (then_ f m a) in
      let p := share u v (qsum x L) (qsum y L) (x a) (y a) in
      part n (fst p) (snd p) (then_ f m a) (then_ g m a) r
  end.

Definition inside (n : nat) (h : history) : Prop := (length h <= n)%nat /\ Forall (fun p => In (fst p) Ms) h.

Section Parts.
Variable f g : behaviour.

Lemma kite_next n (F G : behaviour) u v m : In m Ms -> (forall h, 0 <= F h) -> (forall h, 0 <= G h) ->
  kite u v (cap (S n) F G) (cap (S n) G F) ->
  let x := fun a => cap n (then_ F m a) (then_ G m a) in
  let y := fun a => cap n (then_ G m a) (then_ F m a) in
  kite u v (qsum x L) (qsum y L) /\ qsum x L <= c * qsum y L /\ qsum y L <= c * qsum x L /\
  forall a, 0 <= x a /\ 0 <= y a /\ x a <= c * y a /\ y a <= c * x a.
Proof.
  intros Im HF HG (U & V & UV & VU) x y.
  pose proof (cap_next n F G m Im) as CF. pose proof (cap_next n G F m Im) as CG. fold x y in CF, CG.
  assert (P : forall a, 0 <= x a /\ 0 <= y a /\ x a <= c * y a /\ y a <= c * x a).
  { intro a. unfold x, y. repeat split; try apply cap_nonneg; try apply cap_cone; intro h; unfold then_; auto. }
  split; [|split; [|split; [|exact P]]].
  - unfold kite. repeat split; try tauto; lra.
  - rewrite <- qsum_scale. apply qsum_le. intros a _. apply P.
  - rewrite <- qsum_scale. apply qsum_le. intros a _. apply P.
Qed.
End Parts.

Lemma part_kite n : forall u v f g h, (forall h, 0 <= f h) -> (forall h, 0 <= g h) ->
  kite u v (cap n f g) (cap n g f) -> inside n h ->
  kite (fst (part n u v f g h)) (snd (part n u v f g h)) (f h) (g h).
Proof.
  induction n as [|n IH]; intros u v f g h Hf Hg K [Ln In_].
  - destruct h as [|p h]; [|simpl in Ln; lia]. simpl. destruct K as (U & V & UV & VU).
    pose proof (cap_f 0 f g). pose proof (cap_f 0 g f). repeat split; try tauto; lra.
  - destruct h as [|[m a] h].
    + simpl. destruct K as (U & V & UV & VU). pose proof (cap_f (S n) f g). pose proof (cap_f (S n) g f).
      repeat split; try tauto; lra.
    + inversion_clear In_ as [|? ? Im In']. simpl in Ln.
      destruct (kite_next n f g u v m Im Hf Hg K) as (K' & XY & YX & P).
      cbn [part]. apply (IH _ _ (then_ f m a) (then_ g m a) h).
      * intro; unfold then_; auto.
      * intro; unfold then_; auto.
      * destruct (P a) as (X & Y & XY' & YX'). apply kite_share; auto.
      * split; [lia|auto].
Qed.

Lemma part_sums n : forall u v f g h m, (forall h, 0 <= f h) -> (forall h, 0 <= g h) ->
  kite u v (cap n f g) (cap n g f) -> inside n h -> (length h < n)%nat -> In m Ms ->
  qsum (fun a => fst (part n u v f g (h ++ [(m, a)]))) L == fst (part n u v f g h) /\
  qsum (fun a => snd (part n u v f g (h ++ [(m, a)]))) L == snd (part n u v f g h).
Proof.
  induction n as [|n IH]; intros u v f g h m Hf Hg K [Ln In_] Lt Im; [lia|].
  destruct h as [|[m' a'] h].
  - destruct (kite_next n f g u v m Im Hf Hg K) as (K' & XY & YX & P). simpl.
    destruct n; apply (share_sums u v (fun a => cap _ (then_ f m a) (then_ g m a)) (fun a => cap _ (then_ g m a) (then_ f m a))); auto.
  - inversion_clear In_ as [|? ? Im' In']. simpl in Ln, Lt.
    destruct (kite_next n f g u v m' Im' Hf Hg K) as (K' & XY & YX & P).
    cbn [part app]. apply (IH _ _ (then_ f m' a') (then_ g m' a') h m).
    + intro; unfold then_; auto.
    + intro; unfold then_; auto.
    + destruct (P a') as (X & Y & XY' & YX'). apply kite_share; auto.
    + split; [lia|auto].
    + lia.
    + auto.
Qed.

(* The parts that two behaviours have in common, if no adversary tells more than d of them apart. *)
Definition hidden (n : nat) (d : Q) (f g : behaviour) (h : history) : Q * Q := part n (1 - d) (1 - d) f g h.

Definition told_apart (d : Q) (f g : behaviour) : Prop :=
  forall A : strategy Msg Ans bool, fair A -> weigh L A f <= c * weigh L A g + d.

Lemma hidden_kite n d f g : d <= 1 -> consistent f -> consistent g -> f [] == 1 -> g [] == 1 ->
  told_apart d f g -> told_apart d g f -> kite (1 - d) (1 - d) (cap n f g) (cap n g f).
Proof.
  intros D Cf Cg F1 G1 H K.
  pose proof (best_wins n f g Cf) as Wf. pose proof (best_wins n g f Cg) as Wg.
  specialize (H _ (best_fair n f g)). specialize (K _ (best_fair n g f)).
  assert (0 <= (c - 1) * (1 - d)) by (apply Qmult_le_0_compat; lra).
  repeat split; lra.
Qed.

Theorem split_off n d f g : d <= 1 -> consistent f -> consistent g -> f [] == 1 -> g [] == 1 ->
  (forall h, 0 <= f h) -> (forall h, 0 <= g h) -> told_apart d f g -> told_apart d g f ->
  let u := fun h => fst (hidden n d f g h) in
  let v := fun h => snd (hidden n d f g h) in
  u [] == 1 - d /\ v [] == 1 - d /\
  (forall h, inside n h -> 0 <= u h <= f h /\ 0 <= v h <= g h /\ u h <= c * v h /\ v h <= c * u h) /\
  (forall h m, inside n h -> (length h < n)%nat -> In m Ms ->
     qsum (fun a => u (h ++ [(m, a)])) L == u h /\ qsum (fun a => v (h ++ [(m, a)])) L == v h).
Proof.
  intros D Cf Cg F1 G1 Hf Hg H K u v.
  pose proof (hidden_kite n d f g D Cf Cg F1 G1 H K) as Kt.
  split; [|split; [|split]].
  - unfold u, hidden. destruct n; reflexivity.
  - unfold v, hidden. destruct n; reflexivity.
  - intros h I. apply (part_kite n (1 - d) (1 - d) f g h Hf Hg Kt I).
  - intros h m I Lt Im. apply (part_sums n (1 - d) (1 - d) f g h m Hf Hg Kt I Lt Im).
Qed.
End Reduction.
