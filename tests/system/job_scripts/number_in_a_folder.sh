#!/bin/bash
#SBATCH -o out.txt
mkdir scratch.$SLURM_JOB_ID && cd scratch.$SLURM_JOB_ID && echo work > tmp && cd .. && rm -r scratch.$SLURM_JOB_ID && ls
