rule module:
    output: "out/module.txt"
    shell: "echo module > {output}"
