#!/bin/bash
#SBATCH -o out.txt
[ -e "$0" ] && echo it is there; [ "$0" = "${BASH_SOURCE[0]}" ] && echo same; basename "$0"
