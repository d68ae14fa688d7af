"""A child process that dies where it is told to, and what it had said by then."""

import contextlib
import os
import signal

import counterpoint as cp


def in_child(work, after=None):
    """Run `work(say)` in a forked process: what it said, and whether it lived to the end.

    With `after`, a number of seconds, it is killed from outside once that time has passed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        with contextlib.suppress(BaseException):
            work(lambda *words: os.write(writer, (" ".join(map(str, words)) + "\n").encode()))
            status = 0
        os._exit(status)
    os.close(writer)
    if after is not None:
        signal.sigtimedwait((), after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader) as pipe:
        said = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed after saying {said}"
    return said, not os.WIFSIGNALED(status)


class Killer:
    """Called at every failpoint; at the n-th it ends the process as the power would."""

    def __init__(self, at):
        self.left = at
        self.seen = []

    def __call__(self, point):
        self.seen.append(point)
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


REQUESTS = ("q1", "q2", "q3")
QUESTION = "q4"


def story(place, kill_at=0, **options):
    """A launch, three asks and a question, each by its id; an answer is on the pipe before the next."""

    def work(say):
        killer = Killer(kill_at)
        s = place.session(reached=killer, **options)
        noisy = s.launch(cp.Laplace("0.001", asks=3), id="L")
        say("L", *noisy.path)
        for name in REQUESTS:
            say(name, noisy.ask("apples", id=name))
        say(QUESTION, int(s.ask("apples", epsilon="0.001", id=QUESTION)))
        say("points", *killer.seen)
        s.close()

    return work


def told(lines):
    """What was said, by request; the same request must always have said the same."""
    found = {}
    for name, *words in (line.split(" ") for line in lines):
        if name != "points":
            assert found.setdefault(name, words) == words, f"{name} was answered in two ways"
    return found


def on_record(place):
    """The ids that the database has an answer for, read behind the ledger's back."""
    return {
        name.removeprefix("() ")
        for (name,) in place.sql("SELECT request FROM counterpoint_request WHERE answer IS NOT NULL")
    }


def judge(place, first, second=0, **options):
    """Crash at point `first`, once more at point `second` of the recovery, then let it finish. True if it got there.

    Same answers, one charge, nothing that was said is missing from the record at any time, and the record holds.
    """
    lines, lived = in_child(story(place, first, **options))
    assert set(told(lines)) <= on_record(place) if lines else True, "something was released that is not on record"
    if second:
        again, _ = in_child(story(place, second, **options))
        lines += again
        assert set(told(lines)) <= on_record(place) if lines else True
    again, finished = in_child(story(place, **options))
    assert finished
    answers = told(lines + again)
    assert set(answers) == {"L", *REQUESTS, QUESTION}
    s = place.reopened()
    try:
        assert s.loss == cp.PureDP("0.002"), "one charge for the launch, one for the question"
        assert s._engine.ledger.read((0,)).version == 3 and s.handles[0].halted, "three steps"
        assert s._engine.ledger.read((1,)).version == 1 and s.handles[1].halted, "one step"
        assert not s._engine.ledger.opened()
        s._engine.ledger.verify()
    finally:
        s.close()
    return not lived
