#!/bin/bash
#SBATCH -o out.txt
echo no newline