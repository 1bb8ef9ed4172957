#!/bin/bash
#: --open-mode=append
#SBATCH -o input.txt
echo added
