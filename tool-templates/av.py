"""What the tools for recordings do with ffmpeg, ffprobe, sox and tesseract.

  python av.py probe IN OUT
  python av.py audio IN OUT RATE CHANNELS LEAST
  python av.py resample IN OUT ENDING RATE CHANNELS LEAST
  python av.py transcode IN OUT HEIGHT CRF LEAST
  python av.py trim IN OUT LEVEL
  python av.py sheet IN OUT PICTURES COLUMNS WIDTH
  python av.py scenes IN OUT THRESHOLD LEAST
  python av.py words IN OUT EVERY LANGUAGE LEAST

OUT appears whole or not at all. ffmpeg and sox say that all is well though they have lost the end of a damaged recording, so LEAST is the
share of the recording's length that must have been read (0.98; 0 takes what there is). Exit: 0 done, 1 a program failed or is
missing, 2 wrong use or a recording that is none. Standard library only; HPCBATCH_CPUS is how many threads ffmpeg gets.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PACKAGES = {"ffmpeg": "ffmpeg", "ffprobe": "ffmpeg", "sox": "sox", "tesseract": "tesseract-ocr"}
THREADS = os.environ.get("HPCBATCH_CPUS", "1").split(".")[0] or "1"


def fail(code, message):
    print(f"av: {message}", file=sys.stderr)
    sys.exit(code)


def last_words(text):
    return "; ".join(line.strip() for line in text.strip().splitlines() if line.strip())[-400:] or "it says nothing"


def run(*words, stdin=subprocess.DEVNULL, folder=None):
    """What a program prints; it must succeed."""
    if not shutil.which(words[0]):
        fail(1, f"{words[0]} is not on the PATH; install it (Debian: {PACKAGES[words[0]]})")
    done = subprocess.run(
        [str(word) for word in words],
        stdin=stdin,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    errors = done.stderr.decode("utf-8", "replace")
    if done.returncode != 0:
        fail(1, f"{words[0]} failed (exit {done.returncode}): {last_words(errors)}")
    return done.stdout, errors


def source(path):
    """As ffmpeg opens a file and nothing else, whatever its name or a playlist in it says."""
    return ["-protocol_whitelist", "file", "-i", "file:" + path]


def ffmpeg(*words, folder=None):
    return run("ffmpeg", "-v", "error", "-nostdin", "-y", "-threads", THREADS, *words, folder=folder)


def facts_of(path):
    if not os.path.isfile(path):
        fail(2, f"there is no input file {path}")
    out, _ = run("ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", *source(path))
    facts = json.loads(out)
    if not facts.get("streams"):
        fail(2, f"{path} has neither sound nor pictures")
    return facts


def stream_of(facts, kind):
    """The first of that kind, or nothing; a cover is no picture."""
    for stream in facts["streams"]:
        if stream.get("codec_type") == kind and not stream.get("disposition", {}).get("attached_pic"):
            return stream
    return None


def needed(facts, kind, path):
    return stream_of(facts, kind) or fail(2, f"{path} has no {'sound' if kind == 'audio' else 'moving pictures'}")


def length_of(facts, stream):
    """Of a stream, which may end before the others; 0 where nobody says."""
    spelled = re.fullmatch(r"(\d+):(\d+):(\d+\.?\d*)", stream.get("tags", {}).get("DURATION", ""))
    if spelled and "duration" not in stream:
        return int(spelled[1]) * 3600 + int(spelled[2]) * 60 + float(spelled[3])
    return float(stream.get("duration") or facts["format"].get("duration") or 0)


def sound_in(path):
    """Seconds of the sound in a file that was just written."""
    facts = facts_of(path)
    return length_of(facts, stream_of(facts, "audio") or {})


class Whole:
    """A file that gets its name when it is complete, and is gone otherwise."""

    def __init__(self, path):
        self.path, self.aside = path, f"{path}.part-{os.getpid()}"
        if not os.path.isdir(os.path.dirname(path) or "."):
            fail(2, f"the directory of the output {path} does not exist")

    def __enter__(self):
        return self.aside

    def __exit__(self, kind, *_):
        if kind is None and os.path.isfile(self.aside) and os.path.getsize(self.aside) > 0:
            os.rename(self.aside, self.path)
            return
        if os.path.exists(self.aside):
            os.unlink(self.aside)
        if kind is None:
            fail(1, f"nothing came out for {self.path}")


def check_length(got, wanted, least, path):
    if got < wanted * least - 1:
        fail(
            2,
            f"{path} is {wanted:.1f} s long by its head, and {got:.1f} s of it could be read: it is cut off or damaged; to take what "
            f"there is, say least=0",
        )


def probe(path, out):
    facts = facts_of(path)
    facts["format"]["filename"] = os.path.basename(path)
    with Whole(out) as aside, open(aside, "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")


def audio(path, out, rate, channels, least):
    facts = facts_of(path)
    wanted = length_of(facts, needed(facts, "audio", path))
    with Whole(out) as aside:
        ffmpeg(
            *source(path),
            "-map",
            "0:a:0",
            "-vn",
            "-ar",
            rate,
            "-ac",
            channels,
            "-c:a",
            "pcm_s16le",
            "-f",
            "wav",
            "file:" + aside,
        )
        got = sound_in(aside)
        if got == 0:
            fail(2, f"{path} has no sound that can be read")
        check_length(got, wanted, float(least), path)


def resample(path, out, ending, rate, channels, least):
    facts = facts_of(path)
    wanted = length_of(facts, needed(facts, "audio", path))
    with Whole(out) as aside:
        with open(path, "rb") as sound:  # sox gives names of files a meaning
            run(
                "sox", "-V1", "-t", ending, "-", "-t", "wav", "-b", "16", "-r", rate, "-c", channels, aside, stdin=sound
            )
        got = sound_in(aside)
        if got == 0:
            fail(2, f"{path} has no sound that sox can read")
        check_length(got, wanted, float(least), path)


def transcode(path, out, height, crf, least):
    facts = facts_of(path)
    needed(facts, "video", path)
    with Whole(out) as aside:
        ffmpeg(
            *source(path),
            "-map",
            "0:v:0",
            "-map",
            "0:a:0?",
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-crf",
            crf,
            "-pix_fmt",
            "yuv420p",
            "-vf",
            f"scale=-2:trunc(min({int(height)}\\,ih)/2)*2",
            "-c:a",
            "aac",
            "-b:a",
            "128k",
            "-threads",
            THREADS,
            "-movflags",
            "+faststart",
            "-f",
            "mp4",
            "file:" + aside,
        )
        made = facts_of(aside)
        for kind in ("video", "audio"):
            if stream_of(facts, kind):
                check_length(
                    length_of(made, needed(made, kind, aside)),
                    length_of(facts, stream_of(facts, kind)),
                    float(least),
                    path,
                )


def trim(path, out, level):
    facts = facts_of(path)
    wanted = length_of(facts, needed(facts, "audio", path))
    _, said = run(
        "ffmpeg",
        "-v",
        "info",
        "-nostats",
        "-nostdin",
        *source(path),
        "-map",
        "0:a:0",
        "-af",
        f"silencedetect=noise={float(level)}dB:duration=0.5",
        "-f",
        "null",
        "-",
    )
    starts = [float(text) for text in re.findall(r"silence_start: (-?[0-9.]+)", said)]
    ends = [float(text) for text in re.findall(r"silence_end: (-?[0-9.]+)", said)]
    # A silence that lasts to the end is ended there by newer versions, and by older ones not.
    is_at_end = len(starts) > len(ends) or (ends and ends[-1] >= wanted - 0.1)
    keep = max(starts[-1], 0) if starts and is_at_end else wanted
    if keep <= 0:
        fail(2, f"{path} is silent from beginning to end (below {level} dB)")
    with Whole(out) as aside:
        ffmpeg(*source(path), "-map", "0:a:0", "-t", f"{keep:.3f}", "-c:a", "pcm_s16le", "-f", "wav", "file:" + aside)
        check_length(sound_in(aside), keep, 0.98, path)


def sheet(path, out, pictures, columns, width):
    facts = facts_of(path)
    pictures, columns, seconds = int(pictures), int(columns), length_of(facts, needed(facts, "video", path))
    if pictures < 1 or columns < 1:
        fail(2, "a sheet has one picture and one column at least")
    if seconds <= 0:
        fail(2, f"{path} does not say how long it is; transcode it first")
    columns = min(columns, pictures)
    with tempfile.TemporaryDirectory() as folder, Whole(out) as aside:
        for number in range(pictures):
            # In the middle of its part: the first and the last frame are black more often than not.
            at = seconds * (number + 0.5) / pictures
            frame = f"{number:05}.png"
            ffmpeg(
                "-ss",
                f"{at:.3f}",
                *source(path),
                "-map",
                "0:v:0",
                "-frames:v",
                "1",
                "-vf",
                f"scale={int(width)}:-2",
                frame,
                folder=folder,
            )
            if not os.path.isfile(os.path.join(folder, frame)):
                fail(2, f"{path} has no picture at {at:.1f} s: it is cut off or damaged")
        ffmpeg(
            "-f",
            "image2",
            "-i",
            "%05d.png",
            "-frames:v",
            "1",
            "-update",
            "1",
            "-vf",
            f"tile={columns}x{-(-pictures // columns)}:padding=3:margin=10:color=white",
            "-c:v",
            "png",
            "-f",
            "image2",
            "file:" + aside,
            folder=folder,
        )


def scenes(path, out, threshold, least):
    facts = facts_of(path)
    wanted = length_of(facts, needed(facts, "video", path))
    with tempfile.TemporaryDirectory() as folder:
        progress, _ = ffmpeg(
            *source(path),
            "-filter_complex",
            f"[0:v:0]split[a][b];[a]select=gt(scene\\,{float(threshold)}),metadata=print:file=changes,nullsink;[b]null[all]",
            "-map",
            "[all]",
            "-progress",
            "pipe:1",
            "-f",
            "null",
            "-",
            folder=folder,
        )
        read = [int(text) for text in re.findall(r"out_time_us=(\d+)", progress.decode())]
        with open(os.path.join(folder, "changes"), encoding="utf-8") as f:
            starts = [float(text) for text in re.findall(r"pts_time:([0-9.]+)", f.read())]
    got = read[-1] / 1e6 if read else 0
    check_length(got, wanted, float(least), path)
    bounds = [0.0, *(start for start in starts if 0 < start < got), got]
    shots = [{"type": "shot", "start": round(a, 3), "end": round(b, 3)} for a, b in zip(bounds, bounds[1:])]
    with Whole(out) as aside, open(aside, "w", encoding="utf-8") as f:
        json.dump(
            {"media": {"filename": os.path.basename(path), "duration": round(got, 3)}, "shots": shots}, f, indent=1
        )
        f.write("\n")


def words_in(frame, language, size):
    """The words of one picture with where they are, as shares of its width and height."""
    with open(frame, "rb") as f:
        table, _ = run("tesseract", "stdin", "stdout", "-l", language, "tsv", stdin=f)
    found = []
    for row in table.decode("utf-8", "replace").splitlines()[1:]:
        cells = row.split("\t")
        if len(cells) != 12 or not cells[11].strip() or float(cells[10]) < 0:
            continue
        left, top, width, height = map(int, cells[6:10])
        found.append(
            {
                "text": cells[11],
                "score": {"type": "confidence", "scoreValue": float(cells[10])},
                "vertices": {
                    "xmin": left / size[0],
                    "ymin": top / size[1],
                    "xmax": (left + width) / size[0],
                    "ymax": (top + height) / size[1],
                },
            }
        )
    return found


def words(path, out, every, language, least):
    facts = facts_of(path)
    picture = needed(facts, "video", path)
    every, wanted = float(every), length_of(facts, picture)
    if every <= 0:
        fail(2, "pictures are some time apart: every must be more than 0")
    size = (int(picture["width"]), int(picture["height"]))
    frames = []
    with tempfile.TemporaryDirectory() as folder:
        # The first picture of each span of time, and when it is really shown.
        _, said = run(
            "ffmpeg",
            "-v",
            "info",
            "-nostats",
            "-nostdin",
            "-threads",
            THREADS,
            *source(path),
            "-map",
            "0:v:0",
            "-vf",
            f"select=isnan(prev_selected_t)+gt(floor(t/{every})\\,floor(prev_selected_t/{every})),showinfo,scale={size[0]}:{size[1]}",
            "-vsync",
            "vfr",
            "%07d.png",
            folder=folder,
        )
        starts = [float(text) for text in re.findall(r"Parsed_showinfo.* pts_time: *(-?[0-9.]+)", said)]
        names = sorted(os.listdir(folder))
        if not names or len(names) != len(starts):
            fail(2, f"{path} has no pictures that can be read ({len(names)} of {len(starts)})")
        check_length(starts[-1] + every, wanted, float(least), path)
        for start, name in zip(starts, names):
            found = words_in(os.path.join(folder, name), language, size)
            if found:
                frames.append({"start": round(start, 3), "objects": found})
    media = {
        "filename": os.path.basename(path),
        "frameRate": picture.get("avg_frame_rate"),
        "duration": wanted,
        "resolution": {"width": size[0], "height": size[1]},
    }
    with Whole(out) as aside, open(aside, "w", encoding="utf-8") as f:
        json.dump({"media": media, "frames": frames}, f, indent=1)
        f.write("\n")


VERBS = {verb.__name__: verb for verb in (probe, audio, resample, transcode, trim, sheet, scenes, words)}


def main():
    verb = VERBS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if not verb or len(sys.argv) - 2 != verb.__code__.co_argcount:
        fail(2, "usage:" + __doc__.split("\n\n")[1])
    try:
        verb(*map(os.path.abspath, sys.argv[2:4]), *sys.argv[4:])
    except (OSError, ValueError) as e:
        fail(1, f"{sys.argv[1]} of {sys.argv[2]}: {e}")


if __name__ == "__main__":
    main()
