#!/bin/bash
#SBATCH -o out.txt --export=ALL,X_VARIABLE="a b",Y_VARIABLE='c'
echo "$X_VARIABLE|$Y_VARIABLE"
