#!/bin/bash
#SBATCH -o input.txt -e input.txt --open-mode append
echo added; echo to it >&2
