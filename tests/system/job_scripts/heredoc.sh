#!/bin/bash
#SBATCH -o out.txt
cat > input.nml <<EOF
&run
 name = '$SLURM_JOB_NAME'
/
EOF
cat input.nml
