#!/bin/bash
#: <
#SBATCH -J piped -o out.txt
echo "$# $(basename $0)"
