#!/bin/bash
#SBATCH -o out.txt
trap 'echo cleaned' EXIT
echo work
