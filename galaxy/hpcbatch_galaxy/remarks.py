"""What users read at the datasets of a job that waits."""

from galaxy import model
from sqlalchemy import select, update

# As long as Galaxy's own column.
_MOST = 255


def remark(job_wrapper, text):
    """Sets it, or takes it away with None.  Not in the job's own `info`: Galaxy writes that to the datasets with each state."""
    mine = select(model.Dataset.id).where(model.Dataset.job_id == job_wrapper.job_id)
    session = job_wrapper.sa_session
    session.execute(
        update(model.HistoryDatasetAssociation)
        .where(model.HistoryDatasetAssociation.dataset_id.in_(mine))
        .values(info=text and text[:_MOST])
        .execution_options(synchronize_session="fetch")
    )
    session.commit()
