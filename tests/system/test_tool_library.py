"""The tools that come along, each through an engine of this machine: those that Debian has the programs for with real
recordings and images, the others with a program in place of the container that does to files what it does."""

import csv
import json
import os
import pathlib
import subprocess
import tempfile

import pytest
from engine_at_home import EngineAtHome

CONTAINERS = {
    "ina_speech_segmenter_container": ["segments"],
    "whisper": ["transcript", "text", "subtitles"],
    "kaldi": ["transcript", "text"],
    "applause_detection": ["segments"],
    "gentle_forced_alignment": ["alignment"],
}
# What is put in place of apptainer: it knows which folders are bound where, and does what the image is known to do.
FAKE = r"""#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
if words[:2] == ["overlay", "create"]:
    assert int(words[3]) >= 64
    open(words[4], "w").close()
    sys.exit()
assert words.pop(0) == "run"
binds = {}
while words[0].startswith("--"):
    option = words.pop(0)
    if option == "--bind":
        source, target = words.pop(0).split(":")[:2]
        binds[target] = source
    elif option == "--overlay":
        assert os.path.exists(words.pop(0))
image = os.path.basename(words.pop(0))
def real(path):
    for target, source in binds.items():
        if path == target or path.startswith(target + "/"):
            return source + path[len(target):]
    raise SystemExit(f"{path} is not bound")
mode = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mode")).read()
if mode == "fails":
    sys.exit("CUDA error: out of memory")
def write(path, text):
    with open(path, "w") as f:
        f.write("" if mode == "empty" else text)
if image == "inaspeech.sif":
    assert open(real(words[0]), "rb").read(4) == b"RIFF"
    write(real(words[1]), "label\tstart\tstop\nspeech\t0\t1\n")
elif image == "whisper.sif":
    said = dict(zip(words[::2], words[1::2]))
    assert words[6] == "/mnt/in/recording" and said["--model"] == "small" and open(real(words[6]), "rb").read(4) == b"RIFF", words
    for ending, text in (("json", json.dumps({"text": " ".join(words), "segments": [{"id": 0}]})), ("txt", "hello\n"), ("vtt", "WEBVTT\n")):
        write(f"{real(said['--output_dir'])}/recording.{ending}", text)
elif image.startswith("kaldi-pua"):
    folder = real("/audio_in")
    assert os.listdir(folder) == ["recording.wav"]
    for kind, text in (("json", '{"words": []}'), ("txt", "hello")):
        os.makedirs(f"{folder}/transcripts/{kind}")
        write(f"{folder}/transcripts/{kind}/recording.{kind}", text)
elif image == "applause_detection.sif":
    assert words[1] == "1000"
    write(real(words[0]) + "/recording.json", '{"media": {}, "segments": []}')
elif image == "gentle_forced_alignment.sif":
    assert words[2] == "-o" and open(real(words[1])).read() == "hello\n"
    write(real(words[3]), '{"transcript": "hello", "words": [{"word": "hello"}]}')
else:
    raise SystemExit("no such image " + image)
"""


def make(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    """What is read: in a folder and with names that no shell and no option may misread."""
    folder = tmp_path_factory.mktemp("it's a media, folder: 100%d")
    ffmpeg = ["ffmpeg", "-v", "error", "-y"]
    make(
        *ffmpeg,
        "-f",
        "lavfi",
        "-i",
        "color=red:size=320x240:rate=10:duration=4",
        "-f",
        "lavfi",
        "-i",
        "color=blue:size=320x240:rate=10:duration=3",
        "-f",
        "lavfi",
        "-i",
        "color=green:size=320x240:rate=10:duration=3",
        "-f",
        "lavfi",
        "-i",
        "sine=duration=10:sample_rate=22050",
        "-filter_complex",
        "[0][1][2]concat=n=3:v=1:a=0[v]",
        "-map",
        "[v]",
        "-map",
        "3:a",
        folder / "- a film.mp4",
    )
    page = subprocess.run(
        [
            "convert",
            "-size",
            "800x200",
            "xc:white",
            "-pointsize",
            "60",
            "-font",
            "DejaVu-Sans",
            "-gravity",
            "center",
            "-annotate",
            "0",
            "PALE FIRE 1962",
            "png:-",
        ],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    (folder / "- a page [1].png").write_bytes(page)
    plain = tmp_path_factory.mktemp("page") / "page.png"
    plain.write_bytes(page)
    make(*ffmpeg, "-loop", "1", "-framerate", "10", "-t", "4", "-i", plain, "-pix_fmt", "yuv420p", folder / "title.mp4")
    make("sox", "-n", "-r", "22050", "-c", "2", folder / "- tone.wav", "synth", "6", "sine", "440", "pad", "0", "4")
    (folder / "noise.jpg").write_bytes(
        subprocess.run(["convert", "-size", "900x900", "plasma:", "jpg:-"], check=True, stdout=subprocess.PIPE).stdout
    )
    for name in ("- a film.mp4", "- tone.wav", "noise.jpg"):
        whole = (folder / name).read_bytes()
        (folder / f"half {name}").write_bytes(whole[: len(whole) * 6 // 10])
    # Its head comes first, so that what is cut off is not seen by it.
    make(*ffmpeg, "-i", folder / "- a film.mp4", "-c", "copy", "-movflags", "+faststart", folder / "fast.mp4")
    whole = (folder / "fast.mp4").read_bytes()
    (folder / "half film.mp4").write_bytes(whole[: len(whole) * 6 // 10])
    make("sox", "-n", "-r", "8000", folder / "silent.wav", "synth", "3", "sine", "0", "vol", "0")
    (folder / "letter.txt").write_text("hello\n")
    return folder


@pytest.fixture(scope="module")
def engine():
    with EngineAtHome() as home:
        home.ok("engine", "start")
        yield home


@pytest.fixture
def use(engine, tmp_path):
    """Runs a tool and returns the paths of its outputs, or what it said where it failed."""

    def run(tool, inputs, outputs, needs=(), **parameters):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="results, with blanks", dir=tmp_path))
        words = ["--tool", tool, *needs]
        for name, path in inputs.items():
            words += ["--input", f"{name}={path}"]
        paths = {name: folder / name for name in outputs}
        for name, path in paths.items():
            words += ["--output", f"{name}={path}"]
        for name, value in parameters.items():
            words += ["--param", f"{name}={value}"]
        done = engine.verb("run", *words)
        if done.code == 0:
            return paths
        assert not list(folder.iterdir()), "what failed leaves nothing"
        return f"{done.code}: {done.err}"

    return run


def facts(path):
    out = subprocess.run(
        ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", str(path)],
        check=True,
        capture_output=True,
    )
    return json.loads(out.stdout)


def seconds(path):
    return float(facts(path)["format"]["duration"])


def test_each_of_them_is_good_and_described(engine):
    tools = {tool["name"]: tool for tool in engine.json("tools")}
    assert len(tools) >= 17
    page = open(os.path.join(os.path.dirname(__file__), "../../docs/tools.md"), encoding="utf-8").read()
    for name, tool in tools.items():
        assert engine.verb("tools", "check", name).code == 0, name
        assert tool["description"] and f"`{name}`" in page, f"docs/tools.md says nothing of {name}"
        shown = engine.json("tools", "show", name)[0]
        for output in shown["outputs"]:
            assert shown["outputs"][output].get("description"), f"{name}: {output}"


def test_probe(use, media):
    made = use("media_probe", {"input": media / "- a film.mp4"}, ["facts"])
    told = json.loads(made["facts"].read_text())
    assert {stream["codec_type"] for stream in told["streams"]} == {"video", "audio"} and float(
        told["format"]["duration"]
    ) == pytest.approx(10, abs=0.1)
    assert "exit" in use("media_probe", {"input": media / "letter.txt"}, ["facts"])


def test_audio_comes_out_as_asked(use, media):
    made = use("extract_audio", {"input": media / "- a film.mp4"}, ["audio"], rate=16000)
    stream = facts(made["audio"])["streams"][0]
    assert (stream["codec_name"], stream["sample_rate"], stream["channels"]) == ("pcm_s16le", "16000", 1)
    assert seconds(made["audio"]) == pytest.approx(10, abs=0.1)


def test_what_has_no_sound_gives_none(use, media):
    assert "title.mp4 has no sound" in use("extract_audio", {"input": media / "title.mp4"}, ["audio"])
    assert "has no moving pictures" in use("scene_detection", {"input": media / "- tone.wav"}, ["shots"])


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_sound_that_ends_before_the_picture_is_not_damaged(use, media, tmp_path, ending):
    make(
        "ffmpeg",
        "-v",
        "error",
        "-i",
        media / "- a film.mp4",
        "-f",
        "lavfi",
        "-i",
        "sine=duration=3",
        "-map",
        "0:v",
        "-map",
        "1:a",
        "-c:v",
        "copy",
        tmp_path / f"short.{ending}",
    )
    made = use("extract_audio", {"input": tmp_path / f"short.{ending}"}, ["audio"])
    assert seconds(made["audio"]) == pytest.approx(3, abs=0.1)
    made = use("transcode_video", {"input": tmp_path / f"short.{ending}"}, ["video"])
    assert seconds(made["video"]) == pytest.approx(10, abs=0.2)


@pytest.mark.parametrize(
    "tool, output",
    [
        ("extract_audio", "audio"),
        ("transcode_video", "video"),
        ("scene_detection", "shots"),
        ("contact_sheet", "sheet"),
        ("video_ocr", "words"),
    ],
)
def test_a_film_that_is_cut_off_is_no_success(use, media, tool, output):
    assert "cut off or damaged" in use(tool, {"input": media / "half film.mp4"}, [output])
    assert "cut off or damaged" in use(tool, {"input": media / "half - a film.mp4"}, [output]), "its head is missing"


def test_what_there_is_of_it_is_taken_when_asked_for(use, media):
    made = use("extract_audio", {"input": media / "half film.mp4"}, ["audio"], least=0)
    assert 2 < seconds(made["audio"]) < 9


def test_transcode(use, media):
    made = use("transcode_video", {"input": media / "- a film.mp4"}, ["video"], height=120)
    told = facts(made["video"])
    video = next(stream for stream in told["streams"] if stream["codec_type"] == "video")
    assert (video["codec_name"], video["width"], video["height"], video["pix_fmt"]) == ("h264", 160, 120, "yuv420p")
    assert seconds(made["video"]) == pytest.approx(10, abs=0.2)
    assert "mp4" in told["format"]["format_name"]
    made = use("transcode_video", {"input": media / "title.mp4"}, ["video"])
    assert facts(made["video"])["streams"][0]["height"] == 200, "never larger, and without sound there is none"


def test_silence_at_the_end_goes(use, media):
    made = use("trim_silence", {"input": media / "- tone.wav"}, ["audio"])
    assert seconds(made["audio"]) == pytest.approx(6, abs=0.1)
    whole = use("trim_silence", {"input": made["audio"]}, ["audio"])
    assert seconds(whole["audio"]) == pytest.approx(6, abs=0.1), "nothing of what is sound"


def test_nothing_but_silence_is_told(use, media):
    assert "silent from beginning to end" in use("trim_silence", {"input": media / "silent.wav"}, ["audio"])


def test_a_sheet_has_its_pictures(use, media):
    made = use("contact_sheet", {"input": media / "- a film.mp4"}, ["sheet"], pictures=5, columns=3, width=100)
    sheet = facts(made["sheet"])["streams"][0]
    assert sheet["codec_name"] == "png" and sheet["width"] == 3 * 100 + 2 * 3 + 2 * 10 and 150 < sheet["height"] < 200

    def colour(x, y):
        pixel = subprocess.run(
            [
                "convert",
                "-",
                "-format",
                f"%[fx:int(255*p{{{x},{y}}}.r)],%[fx:int(255*p{{{x},{y}}}.g)],%[fx:int(255*p{{{x},{y}}}.b)]",
                "info:",
            ],
            check=True,
            stdin=made["sheet"].open(),
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        red, green, blue = map(int, pixel.split(","))
        return "red" if red > 150 and blue < 100 else "blue" if blue > 150 else "green" if green > 90 else "other"

    assert [colour(60, 50), colour(163, 50), colour(266, 50), colour(60, 125)] == ["red", "red", "blue", "green"]


def test_shots_are_found(use, media):
    made = use("scene_detection", {"input": media / "- a film.mp4"}, ["shots"])
    told = json.loads(made["shots"].read_text())
    assert [(shot["type"], round(shot["start"]), round(shot["end"])) for shot in told["shots"]] == [
        ("shot", 0, 4),
        ("shot", 4, 7),
        ("shot", 7, 10),
    ]
    assert told["media"] == {"filename": "- a film.mp4", "duration": 10.0}


def test_text_in_a_film_is_read(use, media):
    made = use("video_ocr", {"input": media / "title.mp4"}, ["words"])
    told = json.loads(made["words"].read_text())
    assert told["media"]["resolution"] == {"width": 800, "height": 200}
    assert [frame["start"] for frame in told["frames"]] == [0, 1, 2, 3]
    assert "PALE FIRE 1962" in " ".join(box["text"] for box in told["frames"][0]["objects"])
    place = told["frames"][0]["objects"][0]["vertices"]
    assert 0 < place["xmin"] < place["xmax"] < 1 and 0 < place["ymin"] < place["ymax"] < 1
    nothing = use("video_ocr", {"input": media / "- a film.mp4"}, ["words"], every=5)
    assert json.loads(nothing["words"].read_text())["frames"] == []


def test_a_language_that_is_not_there_is_told(use, media):
    assert "klingon" in use("video_ocr", {"input": media / "title.mp4"}, ["words"], language="klingon")


def test_text_in_an_image_is_read(use, media):
    made = use("image_ocr", {"input": media / "- a page [1].png"}, ["text", "table"])
    assert "PALE FIRE 1962" in made["text"].read_text()
    rows = list(csv.DictReader(made["table"].open(), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["text"] for row in rows if row["level"] == "5"] == ["PALE", "FIRE", "1962"]


def test_sound_is_converted(use, media):
    made = use("convert_sound", {"input": media / "- tone.wav"}, ["audio"])
    stream = facts(made["audio"])["streams"][0]
    assert (stream["sample_rate"], stream["channels"], stream["codec_name"]) == ("16000", 1, "pcm_s16le")
    assert seconds(made["audio"]) == pytest.approx(10, abs=0.01)


@pytest.mark.parametrize("ending", ["wav", "flac", "aiff", "au"])
def test_a_sound_that_is_cut_off_is_no_success(use, media, tmp_path, ending):
    make("sox", media / "- tone.wav", tmp_path / f"whole.{ending}")
    whole = (tmp_path / f"whole.{ending}").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) * 6 // 10])
    said = use("convert_sound", {"input": tmp_path / "half"}, ["audio"], ending=ending)
    assert isinstance(said, str) and ("cut off or damaged" in said or "sox failed" in said)
    made = use("convert_sound", {"input": tmp_path / f"whole.{ending}"}, ["audio"], ending=ending)
    assert seconds(made["audio"]) == pytest.approx(10, abs=0.01)
    assert isinstance(
        use("convert_sound", {"input": tmp_path / f"whole.{ending}"}, ["audio"], ending="ogg"), str
    ), "it is no ogg"


def test_an_image_that_is_cut_off_is_no_success(use, media):
    assert "could not read all of" in use("shrink_image", {"input": media / "half noise.jpg"}, ["image"])


def test_images_are_made_smaller_and_never_larger(use, media):
    for width, got in ((400, (400, 100)), (5000, (800, 200))):
        made = use("shrink_image", {"input": media / "- a page [1].png"}, ["image"], width=width, height=5000)
        told = facts(made["image"])["streams"][0]
        assert (told["codec_name"], told["width"], told["height"]) == ("mjpeg", *got)


@pytest.mark.parametrize("tool", CONTAINERS)
def test_containers_get_what_they_are_known_to_want(use, media, tool, tmp_path):
    program = tmp_path / "an apptainer"
    program.mkdir()
    (program / "run").write_text(FAKE)
    (program / "run").chmod(0o755)
    inputs = {"input": media / "- tone.wav"} | (
        {"text": media / "letter.txt"} if tool == "gentle_forced_alignment" else {}
    )
    named = "singularity" if tool.startswith("ina") else "apptainer"
    options = {named: program / "run", "containers": "/images of ours"} | (
        {"gpu": "false"} if tool == "whisper" else {}
    )
    # What a machine of any size has.
    needs = ("--cpus", "1", "--mem", "200M", *(("--gpus", "0") if tool == "ina_speech_segmenter_container" else ()))
    for mode, said in [("fails", "out of memory"), ("empty", ""), ("works", None)]:
        (program / "mode").write_text(mode)
        made = use(tool, inputs, CONTAINERS[tool], needs, **options)
        assert isinstance(made, dict) == (mode == "works"), (mode, made)
        assert said is None or said in made
    assert all(path.stat().st_size > 0 for path in made.values())
    assert not list(media.glob("*.part")) and (media / "- tone.wav").stat().st_nlink == 1


def test_a_language_reaches_whisper(use, media, tmp_path):
    (tmp_path / "run").write_text(FAKE)
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "mode").write_text("works")
    made = use(
        "whisper",
        {"input": media / "- tone.wav"},
        ["transcript"],
        ("--cpus", "1", "--mem", "200M"),
        apptainer=tmp_path / "run",
        containers="/i",
        gpu="false",
        language="Old Norse",
    )
    assert json.loads(made["transcript"].read_text())["text"].endswith("/mnt/in/recording --language Old Norse")


@pytest.mark.parametrize(
    "tool, outputs, least, most",
    [
        ("transcode_video", ["video"], 300, 305),
        ("video_ocr", ["words"], 335, 345),
        ("scene_detection", ["shots"], 120, 125),
        ("extract_audio", ["audio"], 120, 125),
    ],
)
def test_what_a_recording_needs_is_asked_for(engine, media, tmp_path, tool, outputs, least, most):
    words = ["--tool", tool, "--input", f"input={media}/- a film.mp4"]
    for name in outputs:
        words += ["--output", f"{name}={tmp_path}/{name}"]
    task = engine.submit(*words)
    assert least <= engine.show(task)["needs"]["time"] <= most
    assert engine.wait(task) == 0
