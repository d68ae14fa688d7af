(* Finite sums and products of rationals.

   Every distribution in these files is a finite list of outcomes with rational weights, so that every probability is a
   finite sum. Nothing here is about privacy. *)
Require Export QArith Lqa List Bool Arith Lia.
Export ListNotations.
Open Scope Q_scope.

Fixpoint qsum {X} (f : X -> Q) (l : list X) : Q :=
  match l with [] => 0 | x :: r => f x + qsum f r end.

Lemma qsum_ext {X} (f g : X -> Q) l : (forall x, In x l -> f x == g x) -> qsum f l == qsum g l.
Proof.
  induction l as [|x l IH]; simpl; intro H; [reflexivity|].
  rewrite (H x) by auto. rewrite IH by auto. reflexivity.
Qed.

Lemma qsum_le {X} (f g : X -> Q) l : (forall x, In x l -> f x <= g x) -> qsum f l <= qsum g l.
Proof.
  induction l as [|x l IH]; simpl; intro H; [lra|].
  pose proof (H x (or_introl eq_refl)). assert (qsum f l <= qsum g l) by auto. lra.
Qed.

Lemma qsum_nonneg {X} (f : X -> Q) l : (forall x, In x l -> 0 <= f x) -> 0 <= qsum f l.
Proof.
  induction l as [|x l IH]; simpl; intro H; [lra|].
  pose proof (H x (or_introl eq_refl)). assert (0 <= qsum f l) by auto. lra.
Qed.

Lemma qsum_scale {X} (f : X -> Q) c l : qsum (fun x => c * f x) l == c * qsum f l.
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma qsum_scale_r {X} (f : X -> Q) c l : qsum (fun x => f x * c) l == qsum f l * c.
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma qsum_zero {X} (l : list X) : qsum (fun _ => 0) l == 0.
Proof. induction l; simpl; [reflexivity|]. rewrite IHl. ring. Qed.

Lemma qsum_zeros {X} (f : X -> Q) l : (forall x, In x l -> f x == 0) -> qsum f l == 0.
Proof. intro H. rewrite (qsum_ext f (fun _ => 0)) by auto. apply qsum_zero. Qed.

Lemma qsum_plus {X} (f g : X -> Q) l : qsum (fun x => f x + g x) l == qsum f l + qsum g l.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma qsum_minus {X} (f g : X -> Q) l : qsum (fun x => f x - g x) l == qsum f l - qsum g l.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma qsum_app {X} (f : X -> Q) l m : qsum f (l ++ m) == qsum f l + qsum f m.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma qsum_map {X Y} (g : X -> Y) (f : Y -> Q) l : qsum f (map g l) == qsum (fun x => f (g x)) l.
Proof. induction l; simpl; [reflexivity|]. rewrite IHl. ring. Qed.

Lemma qsum_flat {X Y} (g : X -> list Y) (f : Y -> Q) l : qsum f (flat_map g l) == qsum (fun x => qsum f (g x)) l.
Proof. induction l; simpl; [reflexivity|]. rewrite qsum_app, IHl. ring. Qed.

Lemma qsum_swap {X Y} (f : X -> Y -> Q) l m :
  qsum (fun x => qsum (f x) m) l == qsum (fun y => qsum (fun x => f x y) l) m.
Proof. induction l; simpl. { rewrite qsum_zero. reflexivity. } rewrite IHl, qsum_plus. reflexivity. Qed.

(* A sum over a list without repetitions, of which one element counts. *)
Lemma qsum_pick {X} (same : forall x y : X, {x = y} + {x <> y}) (f : X -> Q) x l :
  NoDup l -> In x l -> qsum (fun y => if same x y then f y else 0) l == f x.
Proof.
  induction l as [|y l IH]; simpl; intros N H; [destruct H|].
  inversion_clear N as [|? ? Hy Nl]. destruct (same x y) as [->|Hxy].
  - rewrite (qsum_zeros _ l); [ring|]. intros z Hz. destruct (same y z) as [->|]; [contradiction|reflexivity].
  - destruct H as [->|H]; [congruence|]. rewrite IH by auto. ring.
Qed.

(* A sum over the places of a list. *)
Lemma qsum_seq_nth {X} (f : X -> Q) (d : X) l :
  qsum (fun i => f (nth i l d)) (seq 0 (length l)) == qsum f l.
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn [length seq qsum nth].
  rewrite <- seq_shift, qsum_map. cbn [nth]. rewrite IH. reflexivity.
Qed.

(* Products. *)
Fixpoint qprod {X} (f : X -> Q) (l : list X) : Q :=
  match l with [] => 1 | x :: r => f x * qprod f r end.

Lemma qprod_app {X} (f : X -> Q) l m : qprod f (l ++ m) == qprod f l * qprod f m.
Proof. induction l; simpl; [ring|]. rewrite IHl. ring. Qed.

Lemma qprod_nonneg {X} (f : X -> Q) l : (forall x, In x l -> 0 <= f x) -> 0 <= qprod f l.
Proof.
  induction l as [|x l IH]; simpl; intro H; [lra|]. apply Qmult_le_0_compat; auto.
Qed.

Lemma mult_le a b x y : 0 <= a -> 0 <= b -> a <= x -> b <= y -> a * b <= x * y.
Proof.
  intros Ha Hb Hx Hy. apply Qle_trans with (x * b).
  - apply Qmult_le_compat_r; auto.
  - rewrite (Qmult_comm x b), (Qmult_comm x y). apply Qmult_le_compat_r; lra.
Qed.

Lemma scale_le c x y : 0 <= c -> x <= y -> c * x <= c * y.
Proof. intros. rewrite (Qmult_comm c x), (Qmult_comm c y). apply Qmult_le_compat_r; auto. Qed.

(* Whole powers. *)
Fixpoint power (c : Q) (n : nat) : Q := match n with O => 1 | S n => c * power c n end.

Lemma power_nonneg c n : 0 <= c -> 0 <= power c n.
Proof. intro. induction n; simpl; [lra|]. apply Qmult_le_0_compat; auto. Qed.

Lemma power_ge_1 c n : 1 <= c -> 1 <= power c n.
Proof. intro. induction n; simpl; [lra|]. setoid_replace 1 with (1 * 1) by ring. apply mult_le; lra. Qed.

Lemma power_add c m n : power c (m + n) == power c m * power c n.
Proof. induction m; simpl; [ring|]. rewrite IHm. ring. Qed.

Lemma power_le c m n : 1 <= c -> (m <= n)%nat -> power c m <= power c n.
Proof.
  intros Hc H. replace n with (m + (n - m))%nat by lia. rewrite power_add.
  rewrite <- (Qmult_1_r (power c m)) at 1. apply scale_le; [apply power_nonneg; lra|apply power_ge_1; auto].
Qed.

(* The list with another element in the i-th place. *)
Fixpoint update {X} (i : nat) (x : X) (l : list X) : list X :=
  match l, i with [], _ => [] | _ :: r, O => x :: r | y :: r, S i => y :: update i x r end.

Lemma map_update {X Y} (f : X -> Y) i x l : map f (update i x l) = update i (f x) (map f l).
Proof. revert i. induction l; intros [|i]; simpl; f_equal; auto. Qed.

Lemma nth_error_update {X} (l : list X) i j x :
  nth_error (update i x l) j =
  match nth_error l i with
  | Some _ => if Nat.eqb i j then Some x else nth_error l j
  | None => nth_error l j
  end.
Proof.
  revert i j. induction l as [|y l IH]; intros [|i] [|j]; simpl; try reflexivity.
  - destruct (nth_error l i); reflexivity.
  - apply IH.
Qed.

Lemma update_length {X} (l : list X) i x : length (update i x l) = length l.
Proof. revert i. induction l; intros [|i]; simpl; auto. Qed.

Lemma update_same {X} (l : list X) i x : nth_error l i = Some x -> update i x l = l.
Proof. revert i. induction l; intros [|i] H; simpl in *; try congruence. f_equal. auto. Qed.

Lemma update_twice {X} (l : list X) i x y : update i y (update i x l) = update i y l.
Proof. revert i. induction l; intros [|i]; simpl; f_equal; auto. Qed.

Lemma update_other {X} (l : list X) i j x y : i <> j -> update j y (update i x l) = update i x (update j y l).
Proof.
  revert i j. induction l; intros [|i] [|j] H; simpl; try reflexivity; try congruence. f_equal. apply IHl. congruence.
Qed.

Lemma update_app {X} (l m : list X) i x y : nth_error l i = Some y -> update i x (l ++ m) = update i x l ++ m.
Proof. revert i. induction l; intros [|i] H; simpl in *; try congruence. f_equal. auto. Qed.

Lemma nth_error_app_left {X} (l m : list X) i y : nth_error l i = Some y -> nth_error (l ++ m) i = Some y.
Proof. revert i. induction l; intros [|i] H; simpl in *; try congruence. auto. Qed.

Lemma nth_error_map_some {X Y} (f : X -> Y) l i : nth_error (map f l) i = option_map f (nth_error l i).
Proof. revert i. induction l; intros [|i]; simpl; auto. Qed.

Lemma qprod_update {X} (f : X -> Q) l i y : nth_error l i = Some y ->
  exists rest, qprod f l == f y * rest /\ forall x, qprod f (update i x l) == f x * rest.
Proof.
  revert i. induction l as [|z l IH]; intros [|i] H; simpl in H; try discriminate.
  - injection H as ->. exists (qprod f l). split; [|intro x]; simpl; reflexivity.
  - destruct (IH i H) as (rest & E & U). exists (f z * rest). split; [|intro x]; simpl; rewrite ?E, ?U; ring.
Qed.

Lemma forall_update {X} (P : X -> Prop) l i x : Forall P l -> P x -> Forall P (update i x l).
Proof.
  intros H Px. revert i. induction H; intros [|i]; simpl; constructor; auto.
Qed.

Lemma forall_nth {X} (P : X -> Prop) l i x : Forall P l -> nth_error l i = Some x -> P x.
Proof. intros H E. rewrite Forall_forall in H. apply H. eapply nth_error_In; eauto. Qed.

Lemma one_outcome x y : x == y -> 1 * x + 0 == y.
Proof. intros ->. ring. Qed.

Lemma Qle_bool_false x y : Qle_bool x y = false -> y < x.
Proof. intro H. apply Qnot_le_lt. intro L. apply Qle_bool_iff in L. congruence. Qed.

Ltac to_lra := repeat match goal with
  | H : Qle_bool _ _ = true |- _ => apply Qle_bool_iff in H
  | H : Qle_bool _ _ = false |- _ => apply Qle_bool_false in H
  end; try lra.
