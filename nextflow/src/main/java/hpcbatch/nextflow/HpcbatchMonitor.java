package hpcbatch.nextflow;

import java.util.LinkedHashMap;
import java.util.Map;
import nextflow.Session;
import nextflow.processor.TaskPollingMonitor;
import nextflow.util.Duration;

/** Looks at what the feed has told, whenever it tells something; what looking costs is no request. */
class HpcbatchMonitor extends TaskPollingMonitor {
    /** Thousands wait in the engine as well as here, and there all shapes of pilots can be planned for them. */
    private static final int QUEUE_SIZE = 10_000;

    private final HpcbatchExecutor executor;

    HpcbatchMonitor(HpcbatchExecutor executor, Session session, String name) {
        super(settings(session, name));
        this.executor = executor;
    }

    private static Map<String, Object> settings(Session session, String name) {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("session", session);
        said.put("name", name);
        said.put("capacity", session.getQueueSize(name, QUEUE_SIZE));
        said.put("pollInterval", session.getPollInterval(name, Duration.of("1 sec")));
        said.put("dumpInterval", session.getMonitorDumpInterval(name));
        return said;
    }

    @Override
    protected void cleanup() {
        executor.cancelTogether(super::cleanup);
    }
}
