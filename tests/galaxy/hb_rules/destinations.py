"""The tests' dynamic destination: a file says which environment a tool's jobs go to, as rules of TPV would."""

import json
import os
import pathlib

CHOICES = pathlib.Path(os.environ["GALAXY_CONFIG_FILE"]).with_name("choices.json")


def choose(tool_id):
    choices = json.loads(CHOICES.read_text())
    return choices.get(tool_id, choices[""])
