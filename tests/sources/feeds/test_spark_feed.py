"""Feeding from Spark Structured Streaming: a batch arrives once, also if Spark delivers it again after a crash."""

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.engines import engines
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.engines.spark import SparkOffer
from counterpoint.errors import InvalidParameter, InvalidRequest

SURE = cp.PureDP(10**7)
FIELDS = {"seconds": cp.number(0, 600), "page": cp.category(["home", "shop"])}


def write(folder, number, values):
    """One more file of the folder that is streamed: a micro-batch of its own."""
    pages = ["home" if value % 2 else "elsewhere" for value in values]
    who = [f"user {value % 3}" for value in values]
    folder.mkdir(exist_ok=True)
    table = pa.table({"seconds": [float(value) for value in values], "page": pages, "who": who, "more": pages})
    file = folder / f"{number:03}.parquet"
    pyarrow.parquet.write_table(table, file)
    os.utime(file, (10**9 + number,) * 2)  # Spark takes files by their times, which may be alike


def streamed(folder):
    """The folder as a stream of Spark, one file after the other."""
    reader = engines.spark().readStream.schema("seconds double, page string, who string, more string")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(stream, folder, checkpoint, **options):
    """Feed all that is there now, to the end."""
    query = stream.feed(streamed(folder), checkpoint=str(checkpoint), trigger={"availableNow": True}, **options)
    try:
        query.awaitTermination()
    finally:
        query.stop()


CRASHING = """
import os, sys
from pathlib import Path
from tests.ledger.places import Place
from tests.sources.feeds import test_spark_feed as spark
import counterpoint as cp
from counterpoint.sources.streams.stream import Stream

receive = Stream.receive_stored

def dying(self, rows, step):
    receive(self, rows, step)
    if step.position.startswith("batch 1 "):
        os.kill(os.getpid(), 9)

Stream.receive_stored = dying
home = Path(sys.argv[1])
stream = spark.visits()
with Place("sqlite", home).session(spark.SURE, source=stream):
    spark.run(stream, home / "files", home / "checkpoint")
"""


def visits():
    return cp.Stream(fields=FIELDS, unit="who", per_unit=100)


def done(checkpoint, record):
    """The numbers of the batches of which the checkpoint has this record."""
    return sorted(int(name) for name in os.listdir(checkpoint / record) if name.isdigit())


@pytest.mark.long  # two starts of Spark; after a crash each item arrives once in test_items.py, too
def test_a_batch_that_is_delivered_again_after_a_crash_arrives_once(tmp_path, monkeypatch):
    engines.spark()
    read = SparkOffer.read
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    place = Place("sqlite", tmp_path)
    for number, values in enumerate([range(4), range(4, 9), range(9, 11)]):
        write(files, number, values)
    words = [sys.executable, "-c", CRASHING, str(tmp_path)]
    path = os.pathsep.join(filter(None, sys.path))
    crash = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert crash.returncode == -9, crash.stderr
    assert (done(checkpoint, "offsets"), done(checkpoint, "commits")) == ([0, 1], [0]), "killed between the two"
    stream = visits()
    with place.session(SURE, source=stream) as session:
        assert stream.pin() == 9, "the second batch had arrived"
        monkeypatch.setattr(SparkOffer, "read", lambda self, query: read(self, query)[::-1])  # in another order, too
        run(stream, files, checkpoint)
        monkeypatch.undo()
        assert done(checkpoint, "commits") == [0, 1, 2], "Spark delivered it again"
        arrived = [*range(9), 10, 9]
        assert [item[0] for item in stream.log.items] == arrived, "each item once"
        assert stream.log._owners == [f"user {value % 3}" for value in arrived]
        write(files, 3, range(11, 13))
        run(stream, files, checkpoint)
        assert [item[0] for item in stream.log.items] == [*arrived, 11, 12]
        session._engine.ledger.verify()


def test_another_checkpoint_under_the_same_name_is_refused_before_anything_arrives_twice(tmp_path):
    write(tmp_path / "files", 0, range(5))
    stream = visits()
    run(stream, tmp_path / "files", tmp_path / "checkpoint")
    assert stream.pin() == 5 and stream.log.items[1] == (1, "home") and stream.log.items[2] == (2, None)
    with pytest.raises(Exception, match="began with another checkpoint") as refused:
        run(stream, tmp_path / "files", tmp_path / "other")
    assert "StreamingQueryException" in type(refused.value).__name__ and stream.pin() == 5
    run(stream, tmp_path / "files", tmp_path / "other", name="once more")
    assert stream.pin() == 10, "another name is another source"


def test_a_stream_of_spark_is_refused_by_its_schema_before_it_starts(tmp_path):
    write(tmp_path / "files", 0, range(5))
    frame = streamed(tmp_path / "files")
    with pytest.raises(InvalidParameter, match="is fed with a checkpoint"):
        visits().feed(frame)
    with pytest.raises(InvalidParameter, match="has no column 'age', which is declared"):
        cp.Stream(fields={"age": cp.number(0, 9)}).feed(frame, checkpoint=str(tmp_path))
    with pytest.raises(InvalidParameter, match="cannot name the unit"):
        cp.Stream(fields=FIELDS, unit="seconds", per_unit=1).feed(frame, checkpoint=str(tmp_path))
    with pytest.raises(InvalidRequest, match="not records"):
        cp.Stream().feed(frame, checkpoint=str(tmp_path))
    assert not engines.spark().streams.active
