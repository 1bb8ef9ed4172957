#!/bin/bash
#SBATCH -o out.txt
echo 'greeting=hello' > settings.sh; source ./settings.sh; echo $greeting
