#!/bin/bash
#SBATCH -J short # the name
#SBATCH -o %x.txt   # where it goes
echo $SLURM_JOB_NAME
