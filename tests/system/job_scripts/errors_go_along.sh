#!/bin/bash
#SBATCH -o both.txt
echo out; echo err >&2
