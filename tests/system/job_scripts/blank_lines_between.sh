#!/bin/bash

# a comment

#SBATCH -J blank

   
#SBATCH -o %x.out

echo hello
