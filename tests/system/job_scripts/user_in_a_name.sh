#!/bin/bash
#SBATCH -o %u.txt
whoami
