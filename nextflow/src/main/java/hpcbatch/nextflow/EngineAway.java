package hpcbatch.nextflow;

import java.io.IOException;

/** No engine answers, or it accepts nothing now: the same request may succeed later. */
class EngineAway extends IOException {
    EngineAway(String message, Throwable cause) {
        super(message, cause);
    }
}
