#!/bin/bash
#: -o out.txt
echo "$SLURM_JOB_NAME"
