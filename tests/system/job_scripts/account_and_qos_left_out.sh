#!/bin/bash
#SBATCH --job-name=left --time=5
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=me@example.org
#SBATCH --comment='a comment'
echo done > result.txt
