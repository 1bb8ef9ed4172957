package hpcbatch.nextflow;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Nextflow shows its user the warnings of loggers alone that are called as its own packages are. */
final class Log {
    static final Logger OF_PLUGIN = LoggerFactory.getLogger("nextflow.hpcbatch");

    private Log() {}
}
