"""Runs of trireme, read from Python, and a way to start them. Needs numpy for weights, else nothing.

    from trireme_train import Run, runs, train

    run = train("iris", epochs=30, strategy__name="allreduce", out="runs/a")
    run.summary["test_accuracy"]
    [line["train_loss"] for line in run.metrics()]     # also while it trains
    run.weights()["fc1.weight"]                        # mapped, not copied
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import warnings

__all__ = ["Run", "TriremeError", "runs", "train"]


class TriremeError(Exception):
    """A folder that is no run, a file that cannot be read, or a training that failed."""


def _value(text):
    """A value as trireme writes it into config.toml."""
    if text in ("inf", "-inf", "nan"):
        return float(text)
    return json.loads(text)


def _config(path):
    sections, section = {}, None
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = sections.setdefault(line[1:-1], {})
            continue
        key, equals, text = line.partition("=")
        try:
            if not equals or section is None:
                raise ValueError
            section[key.strip()] = _value(text.strip())
        except ValueError:
            raise TriremeError(f"{path}: line {number} is damaged: {line[:60]}") from None
    return sections


def _json_lines(path):
    """Objects of a .jsonl file. Damaged lines are left out and said once; the last line may still be
    on its way."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    found, damaged = [], []
    for number, line in enumerate(lines[:-1], 1):
        try:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError
            found.append(value)
        except ValueError:
            damaged.append(number)
    if damaged:
        which = ", ".join(map(str, damaged[:5])) + (", ..." if len(damaged) > 5 else "")
        warnings.warn(f"{path}: left out damaged lines: {which}", stacklevel=3)
    return found


class Run:
    """The folder of a run. Reads files when asked, so a run that still trains shows what it has."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not (self.path / "config.toml").is_file():
            raise TriremeError(f"{path} is not a run: it has no config.toml")

    def __repr__(self):
        return f"Run({str(self.path)!r})"

    @property
    def config(self):
        """The recipe with every key: config["trainer"]["epochs"]."""
        return _config(self.path / "config.toml")

    @property
    def summary(self):
        """The end result; None while it trains."""
        path = self.path / "summary.json"
        if not path.exists():
            return None
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(value, dict):
                raise ValueError
            return value
        except ValueError:
            raise TriremeError(f"{path} is damaged") from None

    def metrics(self):
        """One dictionary per epoch so far."""
        return [line for line in _json_lines(self.path / "metrics.jsonl") if line.get("event") == "epoch"]

    @property
    def starts(self):
        """One dictionary per start: command, machine, version, what the program was built of."""
        return _json_lines(self.path / "starts.jsonl")

    def weights(self, which="latest"):
        """Arrays by torchvision's names, mapped from the checkpoint "latest", "best" or "step-...".

        Nothing is copied and nothing can be written. For PyTorch:
        model.load_state_dict({k: torch.tensor(v) for k, v in run.weights().items()})
        """
        import numpy
        path = self.path / "checkpoints" / which / "model.safetensors"
        try:
            size = path.stat().st_size
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if 8 + length > size:
                    raise ValueError
                header = json.loads(file.read(length))
            types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}
            arrays = {}
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                kind = numpy.dtype(types[entry["dtype"]])
                count = int(numpy.prod(entry["shape"], dtype=numpy.int64))
                if begin < 0 or end - begin != count * kind.itemsize or 8 + length + end > size:
                    raise ValueError
                if count == 0:
                    arrays[name] = numpy.zeros(entry["shape"], kind)
                    continue
                arrays[name] = numpy.memmap(path, kind, "r", 8 + length + begin, tuple(entry["shape"]))
            return arrays
        except FileNotFoundError:
            raise TriremeError(f"{self.path} has no checkpoint {which}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TriremeError(f"{path} is damaged") from None


def runs(folder="runs"):
    """All runs of a folder, by name."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise TriremeError(f"{folder} is not a folder")
    return [Run(path) for path in sorted(folder.iterdir()) if (path / "config.toml").is_file()]


def _program():
    beside = pathlib.Path(sys.executable).with_name("trireme")
    found = os.environ.get("TRIREME_PROGRAM") or (str(beside) if beside.exists() else shutil.which("trireme"))
    if not found:
        raise TriremeError("there is no program trireme on PATH; set TRIREME_PROGRAM to its file")
    return found


def train(recipe=None, *, out, **settings):
    """Trains and gives the Run. `epochs=3` is the flag --epochs 3, `deterministic=True` a switch,
    `trainer__patience=5` the key trainer.patience."""
    words = [_program(), "train"] + ([str(recipe)] if recipe else []) + ["--quiet", "--out", str(out)]
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if "__" in name:
            words += ["--set", f"{name.replace('__', '.', 1)}={text}"]
        elif value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value is not False:
            words.append(f"--{name.replace('_', '-')}={text}")
    # In a session of its own, Ctrl-C reaches it once, from here: a second signal would end it at once.
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        try:
            _, errors = child.communicate()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.communicate()  # it writes a checkpoint first
            raise
    if child.returncode != 0:
        lines = [line for line in errors.splitlines() if "error: " in line]
        raise TriremeError(lines[-1] if lines else f"trireme ended with exit code {child.returncode}")
    return Run(out)
