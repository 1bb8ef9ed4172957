"""The words spoken in one recording, by pocketsphinx and the English model that its package carries.

  python speech_to_text.py IN OUT
  python speech_to_text.py IN OUT START STOP               what begins to be said between the two, in seconds
  python speech_to_text.py --cut IN OUT PIECES SECONDS     so many pieces, or pieces of that length; a table
  python speech_to_text.py --merge OUT TRANSCRIPT...       the transcripts of all pieces, in order, as one
  python speech_to_text.py --serve ANSWER_SERVICE.PY       a worker that keeps its model, started by a pilot

IN is a WAV file, 16 bit, 16 kHz, mono. OUT is JSON: {"text": "...", "phrases": [{"text", "start", "stop"}, ...]},
times in seconds. It appears whole or not at all. Exit: 0 done, 1 the recogniser failed, 2 wrong use or unreadable input.
Runs with the Python that tests/media/install makes, or any that has pocketsphinx 5.0.4.

Each phrase is heard as if it were the first, so that the words are the same whatever was heard before: a piece of a
recording has those of the whole, and a worker those of a process of its own.
"""

import importlib.util
import json
import math
import os
import sys
import wave

RATE = 16000
FRAMES_A_SECOND = 100


def fail(code, message):
    print(f"speech_to_text: {message}", file=sys.stderr)
    sys.exit(code)


def how_to_convert(path):
    return f"convert it first: ffmpeg -i {path} -ar {RATE} -ac 1 -c:a pcm_s16le OUT.wav"


def check_sound(path):
    """pocketsphinx reads any file as if it were raw sound at its rate; what is not would give words from noise."""
    try:
        with wave.open(path, "rb") as sound:
            shape = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
    except (wave.Error, EOFError) as e:
        fail(2, f"{path} is not a WAV file of 16 bit samples ({str(e) or 'it ends early'}); {how_to_convert(path)}")
    except OSError as e:
        fail(2, f"cannot read {path}: {e.strerror}")
    if shape != (RATE, 1, 2):
        fail(
            2,
            f"{path} has {shape[0]} Hz, {shape[1]} channels, {8 * shape[2]} bits, and needed are {RATE} Hz, "
            f"1 channel, 16 bits; {how_to_convert(path)}",
        )


class Recogniser:
    def __init__(self):
        try:
            from pocketsphinx import Decoder, Endpointer
        except ImportError as e:
            fail(1, f"{sys.executable} lacks pocketsphinx ({e}); use the Python made by tests/media/install")
        self._endpointer_of = Endpointer
        self._decoder = Decoder(frate=FRAMES_A_SECOND)

    def phrases(self, path, begin, end):
        """Those that begin in [begin, end) seconds. Where each begins and ends is decided from the beginning of the recording on."""
        found = []
        for start, sound in self._utterances(path, end):
            if start < begin:
                continue
            self._decoder.reinit_feat()
            self._decoder.start_utt()
            self._decoder.process_raw(sound, full_utt=True)
            self._decoder.end_utt()
            hypothesis = self._decoder.hyp()
            text = hypothesis.hypstr.strip() if hypothesis else ""
            if text:
                words = list(self._decoder.seg())
                first = int(start * FRAMES_A_SECOND + 0.5)
                found.append(
                    {
                        "text": text,
                        "start": (first + words[0].start_frame) / FRAMES_A_SECOND,
                        "stop": (first + words[-1].end_frame + 1) / FRAMES_A_SECOND,
                    }
                )
        return found

    def _utterances(self, path, end):
        """(start in seconds, its sound) of what is speech. The last one ends with the recording."""
        endpointer, heard = self._endpointer_of(sample_rate=RATE), []
        with wave.open(path, "rb") as sound:
            is_last = False
            while not is_last and (heard or sound.tell() < end * RATE):
                frame = sound.readframes(endpointer.frame_bytes // 2)
                is_last = len(frame) < endpointer.frame_bytes
                # An end wants a sample at least.
                speech = endpointer.end_stream(frame or bytes(2)) if is_last else endpointer.process(frame)
                if speech is None:
                    continue
                heard.append(speech)
                if not endpointer.in_speech:
                    if endpointer.speech_start < end:
                        yield endpointer.speech_start, b"".join(heard)
                    heard = []


def transcript_of(phrases):
    return {"text": " ".join(phrase["text"] for phrase in phrases), "phrases": phrases}


def write_json(path, content):
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path, text):
    aside = f"{path}.part-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.rename(aside, path)
    except OSError as e:
        if os.path.exists(aside):
            os.unlink(aside)
        fail(2, f"cannot write {path}: {e.strerror}")


def check(recording, result):
    if not os.path.isfile(recording):
        fail(2, f"there is no input file {recording}")
    if not os.path.isdir(os.path.dirname(result) or "."):
        fail(2, f"the directory of the output {result} does not exist")
    check_sound(recording)


def transcribe(recogniser, recording, result, start="0", stop="0"):
    try:
        phrases = recogniser.phrases(recording, float(start), float(stop) or math.inf)
    except (RuntimeError, ValueError, EOFError, wave.Error) as e:
        fail(1, f"the recogniser failed on {recording}: {e}")
    write_json(result, transcript_of(phrases))


def cut(recording, table, pieces, seconds):
    """Anywhere: a piece has what begins in it."""
    with wave.open(recording, "rb") as sound:
        length = sound.getnframes() / RATE
    pieces = pieces or max(1, round(length / seconds))
    bounds = [length * number / pieces for number in range(pieces)] + [length + 1]
    write_text(table, "start\tstop\n" + "".join(f"{a:.3f}\t{b:.3f}\n" for a, b in zip(bounds, bounds[1:])))


def merge(result, parts):
    phrases = []
    for part in parts:
        try:
            with open(part, encoding="utf-8") as f:
                more = json.load(f)["phrases"]
            if phrases and more and more[0]["start"] < phrases[-1]["start"]:
                raise ValueError(
                    f"it begins at {more[0]['start']} s, before what is said in the one before: no pieces of one recording"
                )
            phrases += more
        except (OSError, ValueError, KeyError, TypeError) as e:
            fail(2, f"{part} is not the next transcript: {e}")
    write_json(result, transcript_of(phrases))


def answer(recogniser, request):
    words = request.argv[2:]
    check(*words[:2])
    transcribe(recogniser, *words)


def main():
    words = sys.argv[1:]
    if words[:1] == ["--cut"] and len(words) == 5:
        check(*words[1:3])
        return cut(words[1], words[2], int(words[3]), float(words[4]))
    if words[:1] == ["--merge"] and len(words) > 2:
        return merge(words[1], words[2:])
    if words[:1] == ["--serve"] and len(words) == 2:
        spec = importlib.util.spec_from_file_location("answer_service", words[1])
        answer_service = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(answer_service)
        return answer_service.serve(Recogniser, answer)
    if len(words) not in (2, 4):
        fail(2, "usage: speech_to_text.py IN OUT [START STOP]")
    check(*words[:2])
    transcribe(Recogniser(), *words)


if __name__ == "__main__":
    main()
