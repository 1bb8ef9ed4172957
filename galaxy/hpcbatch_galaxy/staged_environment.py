"""What Galaxy is told of the place where a staged job runs, while it makes the job: the job's own directory, with all that it needs
below it."""

import os

from galaxy.job_execution.compute_environment import SharedComputeEnvironment, dataset_path_to_extra_path


class StagedEnvironment(SharedComputeEnvironment):
    """`places` remembers what was asked for: that goes along."""

    def __init__(self, job_io, job, places):
        super().__init__(job_io, job)
        self._places = places

    def input_path_rewrite(self, dataset):
        return self._places.input(os.path.abspath(super().input_path_rewrite(dataset)))

    def input_extra_files_rewrite(self, dataset):
        if not dataset.extra_files_path_exists():
            return dataset_path_to_extra_path(self.input_path_rewrite(dataset))
        return self._places.folder(os.path.abspath(dataset.extra_files_path))

    def input_metadata_rewrite(self, dataset, metadata_value):
        if not metadata_value or not os.path.isfile(metadata_value):
            return None
        return self._places.input(os.path.abspath(metadata_value))

    def tool_directory(self):
        return self._places.tool if self.job_io.tool_directory else None

    def new_file_path(self):
        return os.path.join(self.working_directory(), "working")
