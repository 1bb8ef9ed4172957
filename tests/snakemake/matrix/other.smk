rule module:
    output: "out/module.txt"
    shell: "echo module > {output}"

WORD = "of-the-module"

rule module_name:
    output: "out/module_name.txt"
    shell: "echo {WORD} {config[own]} > {output}"
