"""INA's speech segmenter for one recording: a table of what is heard when.

  python ina_speech_segmenter.py IN OUT
  python ina_speech_segmenter.py --serve ANSWER_SERVICE.PY   a worker that keeps its models, started by a pilot

IN is whatever ffmpeg reads. OUT gets one header line (label, start, stop; parted by tabs, in seconds) and one line
per segment. It appears whole or not at all. Exit: 0 done, 1 the segmenter failed, 2 wrong use or unreadable input.
Runs with the Python that tests/media/install makes, or any that has inaSpeechSegmenter 0.6.8.
"""

import importlib.util
import os
import shutil
import sys
import warnings


def fail(code, message):
    print(f"ina_speech_segmenter: {message}", file=sys.stderr)
    sys.exit(code)


def load():
    """The segmenter with its models in memory, and silent."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore", FutureWarning)  # its own libraries call numpy in old ways
    try:
        import tensorflow
        from inaSpeechSegmenter import Segmenter
    except ImportError as e:
        fail(1, f"{sys.executable} lacks a package of the segmenter ({e}); use the Python made by tests/media/install")
    tensorflow.keras.utils.disable_interactive_logging()
    return Segmenter(vad_engine="smn")


def last_line(error):
    """The library puts all that ffmpeg printed into its errors, as bytes; the reason is the last line."""
    lines = str(error).replace("\\n", "\n").strip("b'\" \n").splitlines()
    return lines[-1] if lines else type(error).__name__


def write_table(path, segments):
    aside = f"{path}.part-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as f:
            f.write("label\tstart\tstop\n")
            for label, start, stop in segments:
                f.write(f"{label}\t{start:.2f}\t{stop:.2f}\n")
            f.flush()
            os.fsync(f.fileno())
        os.rename(aside, path)
    except OSError as e:
        if os.path.exists(aside):
            os.unlink(aside)
        fail(2, f"cannot write {path}: {e.strerror}")


def check(recording, table):
    if not os.path.isfile(recording):
        fail(2, f"there is no input file {recording}")
    if not os.path.isdir(os.path.dirname(table) or "."):
        fail(2, f"the directory of the output {table} does not exist")
    if not shutil.which("ffmpeg"):
        fail(1, "ffmpeg is not on the PATH and the segmenter reads sound through it; install it (Debian: ffmpeg)")


def segment(segmenter, recording, table):
    try:
        segments = segmenter(recording)
    except Exception as e:  # the library raises bare exceptions and assertions for input that ffmpeg cannot read
        fail(2, f"cannot segment {recording}: {last_line(e)}")
    write_table(table, segments)


def answer(segmenter, request):
    recording, table = request.argv[-2:]
    check(recording, table)
    segment(segmenter, recording, table)


def main():
    if len(sys.argv) != 3:
        fail(2, "usage: ina_speech_segmenter.py IN OUT")
    if sys.argv[1] == "--serve":
        spec = importlib.util.spec_from_file_location("answer_service", sys.argv[2])
        answer_service = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(answer_service)
        return answer_service.serve(load, answer)
    check(*sys.argv[1:])
    segment(load(), *sys.argv[1:])


if __name__ == "__main__":
    main()
