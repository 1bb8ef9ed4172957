#!/bin/bash
#SBATCH -o 100%%.txt
echo all
