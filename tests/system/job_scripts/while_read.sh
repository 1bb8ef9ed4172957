#!/bin/bash
#SBATCH -o out.txt
printf 'a\nb\n' > names; while read -r name; do echo "<$name>"; done < names
