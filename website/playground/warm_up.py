"""What `snapshot.mjs` does in Python: import modules, collect files, which are not part of a snapshot, compress."""

import gc
import importlib
import json
import pathlib
import sys
from types import CodeType, FunctionType

sys.path.insert(0, "/packages")


def modules_for(texts):
    """Return the names of all modules that are imported once every result of some texts has been computed."""
    import playground

    for text in json.loads(texts):
        if text.startswith("{"):
            text = json.loads(playground.opened(text))["spec"]
        model = json.loads(playground.numbers(text, ""))["model"]
        for kind in ("figure", "page", "code") if model else ():
            playground.picture(model, kind)
    return json.dumps(sorted(sys.modules))


def prepare(modules, text):
    """Import modules, compute the first results of a text, and clear the memory that is free then."""
    for name in json.loads(modules):
        if name != "__main__":
            importlib.import_module(name)
    import playground

    model = json.loads(playground.numbers(text, ""))["model"]
    playground.picture(model, "figure")
    forget_sources()
    gc.collect()
    for size in [*range(480, 0, -16), 1000, 3000, 10_000, 30_000, 100_000, 300_000]:
        kept = [bytes(size) for _ in range(1_000_000 // (size + 40))]  # zeros need no space when compressed
        del kept
    gc.collect()


def forget_sources():
    """Take from all functions what only tracebacks and `help` show: lines, and documentation."""
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            each.__code__ = without_lines(each.__code__)
            each.__doc__ = None


def without_lines(code):
    consts = [without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.replace(co_linetable=b"", co_consts=tuple(consts))


def data():
    """Return the files of the package that are no modules, as JSON."""
    paths = pathlib.Path("/packages/archspec").rglob("*")
    files = [path for path in paths if path.is_file() and path.suffix not in (".pyc", ".md")]
    return json.dumps({str(path): path.read_text() for path in files})


def compress_file(path):
    """Compress a file; the window holds all of it, since the memory repeats what the program has."""
    from compression.zstd import CompressionParameter, compress

    options = {
        CompressionParameter.compression_level: 19,
        CompressionParameter.window_log: 26,
        CompressionParameter.enable_long_distance_matching: 1,
    }
    file = pathlib.Path(path)
    file.write_bytes(compress(file.read_bytes(), options=options))
