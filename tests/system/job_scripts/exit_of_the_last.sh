#!/bin/bash
#SBATCH -o out.txt
ls /no/such/folder 2> /dev/null
