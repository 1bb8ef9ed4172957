#!/usr/bin/perl
#SBATCH -J camel -o out.txt
print "$ENV{SLURM_JOB_NAME}\n";
