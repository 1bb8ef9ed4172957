#!/bin/bash
#SBATCH -o input.txt --open-mode=truncate
echo alone
