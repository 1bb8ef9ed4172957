#!/bin/bash
#SBATCH -o out.txt
if [ -n "$SLURM_JOB_ID" ]; then echo in a job; else echo by hand; fi
