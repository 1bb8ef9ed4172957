#!/bin/bash
#: "--export=ALL,X_VARIABLE='a,b',Y_VARIABLE=c=d"
#SBATCH -o out.txt
echo "$X_VARIABLE|$Y_VARIABLE|$A_VARIABLE"
