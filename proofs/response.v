(* Randomized response with exposure, and the reduction of every private machine to one of them.

   RR(c, d) on a bit: with probability d it shows the bit, marked as exposed; otherwise it says the bit with odds of c to 1.
   Lyu 2022, Thm 3; Henzinger et al. 2024, Lemma 4.7: a machine that is (epsilon, delta)-private is a machine that sees
   nothing of the world but one answer of RR(e^epsilon, delta). *)
Require Import sums machines reduction approximate.
Open Scope Q_scope.

Inductive response := Exposed (b : bool) | Said (b : bool).
Definition same_response : forall x y : response, {x = y} + {x <> y}.
Proof. decide equality; decide equality. Defined.
Definition responses : list response := [Exposed true; Exposed false; Said true; Said false].

(* The probability of an answer, given the bit. *)
Definition rr (c d : Q) (b : bool) (r : response) : Q :=
  match r with
  | Exposed b' => if Bool.eqb b b' then d else 0
  | Said b' => (1 - d) * (if Bool.eqb b b' then c / (1 + c) else 1 / (1 + c))
  end.

Section Response.
Variables c d : Q.
Hypothesis c_ge_1 : 1 <= c.
Hypothesis d_01 : 0 <= d <= 1.

Lemma rr_nonneg b r : 0 <= rr c d b r.
Proof.
  assert (0 <= c / (1 + c)) by (apply Qle_shift_div_l; lra).
  assert (0 <= 1 / (1 + c)) by (apply Qle_shift_div_l; lra).
  destruct b, r as [[|]|[|]]; simpl; try lra; apply Qmult_le_0_compat; lra.
Qed.

Lemma rr_total b : qsum (rr c d b) responses == 1.
Proof. destruct b; simpl; field; lra. Qed.

(* The mechanism: it answers once. *)
Definition response_step (s : option bool) (_ : unit) : list (Q * (option bool * option response)) :=
  match s with
  | None => [(1, (None, None))]
  | Some b => map (fun r => (rr c d b r, (None, Some r))) responses
  end.

Definition randomized_response : machine.
Proof.
  refine (Machine (option bool) unit (option response) (option_dec same_response) response_step _ _).
  - intros [b|] [] o; unfold response_step.
    + rewrite in_map_iff. intros (r & <- & _). apply rr_nonneg.
    + intros [<-|[]]. simpl. lra.
  - intros [b|] []; unfold response_step; [rewrite qsum_map; apply rr_total|simpl; ring].
Defined.

Theorem randomized_response_private : private randomized_response c d (Some true) (Some false).
Proof.
  assert (P : 0 <= 1 / (1 + c) /\ c / (1 + c) == c * (1 / (1 + c)) /\ 1 / (1 + c) <= c / (1 + c)).
  { assert (0 <= 1 / (1 + c)) by (apply Qle_shift_div_l; lra).
    assert (E : c / (1 + c) == c * (1 / (1 + c))) by (field; lra).
    split; [auto|split; [auto|]]. rewrite E. rewrite <- (Qmult_1_l (1 / (1 + c))) at 1. apply Qmult_le_compat_r; lra. }
  destruct P as (P0 & P1 & P2).
  assert (W : forall b, within randomized_response c d (Some b) (Some (negb b))).
  { intros b A. induction A as [e|m next IH|n w next IH]; intro F; unfold chance in *; cbn [expect fair] in *.
    - assert (0 <= (c - 1) * hit e) by (apply Qmult_le_0_compat; [lra|destruct e; simpl; lra]). lra.
    - destruct m. set (v := fun r => expect randomized_response (next (Some r)) (fun e _ => hit e) None).
      assert (V : forall r, 0 <= v r <= 1).
      { intro r. split; [apply (chance_nonneg randomized_response (next (Some r)))|apply (chance_le_1 randomized_response (next (Some r)))]; auto. }
      assert (E : forall b, qsum (fun o => fst o * expect randomized_response (next (snd (snd o))) (fun e _ => hit e) (fst (snd o)))
        (step randomized_response (Some b) tt) == qsum (fun r => rr c d b r * v r) responses).
      { intro b'. etransitivity; [exact (qsum_map (fun r => (rr c d b' r, (None, Some r))) _ responses)|]. reflexivity. }
      rewrite !E.
      set (x := c / (1 + c)) in *. set (y := 1 / (1 + c)) in *.
      assert (S : forall r, 0 <= (1 - d) * y * v r) by (intro r; apply Qmult_le_0_compat; [apply Qmult_le_0_compat; lra|apply V]).
      assert (T : forall r, 0 <= (1 - d) * (c * x - y) * v r).
      { intro r. apply Qmult_le_0_compat; [apply Qmult_le_0_compat; [lra|]|apply V].
        assert (x <= c * x) by (rewrite <- (Qmult_1_l x) at 1; apply Qmult_le_compat_r; lra). lra. }
      assert (X : forall r, d * v r <= d) by (intro r; rewrite <- (Qmult_1_r d) at 2; apply scale_le; [lra|apply V]).
      assert (Y : forall r, 0 <= c * (d * v r)) by (intro r; apply Qmult_le_0_compat; [lra|apply Qmult_le_0_compat; [lra|apply V]]).
      pose proof (T (Said true)). pose proof (T (Said false)).
      pose proof (X (Exposed true)). pose proof (X (Exposed false)). pose proof (Y (Exposed true)). pose proof (Y (Exposed false)).
      destruct b; cbn [negb qsum responses rr Bool.eqb]; fold x y; rewrite P1 in *; nra.
    - destruct F as (W & T & F).
      apply Qle_trans with (qsum (fun i => w i * (c * expect randomized_response (next i) (fun e _ => hit e) (Some (negb b)) + d)) (seq 0 n)).
      + apply qsum_le. intros i _. apply scale_le; auto.
      + rewrite (qsum_ext _ (fun i => c * (w i * expect randomized_response (next i) (fun e _ => hit e) (Some (negb b))) + w i * d)) by (intros; ring).
        rewrite qsum_plus, qsum_scale, qsum_scale_r, T. lra. }
  split; [apply (W true)|apply (W false)].
Qed.
End Response.

(* ---------- the reduction ---------- *)
Section Reduction.
Variable M : machine.
Variable L : list (answer M).
Hypothesis L_once : NoDup L.
Hypothesis L_all : forall a, In a L.
Variables c d : Q.
Hypothesis c_ge_1 : 1 <= c.
Hypothesis d_01 : 0 <= d <= 1.
Variable start : bool -> state M.
Hypothesis claim : private M c d (start true) (start false).
Variable Ms : list (message M).
Variable n : nat.

Notation behaviour := (list (message M * answer M) -> Q).
Notation inside := (inside Ms n).

Definition hid (b : bool) : behaviour := fun h =>
  let p := hidden L Ms c n d (law M (start true)) (law M (start false)) h in if b then fst p else snd p.

(* What is said when RR says b, and what is said when it exposes b. *)
Definition said (b : bool) : behaviour := fun h =>
  if Qeq_bool d 1 then law M (start b) h
  else if Qeq_bool c 1 then hid b h / (1 - d)
  else (c * hid b h - hid (negb b) h) / ((c - 1) * (1 - d)).
Definition exposed (b : bool) : behaviour := fun h =>
  if Qeq_bool d 0 then law M (start b) h else (law M (start b) h - hid b h) / d.
Definition simulated (r : response) : behaviour := match r with Exposed b => exposed b | Said b => said b end.

Lemma hid_facts :
  (forall b, hid b [] == 1 - d) /\
  (forall b h, inside h -> 0 <= hid b h <= law M (start b) h /\ hid b h <= c * hid (negb b) h) /\
  (forall b h m, inside h -> (length h < n)%nat -> In m Ms -> qsum (fun a => hid b (h ++ [(m, a)])) L == hid b h).
Proof.
  destruct claim as [H1 H0].
  destruct (split_off L Ms c c_ge_1 n d (law M (start true)) (law M (start false))) as (U1 & V1 & P & S);
    try (apply law_consistent; auto); try (apply within_told_apart; auto); try (intro; apply law_nonneg); try reflexivity; try lra.
  split; [|split].
  - intros [|]; [exact U1|exact V1].
  - intros b h I. destruct (P h I) as (A1 & A2 & A3 & A4). destruct b; simpl; auto.
  - intros b h m I Lt Im. destruct (S h m I Lt Im) as [S1 S2]. destruct b; [exact S1|exact S2].
Qed.

Lemma eq_bool_false x y : Qeq_bool x y = false -> ~ x == y.
Proof. intros H E. apply Qeq_bool_iff in E. congruence. Qed.

Ltac cases := unfold simulated, said, exposed; destruct (Qeq_bool d 1) eqn:?, (Qeq_bool c 1) eqn:?, (Qeq_bool d 0) eqn:?;
  repeat match goal with
  | H : Qeq_bool _ _ = true |- _ => apply Qeq_bool_iff in H
  | H : Qeq_bool _ _ = false |- _ => apply eq_bool_false in H
  end.

Lemma div_le x y z : 0 < y -> 0 <= x -> z == x / y -> 0 <= z.
Proof. intros Hy Hx ->. apply Qle_shift_div_l; lra. Qed.

Theorem simulated_process r :
  simulated r [] == 1 /\
  (forall h, inside h -> 0 <= simulated r h) /\
  (forall h m, inside h -> (length h < n)%nat -> In m Ms -> qsum (fun a => simulated r (h ++ [(m, a)])) L == simulated r h).
Proof.
  destruct hid_facts as (H1 & H2 & H3).
  assert (C : forall b h m, qsum (fun a => law M (start b) (h ++ [(m, a)])) L == law M (start b) h)
    by (intros; apply law_consistent; auto).
  assert (NZ : ~ d == 1 -> ~ c == 1 -> 0 < (c - 1) * (1 - d)) by (intros; apply Qmult_lt_0_compat; lra).
  split; [|split].
  - destruct r as [b|b]; cases; cbn [law]; rewrite ?H1; try reflexivity; try lra; try (field; lra);
      field; repeat split; lra.
  - intros h I. destruct r as [b|b]; destruct (H2 b h I) as (A & A'); pose proof (law_nonneg M h (start b)); 
      destruct (H2 (negb b) h I) as (A2 & A2'); rewrite negb_involutive in A2'; cases; try lra;
      try (apply Qle_shift_div_l; [lra|]; lra); try (apply Qle_shift_div_l; [apply NZ; auto|]; lra).
  - intros h m I Lt Im. destruct r as [b|b]; cases; try apply C; unfold Qdiv; rewrite qsum_scale_r;
      try (apply Qmult_comp; [|reflexivity]); rewrite ?qsum_minus, ?qsum_scale, ?C, ?H3 by auto; reflexivity.
Qed.


Lemma never_grows (F : behaviour) :
  (forall h, inside h -> 0 <= F h) ->
  (forall h m, inside h -> (length h < n)%nat -> In m Ms -> qsum (fun a => F (h ++ [(m, a)])) L == F h) ->
  forall h, inside h -> F h <= F [].
Proof.
  intros P S h. induction h as [|[m a] h IH] using rev_ind; intros [Ln In_]; [lra|].
  rewrite app_length in Ln. simpl in Ln. apply Forall_app in In_ as [I1 I2]. inversion_clear I2 as [|? ? Im _].
  assert (Ih : inside h) by (split; [lia|auto]).
  eapply Qle_trans; [|apply IH; auto]. rewrite <- (S h m Ih ltac:(lia) Im).
  assert (Pa : forall a, 0 <= F (h ++ [(m, a)])).
  { intro a'. apply P. split; [rewrite app_length; simpl; lia|]. apply Forall_app. split; auto. }
  rewrite <- (qsum_pick (same_answer M) (fun a => F (h ++ [(m, a)])) a L L_once (L_all a)).
  apply qsum_le. intros a' _. destruct (same_answer M a a'); [lra|apply Pa].
Qed.

Lemma hid_small b h : inside h -> hid b h <= 1 - d /\ law M (start b) h - hid b h <= d.
Proof.
  intro I. destruct hid_facts as (H1 & H2 & H3). split.
  - rewrite <- (H1 b). apply never_grows; auto; intros; apply H2; auto.
  - assert (E : law M (start b) [] - hid b [] == d) by (rewrite H1; simpl; lra).
    rewrite <- E. apply (never_grows (fun h => law M (start b) h - hid b h)); auto.
    + intros x Ix. destruct (H2 b x Ix). lra.
    + intros x m Ix Lt Im. rewrite qsum_minus, H3 by auto. rewrite (law_consistent M L L_once L_all (start b) x m). reflexivity.
Qed.

Lemma exposed_part b h : inside h -> d * exposed b h == law M (start b) h - hid b h.
Proof.
  intro I. destruct hid_facts as (_ & H2 & _). destruct (H2 b h I) as [A _]. destruct (hid_small b h I) as [_ S].
  unfold exposed. destruct (Qeq_bool d 0) eqn:E.
  - apply Qeq_bool_iff in E. rewrite E in *. lra.
  - apply eq_bool_false in E. field. auto.
Qed.

Lemma said_part b h : inside h -> (1 - d) * (c / (1 + c) * said b h + 1 / (1 + c) * said (negb b) h) == hid b h.
Proof.
  intro I. destruct hid_facts as (_ & H2 & _). destruct (H2 b h I) as [A A'], (H2 (negb b) h I) as [F F'].
  rewrite negb_involutive in F'. destruct (hid_small b h I) as [S _].
  unfold said. destruct (Qeq_bool d 1) eqn:E1; [|destruct (Qeq_bool c 1) eqn:E2].
  - apply Qeq_bool_iff in E1. rewrite E1 in *. ring_simplify. lra.
  - apply eq_bool_false in E1. apply Qeq_bool_iff in E2. rewrite E2 in *.
    assert (E : hid (negb b) h == hid b h) by lra. rewrite E. field. lra.
  - apply eq_bool_false in E1. apply eq_bool_false in E2. rewrite negb_involutive. field. repeat split; lra.
Qed.

(* In both worlds, the machine's law is the mixture of four processes by the answer of RR. *)
Theorem reduction_law b h : inside h -> law M (start b) h == qsum (fun r => rr c d b r * simulated r h) responses.
Proof.
  intro I. pose proof (exposed_part b h I) as E. pose proof (said_part b h I) as S.
  destruct b; cbn [qsum responses rr simulated Bool.eqb negb] in *; lra.
Qed.

(* The simulator is a machine: its state is what RR answered, and what has been seen since. Where the processes are not
   defined (other messages, later rounds) it goes on with any machine at all. *)
Definition sim_state : Type := response * list (message M * answer M).
Definition sim_step (s : sim_state) (m : message M) : list (Q * (sim_state * answer M)) :=
  let (r, g) := s in
  let p := fun a => simulated r (g ++ [(m, a)]) in
  if negb (Qle_bool (simulated r g) 0) && forallb (fun a => Qle_bool 0 (p a)) L && Qeq_bool (qsum p L) (simulated r g)
  then map (fun a => (p a / simulated r g, ((r, g ++ [(m, a)]), a))) L
  else map (fun o => (fst o, ((r, g ++ [(m, snd (snd o))]), snd (snd o)))) (step M (start true) m).

Definition simulator : machine.
Proof.
  refine (Machine sim_state (message M) (answer M) (same_answer M) sim_step _ _).
  - intros [r g] m o. unfold sim_step.
    destruct (Qle_bool (simulated r g) 0) eqn:E1; [|destruct (forallb _ L) eqn:E2; [destruct (Qeq_bool _ _) eqn:E3|]]; cbn [negb andb];
      rewrite in_map_iff; intros (x & <- & Hx); cbn [fst]; try (eapply step_nonneg; eauto).
    apply Qle_bool_false in E1. rewrite forallb_forall in E2. specialize (E2 x Hx). apply Qle_bool_iff in E2.
    apply Qle_shift_div_l; lra.
  - intros [r g] m. unfold sim_step.
    destruct (Qle_bool (simulated r g) 0) eqn:E1; [|destruct (forallb _ L) eqn:E2; [destruct (Qeq_bool _ _) eqn:E3|]]; cbn [negb andb];
      rewrite qsum_map; cbn [fst]; try (apply step_total).
    apply Qle_bool_false in E1. apply Qeq_bool_iff in E3. unfold Qdiv. rewrite qsum_scale_r, E3. field. lra.
Defined.

Lemma simulator_law h : forall r g, inside (g ++ h) -> law simulator (r, g) h * simulated r g == simulated r (g ++ h).
Proof.
  induction h as [|[m a] h IH]; intros r g I.
  - rewrite app_nil_r. simpl. ring.
  - destruct (simulated_process r) as (_ & P & S).
    destruct I as [Ln In_]. rewrite app_length in Ln. simpl in Ln. apply Forall_app in In_ as [I1 I2].
    inversion_clear I2 as [|? ? Im I3].
    assert (Ig : inside g) by (split; [lia|auto]).
    assert (Ia : forall a, inside (g ++ [(m, a)])).
    { intro a'. split; [rewrite app_length; simpl; lia|]. apply Forall_app. split; auto. }
    assert (Ih : inside ((g ++ [(m, a)]) ++ h)).
    { split; [rewrite !app_length; simpl; lia|]. apply Forall_app. split; [apply Forall_app; split; auto|auto]. }
    assert (Sg := S g m Ig ltac:(lia) Im).
    assert (E : (g ++ [(m, a)]) ++ h = g ++ (m, a) :: h) by (rewrite <- app_assoc; reflexivity).
    pose proof (IH r (g ++ [(m, a)]) Ih) as IHa. rewrite E in IHa, Ih.
    cbn [law simulator step]. unfold sim_step.
    destruct (Qle_bool (simulated r g) 0) eqn:E1.
    + apply Qle_bool_iff in E1. assert (Z : simulated r g == 0) by (specialize (P g Ig); lra).
      assert (Za : simulated r (g ++ [(m, a)]) == 0).
      { assert (simulated r (g ++ [(m, a)]) <= 0); [|specialize (P _ (Ia a)); lra].
        rewrite <- Z, <- Sg.
        rewrite <- (qsum_pick (same_answer M) (fun a => simulated r (g ++ [(m, a)])) a L L_once (L_all a)).
        apply qsum_le. intros a' _. destruct (same_answer M a a'); [lra|apply P; auto]. }
      etransitivity; [apply Qmult_comp; [reflexivity|exact Z]|]. rewrite <- IHa, Za. ring.
    + apply Qle_bool_false in E1.
      assert (E2 : forallb (fun a => Qle_bool 0 (simulated r (g ++ [(m, a)]))) L = true)
        by (apply forallb_forall; intros a' _; apply Qle_bool_iff; apply P; auto).
      rewrite E2. assert (E3 : Qeq_bool (qsum (fun a => simulated r (g ++ [(m, a)])) L) (simulated r g) = true)
        by (apply Qeq_bool_iff; exact Sg).
      rewrite E3. cbn [negb andb]. rewrite qsum_map. cbn [fst snd same_answer simulator].
      rewrite <- IHa.
      rewrite (qsum_ext _ (fun a' => if same_answer M a a' then simulated r (g ++ [(m, a')]) / simulated r g * law simulator (r, g ++ [(m, a')]) h else 0)).
      * rewrite (qsum_pick (same_answer M) (fun a' => simulated r (g ++ [(m, a')]) / simulated r g * law simulator (r, g ++ [(m, a')]) h) a L L_once (L_all a)).
        field. lra.
      * intros a' _. destruct (same_answer M a' a), (same_answer M a a'); try congruence; reflexivity.
Qed.

(* An adversary that sends messages of Ms alone, at most n of them. *)
Fixpoint limited {Ans Out} (A : strategy (message M) Ans Out) (n : nat) : Prop :=
  match A with
  | Return _ => True
  | Send m next => match n with O => False | S n => In m Ms /\ forall a, limited (next a) n end
  | Toss k w next => forall i, (i < k)%nat -> limited (next i) n
  end.

Lemma weigh_ext_limited (A : adversary M) : forall k (F G : behaviour), limited A k ->
  (forall h, (length h <= k)%nat -> Forall (fun p => In (fst p) Ms) h -> F h == G h) -> weigh L A F == weigh L A G.
Proof.
  induction A as [e|m next IH|j w next IH]; intros k F G H E; cbn [limited weigh] in *.
  - rewrite E; [reflexivity|simpl; lia|constructor].
  - destruct k as [|k]; [contradiction|]. destruct H as [Im H]. apply qsum_ext. intros a _.
    apply (IH a k); auto. intros h Lh Ih. apply E; [simpl; lia|constructor; auto].
  - apply qsum_ext. intros i Hi. apply in_seq in Hi. rewrite (IH i k F G); auto; [reflexivity|]. apply H. lia.
Qed.

(* The reduction: against every such adversary, the machine in world b is the simulator that was given RR's answer on b,
   and the simulator does not know b. *)
Theorem reduction (A : adversary M) b : limited A n ->
  chance M A (start b) == qsum (fun r => rr c d b r * chance simulator A (r, [])) responses.
Proof.
  intro H.
  assert (C : forall s, chance M A s == weigh L A (law M s)) by (intro; apply chance_weigh; auto; intros a _; apply L_all).
  assert (C' : forall s, chance simulator A s == weigh L A (law simulator s))
    by (intro; apply (chance_weigh simulator L A); auto; intros a _; apply L_all).
  rewrite C. rewrite (qsum_ext _ (fun r => weigh L A (fun h => rr c d b r * law simulator (r, []) h)))
    by (intros r _; rewrite weigh_scale, C'; reflexivity).
  rewrite <- (weigh_sum L responses A (fun r h => rr c d b r * law simulator (r, []) h)).
  apply (weigh_ext_limited A n); auto. intros h Lh Ih. rewrite reduction_law by (split; auto).
  apply qsum_ext. intros r _. destruct (simulated_process r) as (S1 & _ & _).
  rewrite <- (simulator_law h r []) by (split; auto). rewrite S1. ring.
Qed.
End Reduction.
