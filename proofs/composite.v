(* Many machines at once: what a session runs.

   One machine `M` has a start state for every mechanism that may be launched, in each of two worlds: `ini k true` and
   `ini k false` (families.v makes one such machine of any list of different ones). The composite lets the adversary
   launch mechanisms and ask them in any order. A *gate* decides by public facts alone, its account, whether a request is
   admitted; what it refuses reaches no mechanism. The account may depend on everything that the adversary sees. *)
Require Import sums machines.
Open Scope Q_scope.

Section Composite.
Variable M : machine.
Variable K : Type. (* names of what may be launched: a mechanism, its data in both worlds, its claim *)
Variable ini : K -> bool -> state M.

Inductive request := Launch (k : K) | Ask (i : nat) (m : message M).
Inductive reply := Launched | Refused | Answered (a : answer M).
Definition same_reply : forall x y : reply, {x = y} + {x <> y}.
Proof. decide equality. apply same_answer. Defined.

Variable account : Type.
Variable gate : account -> request -> bool.
Variable next : account -> request -> reply -> account.

(* The state: which world it is, the public account, and the hidden state of every child. *)
Definition together : Type := bool * account * list (state M).

Definition composite_step (s : together) (q : request) : list (Q * (together * reply)) :=
  let '(b, acc, children) := s in
  let refusal := [(1, ((b, next acc q Refused, children), Refused))] in
  if gate acc q then
    match q with
    | Launch k => [(1, ((b, next acc q Launched, children ++ [ini k b]), Launched))]
    | Ask i m =>
        match nth_error children i with
        | None => refusal
        | Some child => map (fun o => let a := Answered (snd (snd o)) in
            (fst o, ((b, next acc q a, update i (fst (snd o)) children), a))) (step M child m)
        end
    end
  else refusal.

Definition composite : machine.
Proof.
  refine (Machine together request reply same_reply composite_step _ _).
  - intros [[b acc] children] q o. unfold composite_step.
    destruct (gate acc q); [destruct q as [k|i m]; [|destruct (nth_error children i)]|].
    + intros [<-|[]]. simpl. lra.
    + rewrite in_map_iff. intros [x [<- Hx]]. simpl. eapply step_nonneg; eauto.
    + intros [<-|[]]. simpl. lra.
    + intros [<-|[]]. simpl. lra.
  - intros [[b acc] children] q. unfold composite_step.
    destruct (gate acc q); [destruct q as [k|i m]; [|destruct (nth_error children i) as [s|]]|]; simpl; try ring.
    rewrite qsum_map. simpl. apply step_total.
Defined.

Notation behaviour := (list (message M * answer M) -> Q).
Definition after (m : message M) (a : answer M) (f : behaviour) : behaviour := fun h => f ((m, a) :: h).

(* The product form: what is public happens as the gate says, and each child contributes its own factor. `born k` is
   the behaviour of a child that is launched, `fs` are those of the children that there are. *)
Fixpoint joint (born : K -> behaviour) (acc : account) (fs : list behaviour) (h : list (request * reply)) : Q :=
  match h with
  | [] => qprod (fun f => f []) fs
  | (q, r) :: h =>
      if gate acc q then
        match q, r with
        | Launch k, Launched => joint born (next acc q r) (fs ++ [born k]) h
        | Ask i m, Answered a =>
            match nth_error fs i with
            | Some f => joint born (next acc q r) (update i (after m a f) fs) h
            | None => 0
            end
        | Ask i m, Refused => match nth_error fs i with Some _ => 0 | None => joint born (next acc q r) fs h end
        | _, _ => 0
        end
      else match r with Refused => joint born (next acc q r) fs h | _ => 0 end
  end.

(* Children that are described by something in X, such as several behaviours at once. *)
Section Described.
Context {X : Type}.
Variable next_x : message M -> answer M -> X -> X.

Lemma joint_ind (P : list X -> Prop) (new : K -> X) (R : account -> list X -> list (request * reply) -> Prop) :
  (forall l k, P l -> P (l ++ [new k])) ->
  (forall l i m a x, P l -> nth_error l i = Some x -> P (update i (next_x m a x) l)) ->
  (forall acc l, P l -> R acc l []) ->
  (forall acc l h k, P l -> gate acc (Launch k) = true ->
     R (next acc (Launch k) Launched) (l ++ [new k]) h -> R acc l ((Launch k, Launched) :: h)) ->
  (forall acc l h i m a x, P l -> gate acc (Ask i m) = true -> nth_error l i = Some x ->
     R (next acc (Ask i m) (Answered a)) (update i (next_x m a x) l) h -> R acc l ((Ask i m, Answered a) :: h)) ->
  (forall acc l h i m, P l -> gate acc (Ask i m) = true -> nth_error l i = None ->
     R (next acc (Ask i m) Refused) l h -> R acc l ((Ask i m, Refused) :: h)) ->
  (forall acc l h q, P l -> gate acc q = false ->
     R (next acc q Refused) l h -> R acc l ((q, Refused) :: h)) ->
  (forall acc l h q r, P l -> (forall born (proj : X -> behaviour), joint born acc (map proj l) ((q, r) :: h) = 0) -> R acc l ((q, r) :: h)) ->
  forall h acc l, P l -> R acc l h.
Proof.
  intros HL HU H0 H1 H2 H3 H4 Hz. induction h as [|[q r] h IH]; intros acc l Hl; [auto|].
  destruct (gate acc q) eqn:G.
  - destruct q as [k|i m], r as [| |a].
    + apply H1; auto.
    + apply Hz; auto. intros. simpl. rewrite G. reflexivity.
    + apply Hz; auto. intros. simpl. rewrite G. reflexivity.
    + apply Hz; auto. intros. simpl. rewrite G. reflexivity.
    + destruct (nth_error l i) as [x|] eqn:E.
      * apply Hz; auto. intros. simpl. rewrite G, nth_error_map_some, E. reflexivity.
      * apply H3; auto.
    + destruct (nth_error l i) as [x|] eqn:E.
      * eapply H2; eauto.
      * apply Hz; auto. intros. simpl. rewrite G, nth_error_map_some, E. reflexivity.
  - destruct r as [| |a].
    + apply Hz; auto. intros. simpl. rewrite G. reflexivity.
    + apply H4; auto.
    + apply Hz; auto. intros. simpl. rewrite G. reflexivity.
Qed.
End Described.

Notation pair := (behaviour * behaviour)%type.
Definition after2 m a (p : pair) : pair := (after m a (fst p), after m a (snd p)).

Ltac unfold_joint := simpl; rewrite ?map_app; repeat match goal with
  | H : gate _ _ = _ |- _ => rewrite H
  | H : nth_error _ _ = _ |- _ => rewrite ?nth_error_map_some, H; simpl
  end.

Lemma joint_le born0 born1 : (forall k x, 0 <= born0 k x <= born1 k x) -> forall h acc l,
  Forall (fun p : pair => forall x, 0 <= fst p x <= snd p x) l ->
  0 <= joint born0 acc (map fst l) h <= joint born1 acc (map snd l) h.
Proof.
  intro H. apply (joint_ind after2 (Forall (fun p : pair => forall x, 0 <= fst p x <= snd p x))
    (fun k => (born0 k, born1 k)) (fun acc l h => 0 <= joint born0 acc (map fst l) h <= joint born1 acc (map snd l) h)).
  - intros l k Hl. apply Forall_app. split; [auto|]. constructor; [exact (H k)|constructor].
  - intros l i m a p Hl E. apply forall_update; auto. pose proof (forall_nth _ _ _ _ Hl E) as Hp.
    intro x. apply Hp.
  - intros acc l Hl. simpl. induction Hl as [|p l Hp Hl IH]; simpl; [lra|].
    specialize (Hp []). split; [apply Qmult_le_0_compat; lra|apply mult_le; lra].
  - intros acc l h k Hl G R. unfold_joint. rewrite !map_app in R. exact R.
  - intros acc l h i m a p Hl G E. intro R. unfold_joint. rewrite !map_update in R. exact R.
  - intros acc l h i m Hl G E. unfold_joint. auto.
  - intros acc l h q Hl G. unfold_joint. auto.
  - intros acc l h q r Hl Z. rewrite !Z. lra.
Qed.

Lemma joint_ext born0 born1 : (forall k x, born0 k x == born1 k x) -> forall h acc l,
  Forall (fun p : pair => forall x, fst p x == snd p x) l ->
  joint born0 acc (map fst l) h == joint born1 acc (map snd l) h.
Proof.
  intro H. apply (joint_ind after2 (Forall (fun p : pair => forall x, fst p x == snd p x))
    (fun k => (born0 k, born1 k)) (fun acc l h => joint born0 acc (map fst l) h == joint born1 acc (map snd l) h)).
  - intros l k Hl. apply Forall_app. split; [auto|]. constructor; [exact (H k)|constructor].
  - intros l i m a p Hl E. apply forall_update; auto. pose proof (forall_nth _ _ _ _ Hl E) as Hp.
    intro x. apply Hp.
  - intros acc l Hl. simpl. induction Hl as [|p l Hp Hl IH]; simpl; [reflexivity|]. rewrite Hp, IH. reflexivity.
  - intros acc l h k Hl G R. unfold_joint. rewrite !map_app in R. exact R.
  - intros acc l h i m a p Hl G E. intro R. unfold_joint. rewrite !map_update in R. exact R.
  - intros acc l h i m Hl G E. unfold_joint. auto.
  - intros acc l h q Hl G. unfold_joint. auto.
  - intros acc l h q r Hl Z. rewrite !Z. reflexivity.
Qed.

Definition times (f g : behaviour) : behaviour := fun x => f x * g x.

Lemma joint_times born0 born1 : forall h acc l,
  joint (fun k => times (born0 k) (born1 k)) acc (map (fun p : pair => times (fst p) (snd p)) l) h ==
  joint born0 acc (map fst l) h * joint born1 acc (map snd l) h.
Proof.
  intros h acc l. revert l. intro l.
  apply (joint_ind after2 (fun _ => True) (fun k => (born0 k, born1 k)) (fun acc l h =>
    joint (fun k => times (born0 k) (born1 k)) acc (map (fun p : pair => times (fst p) (snd p)) l) h ==
    joint born0 acc (map fst l) h * joint born1 acc (map snd l) h)); auto; clear.
  - intros acc l _. simpl. induction l as [|p l IH]; simpl; [ring|]. rewrite IH. unfold times. ring.
  - intros acc l h k _ G R. unfold_joint. rewrite !map_app in R. exact R.
  - intros acc l h i m a p _ G E. intro R. unfold_joint. rewrite !map_update in R. exact R.
  - intros acc l h i m _ G E. unfold_joint. auto.
  - intros acc l h q _ G. unfold_joint. auto.
  - intros acc l h q r _ Z. rewrite !Z. ring.
Qed.

(* A child that is a mixture makes the composite a mixture. *)
Lemma joint_mix {X} born (w : X -> Q) (g : X -> behaviour) (xs : list X) : forall h acc fs i f,
  nth_error fs i = Some f ->
  joint born acc (update i (fun r => qsum (fun x => w x * g x r) xs) fs) h ==
  qsum (fun x => w x * joint born acc (update i (g x) fs) h) xs.
Proof.
  intros h. revert g. induction h as [|[q r] h IH]; intros g acc fs i f E.
  - simpl. destruct (qprod_update (fun f : behaviour => f []) fs i f E) as (rest & _ & U).
    rewrite U, <- qsum_scale_r. apply qsum_ext. intros x _. rewrite U. ring.
  - assert (Z : 0 == qsum (fun x => w x * 0) xs) by (rewrite qsum_zeros; [reflexivity|intros; ring]).
    simpl. destruct (gate acc q) eqn:G.
    + destruct q as [k|j m], r as [| |a]; try exact Z.
      * rewrite <- (update_app _ _ _ _ _ E), (IH g _ _ _ f) by (apply nth_error_app_left; auto).
        apply qsum_ext. intros x _. rewrite (update_app _ _ _ _ _ E). reflexivity.
      * rewrite nth_error_update, E. destruct (Nat.eqb i j) eqn:Eij.
        -- apply Nat.eqb_eq in Eij as ->.
           rewrite (qsum_ext _ (fun _ => 0)); [rewrite qsum_zero; reflexivity|].
           intros x _. rewrite nth_error_update, E, Nat.eqb_refl. ring.
        -- destruct (nth_error fs j) eqn:Ej.
           ++ rewrite (qsum_ext _ (fun _ => 0)); [rewrite qsum_zero; reflexivity|].
              intros x _. rewrite nth_error_update, E, Eij, Ej. ring.
           ++ rewrite (IH g _ _ _ f E). apply qsum_ext. intros x _. rewrite nth_error_update, E, Eij, Ej. reflexivity.
      * rewrite nth_error_update, E. destruct (Nat.eqb i j) eqn:Eij.
        -- apply Nat.eqb_eq in Eij as ->. rewrite update_twice.
           etransitivity; [exact (IH (fun x => after m a (g x)) (next acc (Ask j m) (Answered a)) fs j f E)|].
           apply qsum_ext. intros x _. rewrite nth_error_update, E, Nat.eqb_refl, update_twice. reflexivity.
        -- apply Nat.eqb_neq in Eij. destruct (nth_error fs j) as [f'|] eqn:Ej.
           ++ rewrite update_other by auto.
              rewrite (IH g _ _ _ f) by (rewrite nth_error_update, Ej;
                destruct (Nat.eqb_spec j i); [congruence|auto]).
              apply qsum_ext. intros x _. rewrite nth_error_update, E.
              destruct (Nat.eqb_spec i j); [congruence|]. rewrite Ej, update_other by auto. reflexivity.
           ++ rewrite (qsum_ext _ (fun _ => 0)); [rewrite qsum_zero; reflexivity|].
              intros x _. rewrite nth_error_update, E. destruct (Nat.eqb_spec i j); [congruence|]. rewrite Ej. ring.
    + destruct r; try exact Z. apply (IH g _ _ _ f E).
Qed.

Lemma joint_ext_at born acc fs i f g h : nth_error fs i <> None -> (forall x, f x == g x) ->
  joint born acc (update i f fs) h == joint born acc (update i g fs) h.
Proof.
  intros E H.
  pose proof (joint_ext born born (fun k x => Qeq_refl _) h acc (update i (f, g) (map (fun f => (f, f)) fs))) as P.
  rewrite !map_update, !map_map, !map_id in P. apply P.
  apply forall_update; [|exact H]. apply Forall_forall. intros p Hp. apply in_map_iff in Hp as (x & <- & _). reflexivity.
Qed.

(* The law of the composite is the product form of the laws of its children. *)
Theorem law_composite h : forall b acc children,
  law composite (b, acc, children) h == joint (fun k => law M (ini k b)) acc (map (law M) children) h.
Proof.
  induction h as [|[q r] h IH]; intros b acc children.
  - simpl. induction children as [|s l IHl]; simpl; [reflexivity|]. rewrite <- IHl. ring.
  - cbn [law step composite composite_step joint].
    assert (One : forall (s : together) (r' : reply),
      qsum (fun o : Q * (together * reply) => if same_reply (snd (snd o)) r then fst o * law composite (fst (snd o)) h else 0)
        [(1, (s, r'))] == if same_reply r' r then law composite s h else 0).
    { intros. cbn [qsum fst snd]. destruct (same_reply r' r); ring. }
    cbn [same_answer composite]. destruct (gate acc q).
    + destruct q as [k|i m].
      * rewrite One. destruct r as [| |a]; destruct (same_reply _ _) as [e|e]; try discriminate e; try (exfalso; apply e; reflexivity); try reflexivity.
        rewrite IH, map_app. reflexivity.
      * rewrite nth_error_map_some. destruct (nth_error children i) as [s|] eqn:E; cbn [option_map].
        -- rewrite qsum_map. cbn [fst snd]. destruct r as [| |a].
           ++ apply qsum_zeros. intros o _. destruct (same_reply _ _) as [e|e]; [discriminate e|reflexivity].
           ++ apply qsum_zeros. intros o _. destruct (same_reply _ _) as [e|e]; [discriminate e|reflexivity].
           ++ set (fs := map (law M) children).
              assert (Ef : nth_error fs i = Some (law M s)) by (unfold fs; rewrite nth_error_map_some, E; reflexivity).
              rewrite (joint_ext_at _ _ _ _ (after m a (law M s))
                (fun r => qsum (fun o => (if same_answer M (snd (snd o)) a then fst o else 0) * law M (fst (snd o)) r) (step M s m))).
              ** rewrite (joint_mix _ _ _ _ _ _ _ _ (law M s) Ef). apply qsum_ext. intros o _.
                 destruct (same_reply (Answered (snd (snd o))) (Answered a)) as [e|e], (same_answer M (snd (snd o)) a) as [e'|e']; try congruence.
                 --- rewrite IH. unfold fs. rewrite map_update, e'. reflexivity.
                 --- ring.
              ** rewrite Ef. discriminate.
              ** intro x. unfold after. simpl. apply qsum_ext. intros o _. destruct (same_answer M (snd (snd o)) a); ring.
        -- rewrite One. destruct r as [| |a]; destruct (same_reply _ _) as [e|e]; try discriminate e; try (exfalso; apply e; reflexivity); try reflexivity.
           apply IH.
    + rewrite One. destruct r as [| |a]; destruct (same_reply _ _) as [e|e]; try discriminate e; try (exfalso; apply e; reflexivity); try reflexivity.
      apply IH.
Qed.

(* Pure composition under any gate: if a child's odds on a history are at most `odds k`, and the gate keeps the product
   of the odds within B on every history, then the whole is within B. *)
Theorem composite_within (odds : K -> behaviour) B b acc ks :
  0 <= B ->
  (forall k x, 0 <= odds k x) ->
  (forall k x, law M (ini k b) x <= odds k x * law M (ini k (negb b)) x) ->
  (forall h, joint odds acc (map odds ks) h <= B) ->
  within composite B 0 (b, acc, map (fun k => ini k b) ks) (negb b, acc, map (fun k => ini k (negb b)) ks).
Proof.
  intros HB HO HP HA. apply pure_by_histories; [auto|]. intro h. rewrite !law_composite, !map_map.
  pose (l := map (fun k => (law M (ini k b), times (odds k) (law M (ini k (negb b))))) ks).
  pose proof (joint_le (fun k => law M (ini k b)) (fun k => times (odds k) (law M (ini k (negb b))))
    (fun k x => conj (law_nonneg M x (ini k b)) (HP k x)) h acc l) as LE.
  assert (HF : Forall (fun p : pair => forall x, 0 <= fst p x <= snd p x) l).
  { apply Forall_forall. intros p Hp. apply in_map_iff in Hp as (k & <- & _). intro x. simpl.
    split; [apply law_nonneg|apply HP]. }
  specialize (LE HF). unfold l in LE. rewrite !map_map in LE. cbn [fst snd] in LE.
  pose proof (joint_times odds (fun k => law M (ini k (negb b))) h acc (map (fun k => (odds k, law M (ini k (negb b)))) ks)) as T.
  rewrite !map_map in T. cbn [fst snd] in T. rewrite T in LE.
  pose proof (joint_le (fun k => law M (ini k (negb b))) (fun k => law M (ini k (negb b)))
    (fun k x => conj (law_nonneg M x (ini k (negb b))) (Qle_refl _)) h acc
    (map (fun k => (law M (ini k (negb b)), law M (ini k (negb b)))) ks)) as NN.
  rewrite !map_map in NN. cbn [fst snd] in NN.
  assert (HN : Forall (fun p : pair => forall x, 0 <= fst p x <= snd p x) (map (fun k => (law M (ini k (negb b)), law M (ini k (negb b)))) ks)).
  { apply Forall_forall. intros p Hp. apply in_map_iff in Hp as (k & <- & _). intro x. simpl.
    split; [apply law_nonneg|lra]. }
  specialize (NN HN). specialize (HA h). destruct LE as [_ LE], NN as [NN _].
  eapply Qle_trans; [exact LE|]. apply Qmult_le_compat_r; auto.
Qed.
End Composite.

Arguments Launch {M K}.
Arguments Ask {M K}.
Arguments Launched {M}.
Arguments Refused {M}.
Arguments Answered {M}.
