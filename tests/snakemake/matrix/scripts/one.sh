#!/usr/bin/env bash
echo "${snakemake[rule]} ${snakemake_params[word]}" > "${snakemake_output[0]}"
