package hpcbatch.nextflow;

import java.io.IOException;

/** The engine refused a request and did nothing. {@code status}: 400, 404 or 409. */
class Refused extends IOException {
    final int status;

    Refused(int status, String message) {
        super(message);
        this.status = status;
    }
}
