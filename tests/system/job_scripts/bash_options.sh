#!/bin/bash -eu
#SBATCH -o out.txt
echo before
false
echo never
