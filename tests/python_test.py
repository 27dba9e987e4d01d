"""Runs read from Python: called with the program by CTest (tests/python)."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
sys.dont_write_bytecode = True
os.environ["TRIREME_PROGRAM"] = PROGRAM
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a new run would take a card

from trireme_train import Run, TriremeError, runs, train  # noqa: E402


class PythonTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def test_trains_and_reads(self):
        run = train("iris", out=self.path / "a", epochs=3, deterministic=True, trainer__shards=2)
        self.assertEqual(run.config["trainer"]["shards"], 2)
        self.assertEqual(run.config["data"]["source"], "iris")
        self.assertEqual([line["epoch"] for line in run.metrics()], [1, 2, 3])
        self.assertEqual(len(run.summary["parameters_sha256"]), 64)
        self.assertIn("compiler", run.starts[0]["build"])
        self.assertEqual([str(each.path) for each in runs(self.path)], [str(self.path / "a")])

    def test_weights_are_those_of_the_checkpoint(self):
        import numpy
        run = train("iris", out=self.path / "a", epochs=1)
        weights = run.weights()
        self.assertEqual(sum(w.size for w in weights.values()), 4 * 30 + 30 + 30 * 20 + 20 + 20 * 3 + 3)
        first = next(iter(weights.values()))
        self.assertEqual(first.dtype, numpy.float32)
        with self.assertRaises(ValueError):
            first[...] = 0
        with self.assertRaisesRegex(TriremeError, "no checkpoint step-7"):
            run.weights("step-7")
        path = self.path / "a/checkpoints/latest/model.safetensors"
        data = path.read_bytes()
        for cut in (4, 20, len(data) - 1):
            path.write_bytes(data[:cut])
            with self.assertRaisesRegex(TriremeError, "damaged"):
                run.weights()

    def test_damaged_lines_are_said_once(self):
        run = train("iris", out=self.path / "a", epochs=2)
        metrics = self.path / "a/metrics.jsonl"
        lines = metrics.read_text().splitlines()
        metrics.write_text(lines[0] + "\n{half\n5\n" + lines[1] + "\n{\"event\": on its way")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertEqual(len(run.metrics()), 2)
        self.assertEqual(len(said), 1)
        self.assertIn("damaged lines: 2, 3", str(said[0].message))
        (self.path / "a/config.toml").write_text("[trainer]\nepochs = \n")
        with self.assertRaisesRegex(TriremeError, "line 2 is damaged"):
            _ = run.config
        (self.path / "a/config.toml").write_bytes(b"[trainer]\nepochs = \xff\n")
        with self.assertRaisesRegex(TriremeError, "line 2 is damaged"):
            _ = run.config
        (self.path / "a/summary.json").write_text("[]")
        with self.assertRaisesRegex(TriremeError, "summary.json is damaged"):
            _ = run.summary

    def test_what_is_interrupted_has_a_checkpoint(self):
        metrics = self.path / "a/metrics.jsonl"

        def interrupt():
            while not (metrics.exists() and metrics.stat().st_size):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            train("iris", out=self.path / "a", epochs=10**6, trainer__checkpoint_epochs=0)
        thread.join()
        self.assertEqual(len(Run(self.path / "a").weights()), 6)

    def test_what_fails_is_said(self):
        with self.assertRaisesRegex(TriremeError, "not a run"):
            Run(self.path)
        with self.assertRaisesRegex(TriremeError, "did you mean iris"):
            train("iriss", out=self.path / "a")
        with self.assertRaisesRegex(TriremeError, "trainer.epochs"):
            train("iris", out=self.path / "a", epochs=-1)
        self.assertEqual(runs(self.path), [])
        with self.assertRaisesRegex(TriremeError, "not a folder"):
            runs(self.path / "none")

    def test_reads_every_built_in_recipe_as_it_was_resolved(self):
        keys = subprocess.run([PROGRAM, "train", "--help-config"], check=True, capture_output=True, text=True)
        run = train("iris", out=self.path / "a", steps=1)
        for section, values in run.config.items():
            self.assertIn(f"[{section}]", keys.stdout)
            for key in values:
                self.assertIn(key, keys.stdout)


unittest.main()
