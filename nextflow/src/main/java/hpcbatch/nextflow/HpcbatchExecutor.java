package hpcbatch.nextflow;

import com.google.common.hash.Hashing;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import nextflow.exception.AbortOperationException;
import nextflow.executor.Executor;
import nextflow.executor.TaskArrayExecutor;
import nextflow.processor.TaskHandler;
import nextflow.processor.TaskId;
import nextflow.processor.TaskMonitor;
import nextflow.processor.TaskRun;
import nextflow.util.ServiceName;
import org.pf4j.ExtensionPoint;
import org.slf4j.Logger;

/** {@code process.executor = 'hpcbatch'}: processes are tasks of the user's engine. */
@ServiceName("hpcbatch")
public class HpcbatchExecutor extends Executor implements TaskArrayExecutor, ExtensionPoint {
    private static final Logger log = Log.OF_PLUGIN;
    private static final long LAST_ANSWERS_MS = 5000;

    /** Of the attempts of one process: by what their keys begin, and how many there were. */
    private record Attempts(String root, int count) {}

    private Engine engine;
    private Submitter submitter;
    private Feed feed;
    private Requests requests;
    private Earlier earlier;
    private final Map<TaskId, Attempts> attempts = new ConcurrentHashMap<>();
    private final List<String> unwanted = new ArrayList<>();
    private boolean isCancellingTogether;

    @Override
    protected void register() {
        super.register();
        Object named = getSession().getConfigAttribute("hpcbatch.program", null);
        Program program = new Program(named == null ? null : named.toString());
        // With -resume a session is the one that was broken off.
        String client = "nextflow:" + getSession().getUniqueId();
        try {
            engine = new Engine(program);
            requests = new Requests(engine, program);
            submitter = new Submitter(engine, client, program.surroundings());
            feed = new Feed(engine, client, this::signal);
            earlier = getSession().isResumeMode() ? new Earlier(engine, client) : null;
        } catch (IOException error) {
            throw new AbortOperationException("Executor hpcbatch: " + error.getMessage(), error);
        }
        Feed.daemon("hpcbatch-submits", submitter);
        feed.start();
        log.debug("Executor hpcbatch is {} to its engine", client);
    }

    Requests requests() {
        return requests;
    }

    Feed feed() {
        return feed;
    }

    /** What an earlier run of this session submitted for that process; null if nothing that is of use. */
    Earlier.Task earlierOf(TaskRun task) {
        if (earlier == null) {
            return null;
        }
        try {
            Earlier.Task found = earlier.of(task.getHash().toString());
            if (found != null) {
                attempts.put(task.getId(), new Attempts(found.root(), found.attempts()));
                log.info("[{}] Goes on > {} (task {})", task.getHashLog(), task.lazyName(), found.id());
            }
            return found;
        } catch (IOException error) {
            log.warn("Executor hpcbatch: cannot look for an earlier run of {}: {}", task.lazyName(), error.getMessage());
            return null;
        }
    }

    /** Of the next attempt. */
    String keyOf(TaskRun task) {
        Attempts now = attempts.compute(task.getId(), (id, before) -> before == null
            ? new Attempts(task.getHash().toString(), 1) : new Attempts(before.root, before.count + 1));
        return Earlier.keyOf(now.root, now.count);
    }

    /** Of first attempts of all these. */
    String keyOfArray(List<TaskRun> tasks) {
        String keys = tasks.stream().map(this::keyOf).collect(Collectors.joining(" "));
        return "array/" + Hashing.sha256().hashString(keys, StandardCharsets.US_ASCII);
    }

    CompletableFuture<String> submit(String key, Map<String, Object> task) {
        return submitter.submit(key, task);
    }

    void cancel(String id) {
        synchronized (unwanted) {
            unwanted.add(id);
            if (isCancellingTogether) {
                return;
            }
        }
        cancelUnwanted();
    }

    /** Cancels in one request all that {@code kill} wants to end, and what of it is just being submitted. */
    void cancelTogether(Runnable kill) {
        synchronized (unwanted) {
            isCancellingTogether = true;
        }
        kill.run();
        long until = System.currentTimeMillis() + LAST_ANSWERS_MS;
        while (!submitter.isDone() && System.currentTimeMillis() < until) {
            Thread.onSpinWait();
        }
        cancelUnwanted();
        synchronized (unwanted) {
            isCancellingTogether = false;
        }
    }

    private void cancelUnwanted() {
        List<String> ids;
        synchronized (unwanted) {
            ids = List.copyOf(unwanted);
            unwanted.clear();
        }
        try {
            engine.cancel(ids);
        } catch (IOException error) {
            log.warn("Executor hpcbatch: cannot cancel {}: {}", String.join(" ", ids), error.getMessage());
        }
    }

    @Override
    protected TaskMonitor createTaskMonitor() {
        return new HpcbatchMonitor(this, getSession(), getName());
    }

    @Override
    public TaskHandler createTaskHandler(TaskRun task) {
        return new HpcbatchTaskHandler(task, this);
    }

    @Override
    public void shutdown() {
        if (engine != null) {
            engine.stop();
        }
    }

    @Override
    public String getArrayIndexName() {
        return "HPCBATCH_TASK_INDEX";
    }

    @Override
    public int getArrayIndexStart() {
        return 1;
    }

    @Override
    public String getArrayTaskId(String jobId, int index) {
        return Ids.of(jobId, index);
    }

    @Override
    public boolean isWorkDirDefaultFS() {
        return getWorkDir().getFileSystem() == FileSystems.getDefault();
    }

    @Override
    public String getArrayWorkDir(TaskHandler handler) {
        return handler.getTask().getWorkDirStr();
    }

    @Override
    public String getArrayLaunchCommand(String folder) {
        return "bash " + folder + "/" + TaskRun.CMD_RUN;
    }
}
