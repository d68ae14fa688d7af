(* One machine of many: the other files speak of one machine with a start state for every mechanism. Here is such a machine
   for any family of machines, of different states, messages and answers. *)
Require Import sums machines.
Require Import Eqdep_dec.
Open Scope Q_scope.

Section Family.
Variable I : Type.
Variable same_name : forall x y : I, {x = y} + {x <> y}.
Variable member : I -> machine.

(* An answer: the member's own, or a refusal of a message that is meant for another. *)
Definition family_state : Type := {i : I & state (member i)}.
Definition family_message : Type := {i : I & message (member i)}.
Definition family_answer : Type := option {i : I & answer (member i)}.

Definition same_family_answer : forall x y : family_answer, {x = y} + {x <> y}.
Proof.
  intros [[i a]|] [[j b]|]; [|right; discriminate|right; discriminate|left; reflexivity].
  destruct (same_name i j) as [->|N].
  - destruct (same_answer (member j) a b) as [->|N]; [left; reflexivity|right].
    intro E. apply N. injection E as E. apply (inj_pair2_eq_dec I same_name (fun i => answer (member i)) j a b E).
  - right. intro E. apply N. injection E as E _. exact E.
Defined.

Definition family_step (s : family_state) (m : family_message) : list (Q * (family_state * family_answer)) :=
  let (i, s) := s in
  let (j, m) := m in
  match same_name j i with
  | left e =>
      map (fun o => (fst o, (existT (fun i => state (member i)) i (fst (snd o)), Some (existT (fun i => answer (member i)) i (snd (snd o))))))
        (step (member i) s (eq_rect j (fun i => message (member i)) m i e))
  | right _ => [(1, (existT (fun i => state (member i)) i s, None))]
  end.

Definition family : machine.
Proof.
  refine (Machine family_state family_message family_answer same_family_answer family_step _ _).
  - intros [i s] [j m] o. unfold family_step. destruct (same_name j i).
    + rewrite in_map_iff. intros (x & <- & Hx). simpl. eapply step_nonneg; eauto.
    + intros [<-|[]]. simpl. lra.
  - intros [i s] [j m]. unfold family_step. destruct (same_name j i); [rewrite qsum_map; apply step_total|simpl; ring].
Defined.

(* The adversary that meets one member. *)
Fixpoint for_member (i : I) (A : adversary family) : adversary (member i) :=
  match A with
  | Return b => Return b
  | Send m next =>
      match same_name (projT1 m) i with
      | left e => Send (eq_rect (projT1 m) (fun i => message (member i)) (projT2 m) i e)
          (fun a => for_member i (next (Some (existT (fun i => answer (member i)) i a))))
      | right _ => for_member i (next None)
      end
  | Toss n w next => Toss n w (fun x => for_member i (next x))
  end.

Lemma for_member_chance i A : (fair A -> fair (for_member i A)) /\
  forall s, chance family A (existT _ i s) == chance (member i) (for_member i A) s.
Proof.
  unfold chance. induction A as [b|[j m] next IH|n w next IH]; cbn [for_member fair expect projT1 projT2].
  - split; [auto|reflexivity].
  - split.
    + intro F. destruct (same_name j i); [cbn [fair]; intro a; apply IH; auto|apply IH; auto].
    + intro s. change (step family) with family_step. unfold family_step. destruct (same_name j i) as [e|e].
      * cbn [expect]. etransitivity; [exact (qsum_map _ _ _)|]. apply qsum_ext. intros o _. cbn [fst snd].
        apply Qmult_comp; [reflexivity|]. apply (proj2 (IH _)).
      * cbn [qsum fst snd]. apply one_outcome. apply (proj2 (IH None)).
  - split.
    + intros (W & T & F). repeat split; auto. intro x. apply IH. auto.
    + intro s. apply qsum_ext. intros x _. apply Qmult_comp; [reflexivity|]. apply (proj2 (IH x)).
Qed.

(* A mechanism keeps its claim as a member of a family. *)
Theorem member_private i c d s0 s1 : private (member i) c d s0 s1 ->
  private family c d (existT _ i s0) (existT _ i s1).
Proof.
  intros [H K]. split; intros A F; rewrite !(proj2 (for_member_chance i A)); [apply H|apply K]; apply for_member_chance; auto.
Qed.
End Family.
