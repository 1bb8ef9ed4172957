#!/bin/bash
#SBATCH -t 0-00:05:00 -o out.txt
echo in time
