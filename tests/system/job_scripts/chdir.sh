#!/bin/bash
#SBATCH -D /
#SBATCH -o /dev/null
pwd > $SLURM_SUBMIT_DIR/where
