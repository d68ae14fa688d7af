(* The theorems about the arithmetic of admission: a session under exactly these functions is private.

   Losses are added here as the code adds them, epsilon by epsilon, while the other files multiply odds, c = e^epsilon, which
   is no rational number. So the epsilons are whole multiples of some grain u, which any finite list of rationals has, and g
   stands for e^u: an epsilon of n grains has the odds g^n. The theorems hold for every g >= 1. Budgets are any rationals, and
   sums may be rounded up. *)
Require Import sums machines composite filter approximate arithmetic.
Require Import ZArith Qround.
Open Scope Q_scope.

Section Grain.
Variables u g : Q.
Hypothesis u_pos : 0 < u.
Hypothesis g_ge_1 : 1 <= g.

Definition grains (x : Q) : nat := Z.to_nat (Qfloor (x / u)).
Definition of_grains (n : nat) : Q := inject_Z (Z.of_nat n) * u.
Definition odds_of (x : Q) : Q := power g (grains x).

Lemma grains_le x y : x <= y -> (grains x <= grains y)%nat.
Proof.
  intro H. unfold grains.
  assert (L : (Qfloor (x / u) <= Qfloor (y / u))%Z).
  { apply Qfloor_resp_le. apply Qmult_le_compat_r; auto. apply Qinv_le_0_compat. lra. }
  lia.
Qed.

Lemma grains_add x n : 0 <= x -> grains (x + of_grains n) = (grains x + n)%nat.
Proof.
  intro H. unfold grains, of_grains.
  assert (E : (x + inject_Z (Z.of_nat n) * u) / u == x / u + inject_Z (Z.of_nat n)) by (field; lra).
  rewrite (Qfloor_comp _ _ E).
  assert (F : Qfloor (x / u + inject_Z (Z.of_nat n)) = (Qfloor (x / u) + Z.of_nat n)%Z).
  { set (y := x / u). apply Z.le_antisymm.
    - assert (L : inject_Z (Qfloor (y + inject_Z (Z.of_nat n))) < inject_Z (Qfloor y + 1 + Z.of_nat n)).
      { eapply Qle_lt_trans; [apply Qfloor_le|]. rewrite inject_Z_plus. apply Qplus_lt_l. apply Qlt_floor. }
      rewrite <- Zlt_Qlt in L. lia.
    - rewrite <- (Qfloor_Z (Qfloor y + Z.of_nat n)). apply Qfloor_resp_le. rewrite inject_Z_plus. apply Qplus_le_l. apply Qfloor_le. }
  rewrite F. assert (P : (0 <= Qfloor (x / u))%Z).
  { assert (Q0 : 0 <= x / u) by (apply Qle_shift_div_l; lra). exact (Qfloor_resp_le 0 (x / u) Q0). }
  lia.
Qed.

Variable up : Q -> Q.
Hypothesis up_up : forall x, x <= up x.

Section Rules.
Variable M : machine.
Variable K : Type.
Variable ini : K -> bool -> state M.
Variable accepts : K -> message M -> bool.
Variable size : K -> nat.  (* how many grains the epsilon of a launch has *)
Definition epsilon_of (k : K) : Q := of_grains (size k).

Lemma of_grains_nonneg n : 0 <= of_grains n.
Proof. unfold of_grains. apply Qmult_le_0_compat; [unfold inject_Z, Qle; simpl; lia|lra]. Qed.

Lemma odds_grow s n total : 0 <= s -> s + of_grains n <= total -> odds_of s * power g n <= odds_of total.
Proof.
  intros Hs H. unfold odds_of. rewrite <- power_add. apply power_le; auto. rewrite <- grains_add by auto. apply grains_le; auto.
Qed.

(* The pure rule. *)
Definition pure_rule (budget : Q) (spent : Q) (k : K) : Q * bool := pure_admit_by up budget spent (epsilon_of k).

Theorem pure_admission budget : 0 <= budget ->
  (forall k, private M (power g (size k)) 0 (ini k true) (ini k false)) ->
  private (session M K ini Q (pure_rule budget) (fun _ => accepts)) (odds_of budget) 0
    (opened M K ini Q (pure_rule budget) (fun _ => accepts) 0 [] true)
    (opened M K ini Q (pure_rule budget) (fun _ => accepts) 0 [] false).
Proof.
  intros HB claims.
  apply (rule_pure M K ini Q (pure_rule budget) (fun _ => accepts) (fun k => power g (size k))) with
    (ok := fun s => 0 <= s /\ s <= budget) (growth := odds_of).
  - intro k. apply power_nonneg. lra.
  - intros s [_ H]. unfold odds_of. apply power_le; auto. apply grains_le; auto.
  - intros s k [H0 H]. unfold pure_rule, pure_admit_by. destruct (Qle_bool _ budget) eqn:E; simpl; [|auto].
    pose proof (up_up (s + epsilon_of k)). pose proof (of_grains_nonneg (size k)). unfold epsilon_of in *. split; to_lra.
  - intros s k [H0 H]. unfold pure_rule, pure_admit_by. destruct (Qle_bool _ budget); simpl; [|discriminate].
    intros _. apply odds_grow; auto.
  - intros s k [H0 H]. unfold pure_rule, pure_admit_by. destruct (Qle_bool _ budget); simpl; [discriminate|]. intros _. lra.
  - exact claims.
  - lra.
  - apply power_nonneg. lra.
  - simpl. apply power_ge_1. auto.
Qed.

(* The basic rule for (epsilon, delta). *)
Variable delta : K -> Q.
Hypothesis delta_01 : forall k, 0 <= delta k <= 1.
Definition basic_rule (budget spent : Q * Q) (k : K) : (Q * Q) * bool := basic_admit_by up budget spent (epsilon_of k, delta k).

Theorem basic_admission budget L : 0 <= fst budget -> 0 <= snd budget -> NoDup L -> (forall a : answer M, In a L) ->
  (forall k, private M (power g (size k)) (delta k) (ini k true) (ini k false)) ->
  private (session M K ini (Q * Q) (basic_rule budget) (fun _ => accepts)) (odds_of (fst budget)) (snd budget)
    (opened M K ini (Q * Q) (basic_rule budget) (fun _ => accepts) (0, 0) [] true)
    (opened M K ini (Q * Q) (basic_rule budget) (fun _ => accepts) (0, 0) [] false).
Proof.
  intros HB HD N C claims.
  apply weaker with (c := odds_of (fst budget)) (d := 1 - (1 - (snd budget - 0)) * 1); [lra|lra|].
  apply (rule_approximate M K ini (Q * Q) (basic_rule budget) (fun _ => accepts) L N C (fun k => power g (size k)) delta) with
    (ok := fun s => 0 <= fst s /\ fst s <= fst budget /\ snd s <= snd budget) (growth := fun s => odds_of (fst s))
    (spare := fun s => snd budget - snd s) (s := (0, 0)) (ks := []).
  - intro k. apply power_ge_1. auto.
  - exact delta_01.
  - exact claims.
  - intros s (_ & H & H'). split; [unfold odds_of; apply power_le; auto; apply grains_le; auto|lra].
  - intros s k (H0 & H & H'). unfold basic_rule, basic_admit_by. cbn [fst snd].
    destruct (Qle_bool _ (fst budget)) eqn:E1; [destruct (Qle_bool _ (snd budget)) eqn:E2|]; simpl; auto.
    pose proof (up_up (fst s + epsilon_of k)). pose proof (of_grains_nonneg (size k)). unfold epsilon_of in *. repeat split; to_lra.
  - intros s k (H0 & H & H'). unfold basic_rule, basic_admit_by. cbn [fst snd].
    destruct (Qle_bool _ (fst budget)) eqn:E1; [destruct (Qle_bool _ (snd budget)) eqn:E2|]; simpl; try discriminate.
    intros _. split; [apply odds_grow; auto|]. pose proof (up_up (snd s + delta k)). lra.
  - intros s k (H0 & H & H'). unfold basic_rule, basic_admit_by. cbn [fst snd].
    destruct (Qle_bool _ (fst budget)) eqn:E1; [destruct (Qle_bool _ (snd budget)) eqn:E2|]; simpl; try discriminate; intros _; split; lra.
  - simpl. split; [lra|auto].
  - simpl. apply power_ge_1. auto.
Qed.
End Rules.
End Grain.

(* The exact sum is one that is kept "rounded up". *)
Theorem exact_sums_are_kept x : x <= Qred x.
Proof. rewrite Qred_correct. lra. Qed.
