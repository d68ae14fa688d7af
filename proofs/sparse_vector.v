(* The sparse vector technique: the shift proof, for any noise with the ratio property.

   The threshold is noised once, every comparison anew; the machine answers whether the value reaches the threshold, and
   halts after `hits` times True. Noise on all integers has infinitely many outcomes, so the theorem is about every finite
   window of threshold noise: what world b gets from a window is at most the bound times what the other world gets from
   the window next to it. Sums over all integers are limits of such windows, and the bound does not depend on them. *)
Require Import sums machines.
Require Import ZArith.
Open Scope Q_scope.

Section SparseVector.
Variable D : Z.                  (* how far one unit moves a value *)
Variable reach : Z -> Q.         (* the probability that the noise of a comparison is at least z *)
Hypothesis reach_01 : forall z, 0 <= reach z <= 1.
Hypothesis reach_falls : forall z z', (z <= z')%Z -> reach z' <= reach z.
Variable h : Q.                  (* what one True costs *)
Hypothesis h_ge_1 : 1 <= h.
Hypothesis reach_ratio : forall z, reach z <= h * reach (z + 2 * D).
Variable rho : Z -> Q.           (* the weight of threshold noise *)
Hypothesis rho_nonneg : forall z, 0 <= rho z.
Variable r : Q.                  (* what the threshold costs *)
Hypothesis r_nonneg : 0 <= r.
Hypothesis rho_ratio : forall z, rho z <= r * rho (z + D).

(* Which world it is, the noisy threshold, and how many times it may still answer True. *)
Definition watching : Type := bool * (Z * nat).
(* A pair of values, one for each world; pairs that are further apart than D are refused. *)
Definition close_pair (p : Z * Z) : bool := (Z.abs (fst p - snd p) <=? D)%Z.

Definition watch_step (s : watching) (p : Z * Z) : list (Q * (watching * option bool)) :=
  let '(b, (t, more)) := s in
  match more with
  | O => [(1, (s, None))]
  | S j =>
      if close_pair p then
        let up := reach (t - (if b then fst p else snd p)) in
        [(up, ((b, (t, j)), Some true)); (1 - up, ((b, (t, S j)), Some false))]
      else [(1, (s, None))]
  end.

Definition sparse_vector : machine.
Proof.
  refine (Machine watching (Z * Z) (option bool) (option_dec Bool.bool_dec) watch_step _ _).
  - intros [b [t [|j]]] p o; unfold watch_step; [intros [<-|[]]; simpl; lra|]. destruct (close_pair p).
    + pose proof (reach_01 (t - (if b then fst p else snd p))). intros [<-|[<-|[]]]; simpl; lra.
    + intros [<-|[]]. simpl. lra.
  - intros [b [t [|j]]] p; unfold watch_step; [simpl; ring|]. destruct (close_pair p); simpl; ring.
Defined.

Lemma refusal_le p u v : u <= p * v -> 1 * u + 0 <= p * (1 * v + 0).
Proof. intro H. lra. Qed.

Lemma branch_le p x y u0 u1 v0 v1 : 0 <= x <= 1 -> 0 <= y <= 1 -> x <= h * y -> y <= x -> 0 <= u1 -> 0 <= u0 ->
  u1 <= p * v1 -> u0 <= h * p * v0 -> x * u1 + ((1 - x) * u0 + 0) <= h * p * (y * v1 + ((1 - y) * v0 + 0)).
Proof.
  intros X Y XY YX U1 U0 I1 I0.
  assert (T1 : x * u1 <= (h * y) * (p * v1)) by (apply mult_le; lra).
  assert (T0 : (1 - x) * u0 <= (1 - y) * (h * p * v0)) by (apply mult_le; lra). lra.
Qed.

(* World b at t against the other world at t + D. *)
Lemma shifted A : fair A -> forall b t j,
  chance sparse_vector A (b, (t, j)) <= power h j * chance sparse_vector A (negb b, ((t + D)%Z, j)).
Proof.
  assert (P : forall j, 1 <= power h j) by (intro; apply power_ge_1; auto).
  induction A as [e|p next IH|n w next IH]; intros F b t j.
  - unfold chance. pose proof (P j). destruct e; simpl; lra.
  - cbn [fair] in F. unfold chance in *. cbn [expect]. change (step sparse_vector) with watch_step. destruct j as [|j].
    + apply refusal_le. apply (IH None (F None) b t 0%nat).
    + unfold watch_step. destruct (close_pair p) eqn:E.
      * unfold close_pair in E. apply Z.leb_le in E. cbn [qsum fst snd].
        apply branch_le.
        -- apply reach_01.
        -- apply reach_01.
        -- eapply Qle_trans; [apply reach_ratio|]. apply scale_le; [lra|]. apply reach_falls. destruct b; cbn [negb]; lia.
        -- apply reach_falls. destruct b; cbn [negb]; lia.
        -- apply (chance_nonneg sparse_vector (next (Some true)) (F _)).
        -- apply (chance_nonneg sparse_vector (next (Some false)) (F _)).
        -- apply (IH (Some true) (F _) b t j).
        -- apply (IH (Some false) (F _) b t (S j)).
      * apply refusal_le. apply (IH None (F None) b t (S j)).
  - destruct F as (W & T & F). unfold chance in *. cbn [expect]. rewrite <- qsum_scale. apply qsum_le. intros i _.
    specialize (IH i (F i) b t j).
    setoid_replace (power h j * (w i * expect sparse_vector (next i) (fun e _ => hit e) (negb b, ((t + D)%Z, j))))
      with (w i * (power h j * expect sparse_vector (next i) (fun e _ => hit e) (negb b, ((t + D)%Z, j)))) by ring.
    apply scale_le; auto.
Qed.

(* What an adversary gets in world b from threshold noise in the window lo, ..., lo + n - 1. *)
Definition from_window (A : adversary sparse_vector) (hits : nat) (b : bool) (threshold lo : Z) (n : nat) : Q :=
  qsum (fun i => rho (lo + Z.of_nat i) * chance sparse_vector A (b, ((threshold + (lo + Z.of_nat i))%Z, hits))) (seq 0 n).

Theorem sparse_vector_pure A hits b threshold lo n : fair A ->
  from_window A hits b threshold lo n <= (r * power h hits) * from_window A hits (negb b) threshold (lo + D) n.
Proof.
  intro F. unfold from_window. rewrite <- qsum_scale. apply qsum_le. intros i _.
  pose proof (shifted A F b (threshold + (lo + Z.of_nat i)) hits) as H.
  replace (threshold + (lo + Z.of_nat i) + D)%Z with (threshold + (lo + D + Z.of_nat i))%Z in H by ring.
  pose proof (rho_ratio (lo + Z.of_nat i)) as R.
  replace (lo + Z.of_nat i + D)%Z with (lo + D + Z.of_nat i)%Z in R by ring.
  pose proof (chance_nonneg sparse_vector A F (b, ((threshold + (lo + Z.of_nat i))%Z, hits))).
  eapply Qle_trans; [apply mult_le; [apply rho_nonneg|auto|exact R|exact H]|]. lra.
Qed.
End SparseVector.

(* ---------- the geometric law ---------- *)
(* Discrete Laplace noise with ratio q = e^(-1/scale): the weight of z is (1 - q)/(1 + q) q^|z|. *)
Section Geometric.
Variable q : Q.
Hypothesis q_01 : 0 < q /\ q < 1.

Definition geometric (z : Z) : Q := (1 - q) / (1 + q) * power q (Z.abs_nat z).
(* The probability that it is at least z. *)
Definition geometric_reach (z : Z) : Q :=
  if (1 <=? z)%Z then power q (Z.to_nat z) / (1 + q) else 1 - power q (Z.to_nat (1 - z)) / (1 + q).

Lemma power_q n : 0 <= power q n /\ power q n <= 1.
Proof.
  induction n as [|n [I1 I2]]; simpl; [lra|]. split; [apply Qmult_le_0_compat; lra|].
  apply Qle_trans with (1 * 1); [apply mult_le; lra|lra].
Qed.

Theorem geometric_tails z : geometric_reach z - geometric_reach (z + 1) == geometric z.
Proof.
  unfold geometric_reach, geometric. destruct (Z.leb_spec 1 z), (Z.leb_spec 1 (z + 1)); try lia.
  - replace (Z.to_nat (z + 1)) with (S (Z.to_nat z)) by lia. replace (Z.abs_nat z) with (Z.to_nat z) by lia. simpl. field. lra.
  - assert (z = 0%Z) by lia. subst z. simpl. field. lra.
  - replace (Z.to_nat (1 - z)) with (S (Z.abs_nat z)) by lia. replace (Z.to_nat (1 - (z + 1))) with (Z.abs_nat z) by lia.
    simpl. field. lra.
Qed.

Lemma geometric_nonneg z : 0 <= geometric z.
Proof.
  unfold geometric. apply Qmult_le_0_compat; [|apply power_q]. apply Qle_shift_div_l; lra.
Qed.

Lemma geometric_reach_01 z : 0 <= geometric_reach z <= 1.
Proof.
  unfold geometric_reach. destruct (1 <=? z)%Z.
  - pose proof (power_q (Z.to_nat z)). split; [apply Qle_shift_div_l; lra|apply Qle_shift_div_r; lra].
  - pose proof (power_q (Z.to_nat (1 - z))).
    assert (0 <= power q (Z.to_nat (1 - z)) / (1 + q)) by (apply Qle_shift_div_l; lra).
    assert (power q (Z.to_nat (1 - z)) / (1 + q) <= 1) by (apply Qle_shift_div_r; lra). lra.
Qed.

Lemma geometric_reach_falls z z' : (z <= z')%Z -> geometric_reach z' <= geometric_reach z.
Proof.
  intro H. replace z' with (z + Z.of_nat (Z.to_nat (z' - z)))%Z by lia.
  induction (Z.to_nat (z' - z)) as [|n IH]; [replace (z + Z.of_nat 0)%Z with z by lia; lra|].
  pose proof (geometric_tails (z + Z.of_nat n)) as T. pose proof (geometric_nonneg (z + Z.of_nat n)).
  replace (z + Z.of_nat n + 1)%Z with (z + Z.of_nat (S n))%Z in T by lia. lra.
Qed.

(* One step to the side costs a factor of q. *)
Theorem geometric_ratio z : q * geometric z <= geometric (z + 1) /\ q * geometric z <= geometric (z - 1).
Proof.
  assert (P : 0 <= (1 - q) / (1 + q)) by (apply Qle_shift_div_l; lra).
  assert (W : forall m n : nat, (n <= S m)%nat -> q * ((1 - q) / (1 + q) * power q m) <= (1 - q) / (1 + q) * power q n).
  { intros m n H. setoid_replace (q * ((1 - q) / (1 + q) * power q m)) with ((1 - q) / (1 + q) * power q (S m)) by (simpl; ring).
    apply scale_le; auto. replace (S m) with (n + (S m - n))%nat by lia. rewrite power_add.
    pose proof (power_q n). pose proof (power_q (S m - n)). apply Qle_trans with (power q n * 1); [apply scale_le; lra|lra]. }
  unfold geometric. split; apply W; lia.
Qed.

Theorem geometric_reach_ratio z : q * geometric_reach z <= geometric_reach (z + 1).
Proof.
  unfold geometric_reach. destruct (Z.leb_spec 1 z), (Z.leb_spec 1 (z + 1)); try lia.
  - replace (Z.to_nat (z + 1)) with (S (Z.to_nat z)) by lia. simpl.
    setoid_replace (q * (power q (Z.to_nat z) / (1 + q))) with (q * power q (Z.to_nat z) / (1 + q)) by (field; lra). lra.
  - assert (z = 0%Z) by lia. subst z. simpl.
    setoid_replace (q * (1 - q * 1 / (1 + q))) with (q * 1 / (1 + q)) by (field; lra). lra.
  - replace (Z.to_nat (1 - z)) with (S (Z.to_nat (1 - (z + 1)))) by lia. cbn [power].
    assert (G : forall x, 0 <= x /\ x <= 1 -> q * (1 - q * x / (1 + q)) <= 1 - x / (1 + q)); [|apply G; apply power_q].
    intros x X. assert (E : q * (1 - q * x / (1 + q)) == q - q * q * (x / (1 + q))) by (field; lra). rewrite E.
    assert (Y : x / (1 + q) <= 1 / (1 + q)) by (apply Qmult_le_compat_r; [lra|]; apply Qinv_le_0_compat; lra).
    assert (Z1 : 1 / (1 + q) * (1 + q) == 1) by (field; lra). set (i := 1 / (1 + q)) in *. set (y := x / (1 + q)) in *.
    assert ((1 - q * q) * y <= (1 - q * q) * i) by (apply scale_le; nra).
    assert ((1 - q * q) * i == 1 - q) by (setoid_replace ((1 - q * q) * i) with ((1 - q) * (i * (1 + q))) by ring; rewrite Z1; ring).
    lra.
Qed.

(* All but 2 q^(n+1)/(1+q) of the weight lies in the window -n, ..., n. *)
Theorem geometric_window n :
  qsum (fun i => geometric (- Z.of_nat n + Z.of_nat i)) (seq 0 (2 * n + 1)) == 1 - 2 * power q (S n) / (1 + q).
Proof.
  assert (T : forall k lo, qsum (fun i => geometric (lo + Z.of_nat i)) (seq 0 k) == geometric_reach lo - geometric_reach (lo + Z.of_nat k)).
  { induction k as [|k IH]; intro lo; [simpl; rewrite Z.add_0_r; ring|].
    rewrite seq_S, qsum_app, IH. cbn [qsum plus]. rewrite <- (geometric_tails (lo + Z.of_nat k)).
    replace (lo + Z.of_nat k + 1)%Z with (lo + Z.of_nat (S k))%Z by lia. ring. }
  rewrite T. unfold geometric_reach.
  destruct (Z.leb_spec 1 (- Z.of_nat n)); [lia|]. destruct (Z.leb_spec 1 (- Z.of_nat n + Z.of_nat (2 * n + 1))); [|lia].
  replace (Z.to_nat (1 - - Z.of_nat n)) with (S n) by lia.
  replace (Z.to_nat (- Z.of_nat n + Z.of_nat (2 * n + 1))) with (S n) by lia. field. lra.
Qed.

(* D steps cost q^D. *)
Lemma steps (f : Z -> Q) : (forall z, q * f z <= f (z + 1)%Z) -> forall n z, power q n * f z <= f (z + Z.of_nat n)%Z.
Proof.
  intros H n. induction n as [|n IH]; intro z; [simpl; rewrite Z.add_0_r; lra|].
  apply Qle_trans with (q * f (z + Z.of_nat n)%Z).
  - cbn [power]. rewrite <- Qmult_assoc. apply scale_le; [lra|auto].
  - replace (z + Z.of_nat (S n))%Z with (z + Z.of_nat n + 1)%Z by lia. apply H.
Qed.
End Geometric.

(* The sparse vector with geometric noise: e^e1 = q1^-D pays for the threshold, and h = q2^-2D for every True. *)
Theorem sparse_vector_geometric (D hits : nat) (q1 q2 : Q) (H1 : 0 < q1 /\ q1 < 1) (H2 : 0 < q2 /\ q2 < 1) :
  let M := sparse_vector (Z.of_nat D) (geometric_reach q2) (geometric_reach_01 q2 H2) in
  let bound := / power q1 D * power (/ power q2 (2 * D)) hits in
  forall (A : adversary M) b threshold lo n, fair A ->
  from_window (Z.of_nat D) (geometric_reach q2) (geometric_reach_01 q2 H2) (geometric q1) A hits b threshold lo n <=
  bound * from_window (Z.of_nat D) (geometric_reach q2) (geometric_reach_01 q2 H2) (geometric q1) A hits (negb b) threshold (lo + Z.of_nat D) n.
Proof.
  intros M bound A b threshold lo n F.
  assert (P : forall q k, 0 < q /\ q < 1 -> 0 < power q k /\ power q k <= 1).
  { intros q k Hq. split; [|apply power_q; auto]. induction k; simpl; [lra|]. apply Qmult_lt_0_compat; tauto. }
  assert (I : forall x y z, 0 < x -> x * y <= z -> y <= / x * z).
  { intros x y z Hx H. setoid_replace y with (/ x * (x * y)) by (field; lra). apply scale_le; auto.
    apply Qinv_le_0_compat. lra. }
  destruct (P q1 D H1), (P q2 (2 * D)%nat H2).
  apply (sparse_vector_pure (Z.of_nat D) (geometric_reach q2) (geometric_reach_01 q2 H2) (geometric_reach_falls q2 H2)
    (/ power q2 (2 * D))); auto.
  - apply Qle_trans with (/ power q2 (2 * D) * power q2 (2 * D)); [setoid_replace (/ power q2 (2 * D) * power q2 (2 * D)) with 1 by (field; lra); lra|].
    rewrite <- (Qmult_1_r (/ power q2 (2 * D))) at 2. apply scale_le; auto. apply Qinv_le_0_compat. lra.
  - intro z. apply I; auto. replace (2 * Z.of_nat D)%Z with (Z.of_nat (2 * D)) by lia.
    apply steps; [exact H2|]. apply geometric_reach_ratio; auto.
  - intro z. apply geometric_nonneg; auto.
  - intro z. apply I; auto. apply steps; [exact H1|]. intro z'. apply geometric_ratio; auto.
Qed.
