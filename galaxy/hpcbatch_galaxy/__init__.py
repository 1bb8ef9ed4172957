"""Galaxy's jobs as tasks of an hpcbatch engine: `load: hpcbatch_galaxy.runner:HpcbatchJobRunner` in job_conf.yml."""
