#!/bin/bash
#: -D link -o out.txt
echo ${PWD##*/} ${SLURM_SUBMIT_DIR##*/} $(basename $(pwd -P))
