#!/bin/bash
#SBATCH -o out.txt
for i in {1..3}; do echo ${i}; done; echo '{id} {index} {}' | awk '{print $2}'
