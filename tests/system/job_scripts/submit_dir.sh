#!/bin/bash
#SBATCH -o out.txt
cd / && cd $SLURM_SUBMIT_DIR && echo data > result.txt && [ $PWD -ef $SLURM_SUBMIT_DIR ] && echo there
