"""The words spoken in one recording, by pocketsphinx and the English model that its package carries.

  python speech_to_text.py IN OUT

IN is a WAV file, 16 bit, 16 kHz, mono. OUT is JSON: {"text": "...", "phrases": [{"text", "start", "stop"}, ...]},
times in seconds. It appears whole or not at all. Exit: 0 done, 1 the recogniser failed, 2 wrong use or unreadable input.
Runs with the Python that tests/media/install makes, or any that has pocketsphinx 5.0.4.
"""

import json
import os
import sys
import wave

RATE = 16000


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
        fail(2, f"{path} has {shape[0]} Hz, {shape[1]} channels, {8 * shape[2]} bits, and needed are {RATE} Hz, "
                f"1 channel, 16 bits; {how_to_convert(path)}")


def recognise(path):
    try:
        from pocketsphinx import AudioFile
    except ImportError as e:
        fail(1, f"{sys.executable} lacks pocketsphinx ({e}); use the Python made by tests/media/install")
    frames_per_second = 100
    phrases = []
    for phrase in AudioFile(audio_file=path, frate=frames_per_second):
        text = str(phrase).strip()
        if text:
            segments = phrase.segments(detailed=True)
            phrases.append({"text": text, "start": segments[0][2] / frames_per_second,
                            "stop": (segments[-1][3] + 1) / frames_per_second})
    return {"text": " ".join(p["text"] for p in phrases), "phrases": phrases}


def write_json(path, content):
    aside = f"{path}.part-{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as f:
            json.dump(content, f, indent=1)
            f.write("\n")
            f.flush()
            os.fsync(f.fileno())
        os.rename(aside, path)
    except OSError as e:
        if os.path.exists(aside):
            os.unlink(aside)
        fail(2, f"cannot write {path}: {e.strerror}")


def main():
    if len(sys.argv) != 3:
        fail(2, "usage: speech_to_text.py IN OUT")
    recording, result = sys.argv[1:]
    if not os.path.isfile(recording):
        fail(2, f"there is no input file {recording}")
    if not os.path.isdir(os.path.dirname(result) or "."):
        fail(2, f"the directory of the output {result} does not exist")
    check_sound(recording)
    try:
        content = recognise(recording)
    except (RuntimeError, ValueError) as e:
        fail(1, f"the recogniser failed on {recording}: {e}")
    write_json(result, content)


if __name__ == "__main__":
    main()
