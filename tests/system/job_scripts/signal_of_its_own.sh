#!/bin/bash
#SBATCH -o out.txt
echo going; kill -TERM $$
