#!/bin/bash
#SBATCH -o out.txt
set -o pipefail
false | true
echo $?
