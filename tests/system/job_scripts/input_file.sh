#!/bin/bash
#SBATCH -i input.txt
#SBATCH -o out.txt
tr a-z A-Z
