#!/bin/bash
#SBATCH -o out.txt
#SBATCH -e err.txt
echo out; echo err >&2
