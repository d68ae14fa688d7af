(* Machines, adversaries, and when two worlds are within (epsilon, delta).

   A *machine* has a hidden state. It receives messages and answers each with coins of its own. An *adversary* chooses
   every message by all earlier answers, with coins and a memory of its own. `within c d` says that for every adversary
   and every event of its view, P0(event) <= c P1(event) + d, where c stands for e^epsilon. *)
Require Import sums.
Open Scope Q_scope.

Record machine := Machine {
  state : Type;
  message : Type;
  answer : Type;
  same_answer : forall x y : answer, {x = y} + {x <> y};
  step : state -> message -> list (Q * (state * answer)); (* outcomes: a probability, the next state, the answer *)
  step_nonneg : forall s m o, In o (step s m) -> 0 <= fst o;
  step_total : forall s m, qsum fst (step s m) == 1 }.

(* A strategy sends messages, tosses coins (n outcomes, the i-th with probability w i), and returns something in the end.
   It may depend on everything that it has seen, since each answer has its own continuation. *)
Inductive strategy (Msg Ans Out : Type) : Type :=
| Return (x : Out)
| Send (m : Msg) (next : Ans -> strategy Msg Ans Out)
| Toss (n : nat) (w : nat -> Q) (next : nat -> strategy Msg Ans Out).
Arguments Return {Msg Ans Out}.
Arguments Send {Msg Ans Out}.
Arguments Toss {Msg Ans Out}.

(* The coins are coins: no negative probability, and they sum to 1. *)
Fixpoint fair {Msg Ans Out} (t : strategy Msg Ans Out) : Prop :=
  match t with
  | Return _ => True
  | Send _ next => forall a, fair (next a)
  | Toss n w next => (forall i, 0 <= w i) /\ qsum w (seq 0 n) == 1 /\ forall i, fair (next i)
  end.

(* The mean of f over the result and the machine's last state, when a strategy runs against a machine in state s. *)
Fixpoint expect (M : machine) {Out} (t : strategy (message M) (answer M) Out) (f : Out -> state M -> Q) (s : state M) : Q :=
  match t with
  | Return x => f x s
  | Send m next => qsum (fun o => fst o * expect M (next (snd (snd o))) f (fst (snd o))) (step M s m)
  | Toss n w next => qsum (fun i => w i * expect M (next i) f s) (seq 0 n)
  end.

(* An adversary returns whether its view lies in the event. *)
Definition adversary (M : machine) := strategy (message M) (answer M) bool.
Definition hit (b : bool) : Q := if b then 1 else 0.
Definition chance (M : machine) (A : adversary M) (s : state M) : Q := expect M A (fun b _ => hit b) s.

Definition within (M : machine) (c d : Q) (s0 s1 : state M) : Prop :=
  forall A : adversary M, fair A -> chance M A s0 <= c * chance M A s1 + d.

(* (epsilon, delta)-privacy with c = e^epsilon: the worlds are within (c, d) in both directions. *)
Definition private (M : machine) (c d : Q) (s0 s1 : state M) : Prop := within M c d s0 s1 /\ within M c d s1 s0.

Lemma private_sym M c d s0 s1 : private M c d s0 s1 -> private M c d s1 s0.
Proof. intros []; split; auto. Qed.

Lemma chance_nonneg M (A : adversary M) : fair A -> forall s, 0 <= chance M A s.
Proof.
  unfold chance. induction A as [b|m next IH|n w next IH]; intros F s; simpl in *.
  - destruct b; simpl; lra.
  - apply qsum_nonneg. intros o Ho. apply Qmult_le_0_compat; [eapply step_nonneg; eauto|auto].
  - destruct F as (W & _ & F). apply qsum_nonneg. intros i _. apply Qmult_le_0_compat; auto.
Qed.

Lemma chance_le_1 M (A : adversary M) : fair A -> forall s, chance M A s <= 1.
Proof.
  unfold chance. induction A as [b|m next IH|n w next IH]; intros F s; simpl in *.
  - destruct b; simpl; lra.
  - rewrite <- (step_total M s m). apply qsum_le. intros o Ho.
    rewrite <- (Qmult_1_r (fst o)) at 2. apply scale_le; [eapply step_nonneg; eauto|auto].
  - destruct F as (W & T & F). rewrite <- T. apply qsum_le. intros i _.
    rewrite <- (Qmult_1_r (w i)) at 2. apply scale_le; auto.
Qed.

(* ---------- histories and their law ---------- *)
Notation history M := (list (message M * answer M)).

(* The probability that a machine in state s answers as in h, given the messages in h. *)
Fixpoint law (M : machine) (s : state M) (h : history M) : Q :=
  match h with
  | [] => 1
  | (m, a) :: r =>
      qsum (fun o => if same_answer M (snd (snd o)) a then fst o * law M (fst (snd o)) r else 0) (step M s m)
  end.

Lemma law_nonneg M h : forall s, 0 <= law M s h.
Proof.
  induction h as [|[m a] r IH]; intro s; simpl; [lra|].
  apply qsum_nonneg. intros o Ho. destruct (same_answer _ _ _); [|lra].
  apply Qmult_le_0_compat; [eapply step_nonneg; eauto|auto].
Qed.

(* A behaviour is a function of histories. `weigh` is what an adversary gets out of one, summed over answers in L. *)
Fixpoint weigh {Msg Ans} (L : list Ans) (A : strategy Msg Ans bool) (F : list (Msg * Ans) -> Q) : Q :=
  match A with
  | Return b => hit b * F []
  | Send m next => qsum (fun a => weigh L (next a) (fun r => F ((m, a) :: r))) L
  | Toss n w next => qsum (fun i => w i * weigh L (next i) F) (seq 0 n)
  end.

Section Weigh.
Context {Msg Ans : Type} (L : list Ans).
Implicit Types (A : strategy Msg Ans bool).

Lemma weigh_ext A : forall F G, (forall r, F r == G r) -> weigh L A F == weigh L A G.
Proof.
  induction A as [b|m next IH|n w next IH]; intros F G H; simpl.
  - rewrite H. reflexivity.
  - apply qsum_ext. intros a _. apply IH. auto.
  - apply qsum_ext. intros i _. rewrite (IH i F G) by auto. reflexivity.
Qed.

Lemma weigh_zero A : weigh L A (fun _ => 0) == 0.
Proof.
  induction A as [b|m next IH|n w next IH]; simpl.
  - ring.
  - apply qsum_zeros. auto.
  - apply qsum_zeros. intros i _. rewrite IH. ring.
Qed.

Lemma weigh_scale c A : forall F, weigh L A (fun r => c * F r) == c * weigh L A F.
Proof.
  induction A as [b|m next IH|n w next IH]; intros F; simpl.
  - ring.
  - rewrite <- qsum_scale. apply qsum_ext. intros a _. apply IH.
  - rewrite <- qsum_scale. apply qsum_ext. intros i _. rewrite IH. ring.
Qed.

Lemma weigh_plus A : forall F G, weigh L A (fun r => F r + G r) == weigh L A F + weigh L A G.
Proof.
  induction A as [b|m next IH|n w next IH]; intros F G; simpl.
  - ring.
  - rewrite <- qsum_plus. apply qsum_ext. intros a _. apply (IH a (fun r => F ((m, a) :: r)) (fun r => G ((m, a) :: r))).
  - rewrite <- qsum_plus. apply qsum_ext. intros i _. rewrite IH. ring.
Qed.

Lemma weigh_sum {X} (l : list X) A : forall (F : X -> list (Msg * Ans) -> Q),
  weigh L A (fun r => qsum (fun x => F x r) l) == qsum (fun x => weigh L A (F x)) l.
Proof.
  intros F. induction l as [|x l IH]; simpl.
  - apply weigh_zero.
  - rewrite weigh_plus, IH. reflexivity.
Qed.

Lemma weigh_le A : fair A -> forall F G, (forall r, F r <= G r) -> weigh L A F <= weigh L A G.
Proof.
  induction A as [b|m next IH|n w next IH]; intros D F G H; simpl in *.
  - apply scale_le; [destruct b; simpl; lra|auto].
  - apply qsum_le. intros a _. apply IH; auto.
  - destruct D as (W & _ & D). apply qsum_le. intros i _. apply scale_le; auto.
Qed.
End Weigh.

(* The answers that an adversary can get to see. There may be infinitely many answers, but it reaches finitely many. *)
Fixpoint reached (M : machine) (A : adversary M) (s : state M) : list (answer M) :=
  match A with
  | Return _ => []
  | Send m next => flat_map (fun o => snd (snd o) :: reached M (next (snd (snd o))) (fst (snd o))) (step M s m)
  | Toss n w next => flat_map (fun i => reached M (next i) s) (seq 0 n)
  end.

(* Running a machine against an adversary is weighing its law. *)
Lemma chance_weigh M L (A : adversary M) : NoDup L ->
  forall s, incl (reached M A s) L -> chance M A s == weigh L A (law M s).
Proof.
  intros N. unfold chance. induction A as [b|m next IH|n w next IH]; intros s H; simpl in *.
  - ring.
  - transitivity (qsum (fun o : Q * (state M * answer M) => qsum (fun a => if same_answer M (snd (snd o)) a
        then fst o * weigh L (next a) (law M (fst (snd o))) else 0) L) (step M s m)).
    { apply qsum_ext. intros o Ho.
      assert (Hr : incl (snd (snd o) :: reached M (next (snd (snd o))) (fst (snd o))) L).
      { intros a Ha. apply H. apply in_flat_map. exists o. auto. }
      rewrite (qsum_pick (same_answer M) (fun a => fst o * weigh L (next a) (law M (fst (snd o))))).
      - rewrite IH; [reflexivity|]. intros a Ha. apply Hr. right. auto.
      - auto.
      - apply Hr. left. auto. }
    rewrite qsum_swap. apply qsum_ext. intros a _.
    rewrite (weigh_sum L (step M s m) (next a) (fun o r => if same_answer M (snd (snd o)) a then fst o * law M (fst (snd o)) r else 0)).
    apply qsum_ext. intros o _. destruct (same_answer M (snd (snd o)) a).
    + rewrite (weigh_scale L (fst o)). reflexivity.
    + symmetry. apply weigh_zero.
  - apply qsum_ext. intros i Hi. rewrite IH; [reflexivity|].
    intros a Ha. apply H. apply in_flat_map. exists i. auto.
Qed.

(* Pure privacy is a statement about single histories. *)
Theorem pure_by_histories M c s0 s1 : 0 <= c -> (forall h, law M s0 h <= c * law M s1 h) -> within M c 0 s0 s1.
Proof.
  intros Hc H A F.
  set (L := nodup (same_answer M) (reached M A s0 ++ reached M A s1)).
  assert (N : NoDup L) by apply NoDup_nodup.
  rewrite (chance_weigh M L A N s0), (chance_weigh M L A N s1).
  - rewrite Qplus_0_r, <- weigh_scale. apply weigh_le; auto.
  - intros a Ha. apply nodup_In, in_or_app. auto.
  - intros a Ha. apply nodup_In, in_or_app. auto.
Qed.

(* The adversary that sends the messages of h and looks whether the answers are those of h. *)
Fixpoint expecting (M : machine) (h : history M) : adversary M :=
  match h with
  | [] => Return true
  | (m, a) :: r => Send m (fun b => if same_answer M b a then expecting M r else Return false)
  end.

Lemma expecting_fair M h : fair (expecting M h).
Proof. induction h as [|[m a] r IH]; simpl; auto. intro b. destruct (same_answer M b a); simpl; auto. Qed.

Lemma chance_expecting M h : forall s, chance M (expecting M h) s == law M s h.
Proof.
  unfold chance. induction h as [|[m a] r IH]; intro s; simpl; [reflexivity|].
  apply qsum_ext. intros o _. destruct (same_answer M (snd (snd o)) a); [rewrite IH; reflexivity|simpl; ring].
Qed.

Theorem histories_of_pure M c s0 s1 : within M c 0 s0 s1 -> forall h, law M s0 h <= c * law M s1 h.
Proof. intros H h. rewrite <- !chance_expecting. specialize (H _ (expecting_fair M h)). lra. Qed.

(* The deltas and growths of a claim may be rounded up. *)
Theorem weaker M c d c' d' s0 s1 : c <= c' -> d <= d' -> private M c d s0 s1 -> private M c' d' s0 s1.
Proof.
  intros Hc Hd [H K]. split; intros A F.
  - pose proof (H A F). pose proof (chance_nonneg M A F s1).
    assert (c * chance M A s1 <= c' * chance M A s1) by (apply Qmult_le_compat_r; auto). lra.
  - pose proof (K A F). pose proof (chance_nonneg M A F s0).
    assert (c * chance M A s0 <= c' * chance M A s0) by (apply Qmult_le_compat_r; auto). lra.
Qed.

(* ---------- adversaries with a memory of their own ---------- *)
(* A player has a hidden memory. In each round it draws, with coins, its next memory and the message it sends, or stops. *)
Record player (Msg Ans : Type) := Player {
  memory : Type;
  move : memory -> list (Q * (memory * option Msg));
  hear : memory -> Ans -> memory;
  move_nonneg : forall h o, In o (move h) -> 0 <= fst o;
  move_total : forall h, qsum fst (move h) == 1 }.
Arguments memory {Msg Ans}.
Arguments move {Msg Ans}.
Arguments hear {Msg Ans}.

(* The probability that its memory lies in an event after at most n rounds. Its memory may hold all that it has seen. *)
Fixpoint play (M : machine) (P : player (message M) (answer M)) (event : memory P -> bool) (n : nat) (h : memory P) (s : state M) : Q :=
  match n with
  | O => hit (event h)
  | S n => qsum (fun o => fst o * match snd (snd o) with
      | None => hit (event (fst (snd o)))
      | Some m => qsum (fun r => fst r * play M P event n (hear P (fst (snd o)) (snd (snd r))) (fst (snd r))) (step M s m)
      end) (move P h)
  end.

Fixpoint unrolled {Msg Ans} (P : player Msg Ans) (event : memory P -> bool) (n : nat) (h : memory P) : strategy Msg Ans bool :=
  match n with
  | O => Return (event h)
  | S n => Toss (length (move P h)) (fun i => fst (nth i (move P h) (0, (h, None))))
      (fun i => let o := nth i (move P h) (0, (h, None)) in
        match snd (snd o) with
        | None => Return (event (fst (snd o)))
        | Some m => Send m (fun a => unrolled P event n (hear P (fst (snd o)) a))
        end)
  end.

Lemma unrolled_fair {Msg Ans} (P : player Msg Ans) event n : forall h, fair (unrolled P event n h).
Proof.
  induction n as [|n IH]; intro h; simpl; [auto|]. repeat split.
  - intro i. destruct (nth_in_or_default i (move P h) (0, (h, None))) as [I| ->]; [eapply move_nonneg; eauto|simpl; lra].
  - rewrite (qsum_seq_nth fst). apply move_total.
  - intro i. destruct (snd (snd (nth i (move P h) (0, (h, None))))); simpl; auto.
Qed.

(* So a claim holds against players with memory, coins and any number of rounds. *)
Theorem players_are_adversaries M c d s0 s1 : within M c d s0 s1 ->
  forall P event n h, play M P event n h s0 <= c * play M P event n h s1 + d.
Proof.
  intros H P event n h.
  assert (E : forall n h s, play M P event n h s == chance M (unrolled P event n h) s).
  { unfold chance. clear. induction n as [|n IH]; intros h s; simpl; [reflexivity|].
    set (f := fun o : Q * (memory P * option (message M)) => fst o * expect M match snd (snd o) with
        | None => Return (event (fst (snd o)))
        | Some m => Send m (fun a => unrolled P event n (hear P (fst (snd o)) a)) end (fun b _ => hit b) s).
    symmetry. etransitivity; [exact (qsum_seq_nth f (0, (h, None)) (move P h))|]. apply qsum_ext. intros [w [h' [m|]]] _; unfold f; simpl; [|reflexivity].
    apply Qmult_comp; [reflexivity|]. apply qsum_ext. intros r _. rewrite IH. reflexivity. }
  rewrite !E. apply H. apply unrolled_fair.
Qed.

(* ---------- machines that halt ---------- *)
(* A machine that may halt, as a machine that says so to every later message. *)
Record halting := Halting {
  h_state : Type; h_message : Type; h_answer : Type;
  h_same : forall x y : h_answer, {x = y} + {x <> y};
  h_step : h_state -> h_message -> list (Q * (option h_state * h_answer));
  h_nonneg : forall s m o, In o (h_step s m) -> 0 <= fst o;
  h_total : forall s m, qsum fst (h_step s m) == 1 }.

Definition option_dec {X} (same : forall x y : X, {x = y} + {x <> y}) : forall x y : option X, {x = y} + {x <> y}.
Proof. decide equality. Defined.

Definition completed_step (H : halting) (s : option (h_state H)) (m : h_message H) : list (Q * (option (h_state H) * option (h_answer H))) :=
  match s with
  | None => [(1, (None, None))]
  | Some s => map (fun o => (fst o, (fst (snd o), Some (snd (snd o))))) (h_step H s m)
  end.

Definition completed (H : halting) : machine.
Proof.
  refine (Machine (option (h_state H)) (h_message H) (option (h_answer H)) (option_dec (h_same H)) (completed_step H) _ _).
  - intros [s|] m o; simpl.
    + rewrite in_map_iff. intros [x [<- Hx]]. simpl. eapply h_nonneg; eauto.
    + intros [<-|[]]. simpl. lra.
  - intros [s|] m; simpl; [|ring]. rewrite qsum_map. simpl. rewrite <- (h_total H s m). reflexivity.
Defined.
