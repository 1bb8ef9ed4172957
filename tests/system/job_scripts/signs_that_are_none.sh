#!/bin/bash
#SBATCH -o out.%q.100%.txt
echo here
