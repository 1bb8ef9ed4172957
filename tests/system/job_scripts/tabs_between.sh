#!/bin/bash
#SBATCH	-J	tabbed	-o	out.txt
echo $SLURM_JOB_NAME
