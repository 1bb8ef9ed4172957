#!/bin/bash
#SBATCH -J fit -o %x_%j.out -e %x_%j.err
echo hi; echo trouble >&2
