#!/bin/bash
#SBATCH -o out.txt
echo leaving
exit 3
