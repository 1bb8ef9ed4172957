"""Examples of tools for those who use them from elsewhere: a Galaxy tool and a rule of Snakemake for each.

  python generate.py DIR [TOOL ...]

Writes DIR/galaxy/hpcbatch_TOOL.xml and DIR/snakemake/TOOL.smk of what `hpcbatch tools show TOOL --json` says; without TOOL of all tools that
have inputs. A tool that takes a list of files has no rule here: how many there are only its user knows.
Both run `hpcbatch run`, which waits for the task's end: in Galaxy at a destination of its own machine, in Snakemake as any rule.
What has no default (a folder of images, say) is to be filled in. Standard library only; `hpcbatch` must be on the PATH.
"""

import json
import pathlib
import subprocess
import sys
from xml.sax.saxutils import escape, quoteattr

FORMATS = {
    "tsv": "tabular",
    "json": "json",
    "txt": "txt",
    "vtt": "txt",
    "wav": "wav",
    "mp4": "mp4",
    "png": "png",
    "jpg": "jpg",
}
TYPES = {"integer": "integer", "number": "float", "boolean": "boolean", "string": "text"}


def asked(*words):
    try:
        done = subprocess.run(["hpcbatch", *words, "--json"], stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("generate.py: hpcbatch is not on the PATH, which is asked for its tools; add its bin folder to it")
    if done.returncode != 0:
        sys.exit(done.returncode)  # it has said why
    return [json.loads(line) for line in done.stdout.splitlines()]


def galaxy_parameter(name, one):
    label = quoteattr(one.get("description") or name)
    default = one.get("default")
    if one.get("choices"):
        options = "".join(
            f'\n      <option value={quoteattr(choice)}{" selected=" + quoteattr("true") if choice == default else ""}>{escape(choice)}</option>'
            for choice in one["choices"]
        )
        return f'    <param name="{name}" type="select" label={label}>{options}\n    </param>'
    if one["type"] == "boolean":
        return f'    <param name="{name}" type="boolean" truevalue="true" falsevalue="false" checked="{default or "false"}" label={label}/>'
    value = "" if default is None else f" value={quoteattr(default)}"
    needed = '\n      <validator type="empty_field"/>\n    </param>' if one["type"] == "string" else None
    head = f'    <param name="{name}" type="{TYPES[one["type"]]}"{value} label={label}'
    return f"{head}>{needed}" if needed else f"{head}/>"


def galaxy_input(name, one):
    more = (' multiple="true"' if one["type"] == "files" else "") + (' optional="true"' if one["optional"] else "")
    return (
        f'    <param name="{name}" type="data" format="data"{more} label={quoteattr(one.get("description") or name)}/>'
    )


def galaxy_tool(tool):
    command = [f"hpcbatch run --tool {tool['name']}"]
    for name, one in tool["inputs"].items():
        if one["type"] == "files":
            command += [f"#for $one in ${name}", f"  --input '{name}=$one'", "#end for"]
        elif one["optional"]:
            command += [f"#if ${name}", f"  --input '{name}=${name}'", "#end if"]
        else:
            command.append(f"  --input '{name}=${name}'")
    command += [f"  --output '{name}=${name}'" for name in tool["outputs"]]
    command += [f"  --param '{name}=${name}'" for name in tool["parameters"]]
    inputs = [galaxy_input(*one) for one in tool["inputs"].items()] + [
        galaxy_parameter(*one) for one in tool["parameters"].items()
    ]
    outputs = [
        f'    <data name="{name}" format="{FORMATS.get(one["file"].rpartition(".")[2], "data")}" '
        f'label={quoteattr("${tool.name}: " + (one.get("description") or name))}/>'
        for name, one in tool["outputs"].items()
    ]
    lines = "\n".join(command)
    return f"""<tool id="hpcbatch_{tool['name']}" name={quoteattr(tool['name'].replace('_', ' '))} version={quoteattr(tool['version'] or '0')} profile="23.0">
  <description>{escape(tool['description'])}</description>
  <command detect_errors="exit_code"><![CDATA[
{lines}
  ]]></command>
  <inputs>
{chr(10).join(inputs)}
  </inputs>
  <outputs>
{chr(10).join(outputs)}
  </outputs>
  <help><![CDATA[
{tool['description']}.

hpcbatch runs it, and this job waits for it: let it run at a destination of the machine that the engine is on.
  ]]></help>
</tool>
"""


def snakemake_rule(tool):
    def section(word, entries):
        return (
            f"    {word}:\n" + "".join(f"        {name}={json.dumps(value)},\n" for name, value in entries.items())
            if entries
            else ""
        )

    given = {name: one for name, one in tool["inputs"].items() if not one["optional"]}
    inputs = {name: f"{name}/{{sample}}" for name in given}
    outputs = {name: f"{tool['name']}/{{sample}}.{one['file']}" for name, one in tool["outputs"].items()}
    values = {name: one.get("default", f"SAY-{name}") for name, one in tool["parameters"].items()}
    words = [f"--input {name}={{input.{name}:q}}" for name in given]
    words += [f"--output {name}={{output.{name}:q}}" for name in outputs]
    words += [f"--param {name}={{params.{name}:q}}" for name in values]
    lines = "".join(f'        " {word}"\n' for word in words)
    return f"""# {tool['description']}
rule {tool['name']}:
{section('input', inputs)}{section('output', outputs)}{section('params', values)}    shell:
        "hpcbatch run --tool {tool['name']}"
{lines}"""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    for kind in ("galaxy", "snakemake"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or [tool["name"] for tool in asked("tools") if "error" not in tool and tool["inputs"]]:
        tool = asked("tools", "show", name)[0]
        (folder / "galaxy" / f"hpcbatch_{name}.xml").write_text(galaxy_tool(tool), encoding="utf-8")
        if not any(one["type"] == "files" for one in tool["inputs"].values()):
            (folder / "snakemake" / f"{name}.smk").write_text(snakemake_rule(tool), encoding="utf-8")


if __name__ == "__main__":
    main()
