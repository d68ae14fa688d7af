(* The sensitivity of a counter's binary tree: one item is in one node of each level.

   Node j of level l holds the sum of the items j 2^l, ..., (j + 1) 2^l - 1. If two streams differ in item t alone, by v, then
   all nodes of h levels together differ by at most h v. *)
Require Import sums.
Require Import Qabs.
Open Scope Q_scope.

Definition node (x : nat -> Q) (l j : nat) : Q := qsum (fun i => x (j * 2 ^ l + i)%nat) (seq 0 (2 ^ l)).

Section Tree.
Variables x y : nat -> Q.
Variable t : nat.
Hypothesis elsewhere : forall i, i <> t -> x i = y i.

Lemma node_differs l j : node x l j - node y l j == if Nat.eq_dec (t / 2 ^ l) j then x t - y t else 0.
Proof.
  assert (P : (2 ^ l <> 0)%nat) by (apply Nat.pow_nonzero; lia).
  pose proof (Nat.div_mod t (2 ^ l) P) as D. pose proof (Nat.mod_upper_bound t (2 ^ l) P) as B.
  unfold node. rewrite <- qsum_minus. destruct (Nat.eq_dec (t / 2 ^ l) j) as [<-|N].
  - rewrite (qsum_ext _ (fun i => if Nat.eq_dec (t mod 2 ^ l) i then x t - y t else 0)).
    + apply (qsum_pick Nat.eq_dec (fun _ => x t - y t)); [apply seq_NoDup|apply in_seq; lia].
    + intros i _. destruct (Nat.eq_dec (t mod 2 ^ l) i) as [<-|Ni].
      * replace (t / 2 ^ l * 2 ^ l + t mod 2 ^ l)%nat with t by lia. reflexivity.
      * rewrite elsewhere by lia. ring.
  - apply qsum_zeros. intros i Hi. apply in_seq in Hi. rewrite elsewhere; [ring|].
    intro E. apply N. symmetry. apply (Nat.div_unique t (2 ^ l) j i); lia.
Qed.

(* All nodes that the tree may have: `width l` of them on level l. *)
Theorem tree_sensitivity (width : nat -> nat) levels :
  qsum (fun l => qsum (fun j => Qabs (node x l j - node y l j)) (seq 0 (width l))) (seq 0 levels) <=
  inject_Z (Z.of_nat levels) * Qabs (x t - y t).
Proof.
  assert (O : forall l, qsum (fun j => Qabs (node x l j - node y l j)) (seq 0 (width l)) <= Qabs (x t - y t)).
  { intro l. rewrite (qsum_ext _ (fun j => if Nat.eq_dec (t / 2 ^ l) j then Qabs (x t - y t) else 0)).
    - destruct (in_dec Nat.eq_dec (t / 2 ^ l)%nat (seq 0 (width l))) as [I|I].
      + rewrite (qsum_pick Nat.eq_dec (fun _ => Qabs (x t - y t))); [lra|apply seq_NoDup|auto].
      + rewrite qsum_zeros; [apply Qabs_nonneg|]. intros j Hj. destruct (Nat.eq_dec (t / 2 ^ l) j) as [<-|]; [contradiction|reflexivity].
    - intros j _. rewrite node_differs. destruct (Nat.eq_dec (t / 2 ^ l) j); reflexivity. }
  induction levels as [|n IH]; [cbn [seq qsum]; change (inject_Z (Z.of_nat 0)) with 0; lra|].
  rewrite seq_S, qsum_app, Nat2Z.inj_succ, <- Z.add_1_r, inject_Z_plus, Qmult_plus_distr_l. cbn [qsum plus].
  change (inject_Z 1) with 1. rewrite Qmult_1_l, Qplus_0_r. apply Qplus_le_compat; [exact IH|exact (O n)].
Qed.
End Tree.
