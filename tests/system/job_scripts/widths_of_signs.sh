#!/bin/bash
#SBATCH -o out.%12x.%3t.%04a.%5n.%%
echo here
