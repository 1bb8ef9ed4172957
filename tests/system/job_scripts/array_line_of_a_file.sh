#!/bin/bash
#SBATCH -a 1-3 -o out.%a
printf 'one\ntwo\nthree\n' > list.$SLURM_ARRAY_TASK_ID
sed -n ${SLURM_ARRAY_TASK_ID}p list.$SLURM_ARRAY_TASK_ID
