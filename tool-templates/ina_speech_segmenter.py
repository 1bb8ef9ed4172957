"""INA's speech segmenter for one recording: a table of what is heard when.

  python ina_speech_segmenter.py IN OUT
  python ina_speech_segmenter.py IN OUT START STOP LOUDNESS  one piece of it, as --cut says
  python ina_speech_segmenter.py --cut IN OUT PIECES SECONDS so many pieces, or pieces of that length; a table
  python ina_speech_segmenter.py --merge OUT TABLE...        the tables of all pieces, in order, as one
  python ina_speech_segmenter.py --serve ANSWER_SERVICE.PY   a worker that keeps its models, started by a pilot

IN is whatever ffmpeg reads. OUT gets one header line (label, start, stop; parted by tabs, in seconds) and one line
per segment. It appears whole or not at all. Exit: 0 done, 1 the segmenter failed, 2 wrong use or unreadable input.
Runs with the Python that tests/media/install makes, or any that has inaSpeechSegmenter 0.6.8.
"""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

# As the library has it: energies of windows of 25 ms, one each 10 ms, and results in steps of two.
RATE, WINDOW, SHIFT, EMPHASIS = 16000, 400, 160, 0.97
FRAMES_A_SECOND = 50
SHORTEST_SILENCE = 15  # frames of 20 ms
# What lies around a piece is heard too: where a silence begins depends on how it goes on.
AROUND = 2  # seconds
HEADER = "label\tstart\tstop"
# The frames of a piece end this much before the piece does, at most; the next one begins there.
SEAM = 0.1  # seconds


def fail(code, message):
    print(f"ina_speech_segmenter: {message}", file=sys.stderr)
    sys.exit(code)


def silence_the_libraries():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore", FutureWarning)  # its own libraries call numpy in old ways


def load():
    """The segmenter with its models in memory, and silent."""
    silence_the_libraries()
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
    write_lines(path, [HEADER] + [f"{label}\t{start:.2f}\t{stop:.2f}" for label, start, stop in segments])


def write_lines(path, lines):
    aside = f"{path}.part-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in lines)
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


@contextlib.contextmanager
def louder_than(loudness):
    """A piece is silent where the whole recording is: what counts as silence is a share of the whole's loudness."""
    from inaSpeechSegmenter import segmenter as library

    def energy(loge, ratio=0.03):
        activity = library.pred2logemission(loge > loudness + library.np.log(ratio))
        return library.viterbi_decoding(activity, library.log_trans_exp(150, cost0=-5))

    of_the_library, library._energy_activity = library._energy_activity, energy
    try:
        yield
    finally:
        library._energy_activity = of_the_library


def energies(recording):
    """The logarithm of each frame's energy, as the library takes it, of a recording of any length: a minute at a time."""
    import numpy as np
    from inaSpeechSegmenter import sidekit_mfcc as library

    command = [
        "ffmpeg",
        "-nostdin",
        "-v",
        "error",
        "-i",
        f"file:{recording}",
        "-ar",
        str(RATE),
        "-ac",
        "1",
        "-f",
        "s16le",
        "-",
    ]
    found, kept = [], np.empty(0, np.float32)
    with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as ffmpeg:
        for sound in iter(lambda: ffmpeg.stdout.read(2 * 60 * RATE), b""):
            kept = np.concatenate((kept, np.frombuffer(sound, "<i2").astype(np.float32) / 32768))
            if len(kept) < WINDOW:
                continue
            framed = library.framing(kept, WINDOW, win_shift=SHIFT).reshape(-1, WINDOW)
            with np.errstate(divide="ignore"):
                found.append(np.log((library.pre_emphasis(framed, EMPHASIS) ** 2).sum(axis=1)))
            kept = kept[len(framed) * SHIFT :]
        ffmpeg.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if ffmpeg.returncode != 0 or not found:
        fail(2, f"cannot read sound from {recording}: {last_line(said) or 'it has none'}")
    return np.concatenate(found)


def cut(recording, table, pieces, seconds):
    """Within silences of the whole recording, near equal pieces; a piece is longer where there is none."""
    import numpy as np
    from inaSpeechSegmenter import segmenter as library

    loge = energies(recording)
    audible = loge[np.isfinite(loge)]
    loudness = float(np.mean(audible)) if len(audible) else 0.0
    frames = len(loge) // 2
    pieces = pieces or max(1, round(frames / (seconds * FRAMES_A_SECOND)))
    cuts = set()
    if pieces > 1 and len(audible):
        # In frames of the whole, which so are those of a piece too.
        silences = [
            (start, stop)
            for value, start, stop in library._binidx2seglist(library._energy_activity(loge)[::2])
            if value == 0
        ]
        middles = [(start + stop) // 2 for start, stop in silences if stop - start >= SHORTEST_SILENCE]
        for number in range(1, pieces):
            target = frames * number / pieces
            nearest = min(middles, key=lambda middle: abs(middle - target), default=0)
            if abs(nearest - target) < frames / pieces / 2 and 0 < nearest < frames:
                cuts.add(nearest)
    bounds = [0, *(frame / FRAMES_A_SECOND for frame in sorted(cuts)), frames / FRAMES_A_SECOND + 1]
    write_lines(
        table, ["start\tstop\tloudness"] + [f"{a:.2f}\t{b:.2f}\t{loudness!r}" for a, b in zip(bounds, bounds[1:])]
    )


def merge(table, parts):
    """What a cut went through is one segment again."""
    segments = []
    for part in parts:
        try:
            with open(part, encoding="utf-8") as f:
                header, *lines = f.read().splitlines()
            if header != HEADER:
                raise ValueError(f"it begins with '{header[:40]}'")
            for line in lines:
                label, start, stop = (
                    kind(word) for kind, word in zip((str, float, float), line.split("\t"), strict=True)
                )
                until = segments[-1][2] if segments else start
                if start < until - SEAM:
                    raise ValueError(
                        f"it begins at {start:.2f} s, where the one before it ends at {until:.2f}: no pieces of one recording"
                    )
                if segments and segments[-1][0] == label and start <= until + SEAM:
                    segments[-1] = (label, segments[-1][1], stop)
                else:
                    segments.append((label, start, stop))
        except (OSError, ValueError) as e:
            fail(2, f"{part} is not the next table of segments: {e}")
    write_table(table, segments)


def segment(segmenter, recording, table, start="0", stop="0", loudness="0"):
    try:
        if float(stop) == 0:
            segments = segmenter(recording)
        else:
            begin, end = float(start), float(stop)
            with louder_than(float(loudness)):
                found = segmenter(recording, start_sec=max(0.0, begin - AROUND), stop_sec=end + AROUND)
            segments = [(label, max(a, begin), min(b, end)) for label, a, b in found if a < end and b > begin]
    except Exception as e:  # the library raises bare exceptions and assertions for input that ffmpeg cannot read
        fail(2, f"cannot segment {recording}: {last_line(e)}")
    write_table(table, segments)


def answer(segmenter, request):
    words = request.argv[2:]
    check(*words[:2])
    segment(segmenter, *words)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--cut"] and len(words) == 5:
        check(*words[1:3])
        silence_the_libraries()
        return cut(words[1], words[2], int(words[3]), float(words[4]))
    if words[:1] == ["--merge"] and len(words) > 2:
        return merge(words[1], words[2:])
    if words[:1] == ["--serve"] and len(words) == 2:
        spec = importlib.util.spec_from_file_location("answer_service", words[1])
        answer_service = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(answer_service)
        return answer_service.serve(load, answer)
    if len(words) not in (2, 5):
        fail(2, "usage: ina_speech_segmenter.py IN OUT [START STOP LOUDNESS]")
    check(*words[:2])
    segment(load(), *words)


if __name__ == "__main__":
    main()
