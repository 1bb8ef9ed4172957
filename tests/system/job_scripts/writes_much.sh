#!/bin/bash
#SBATCH -o out.txt
seq 1 5000
