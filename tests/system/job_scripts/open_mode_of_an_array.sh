#!/bin/bash
#SBATCH -a 1-3 -o all.txt --open-mode=append
sleep 0.1; echo one
