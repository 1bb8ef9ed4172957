#!/bin/bash
#: @ a "b  c" --time=1 -J
#SBATCH -o out.txt
printf '%s|' "$@"
