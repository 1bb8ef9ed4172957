#!/bin/bash
#SBATCH --comment="of mine" --wckey=key
#SBATCH --mail-type=END,FAIL --mail-user=me@example.org
#SBATCH -o out.txt
echo here
