#!/bin/bash
#SBATCH -o log.txt
exec > own.txt 2>&1
echo in its own file
