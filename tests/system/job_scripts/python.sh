#!/usr/bin/env python3
# SBATCH --job-name=snake
# SBATCH -o out.txt
import os

print(os.environ["SLURM_JOB_NAME"], os.environ.get("SLURM_ARRAY_TASK_ID", "none"))
