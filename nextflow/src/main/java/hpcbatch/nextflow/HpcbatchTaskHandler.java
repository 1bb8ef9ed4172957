package hpcbatch.nextflow;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import nextflow.exception.ProcessFailedException;
import nextflow.executor.BashWrapperBuilder;
import nextflow.processor.TaskArrayRun;
import nextflow.processor.TaskHandler;
import nextflow.processor.TaskRun;
import nextflow.processor.TaskStatus;
import nextflow.trace.TraceRecord;
import org.slf4j.Logger;

/** One attempt of a process, or an array of them, as a task of hpcbatch. Threads of the feed tell it what has become of that. */
class HpcbatchTaskHandler extends TaskHandler implements Feed.Listener {
    private static final Logger log = Log.OF_PLUGIN;

    private final HpcbatchExecutor executor;
    private Earlier.Task earlier;
    private volatile String id;
    private volatile boolean hasStarted;
    private volatile boolean isUnwanted;
    private volatile Throwable trouble;
    private volatile Map<String, Object> event;

    HpcbatchTaskHandler(TaskRun task, HpcbatchExecutor executor) {
        super(task);
        this.executor = executor;
    }

    @Override
    public void prepareLauncher() {
        // An array's own script would start its children by their index: here each has its folder as its item.
        if (getTask() instanceof TaskArrayRun) {
            return;
        }
        earlier = executor.earlierOf(getTask());
        if (earlier == null) {
            new BashWrapperBuilder(getTask()).build();
        } else {
            getTask().setWorkDir(earlier.folder());
        }
    }

    /** Throws nothing: Nextflow never ends a process whose submit failed by an exception and is to be ignored. */
    @Override
    public void submit() {
        if (getTask() instanceof TaskArrayRun array) {
            submitArray(array);
        } else if (earlier != null) {
            follow();
        } else {
            watch(submitted(() -> executor.submit(executor.keyOf(getTask()), executor.requests().of(getTask()))));
        }
    }

    private static CompletableFuture<String> submitted(Supplier<CompletableFuture<String>> submit) {
        try {
            return submit.get();
        } catch (RuntimeException error) {
            return CompletableFuture.failedFuture(error);
        }
    }

    private void submitArray(TaskArrayRun array) {
        List<HpcbatchTaskHandler> children = new ArrayList<>();
        for (TaskHandler handler : array.getChildren()) {
            HpcbatchTaskHandler child = (HpcbatchTaskHandler) handler;
            if (child.earlier != null) {
                child.follow();
            } else {
                children.add(child);
            }
        }
        setStatus(TaskStatus.SUBMITTED);
        if (children.isEmpty()) {
            return;
        }
        List<TaskRun> tasks = children.stream().map(TaskHandler::getTask).toList();
        CompletableFuture<String> answer = submitted(() -> executor.submit(executor.keyOfArray(tasks), executor.requests().ofArray(
            tasks.get(0), array.getProcessor().getName(), tasks.stream().map(TaskRun::getWorkDir).toList())));
        for (int at = 0; at < children.size(); at++) {
            int index = at + 1;
            children.get(at).watch(answer.thenApply(id -> Ids.of(id, index)));
        }
    }

    /** Of what an earlier run submitted. */
    private void follow() {
        setStatus(TaskStatus.SUBMITTED);
        id = earlier.id();
        try {
            executor.feed().watchEarlier(id, this);
        } catch (IOException error) {
            trouble = error;
        }
    }

    private void watch(CompletableFuture<String> answer) {
        setStatus(TaskStatus.SUBMITTED);
        answer.whenComplete((given, error) -> {
            if (error != null) {
                // What follows from an answer that failed has that as its cause.
                trouble = error instanceof CompletionException ? error.getCause() : error;
                executor.signal();
                return;
            }
            id = given;
            executor.feed().watch(given, this);
            if (isUnwanted) {
                executor.cancel(given);
            }
        });
    }

    @Override
    public void started() {
        hasStarted = true;
    }

    @Override
    public void ended(Map<String, Object> said) {
        event = said;
    }

    @Override
    public boolean checkIfRunning() {
        if (!isSubmitted() || !(hasStarted || event != null)) {
            return false;
        }
        setStatus(TaskStatus.RUNNING);
        End end = event == null ? null : End.of(event);
        if (end != null && end.startedMs() != 0) {
            setStartTimeMillis(end.startedMs());
        }
        return true;
    }

    @Override
    public boolean checkIfCompleted() {
        TaskRun task = getTask();
        if (trouble != null) {
            task.setExitStatus(Integer.MAX_VALUE);
            task.setStdout(trouble.getMessage());
            // Of an error that is ignored Nextflow tells no reason.
            log.warn("[{}] Process `{}` is refused: {}", task.getHashLog(), task.lazyName(), trouble.getMessage());
            task.setError(new ProcessFailedException("Process `" + task.lazyName() + "` is refused: " + trouble.getMessage(), trouble));
            setStatus(TaskStatus.COMPLETED);
            return true;
        }
        if (!isRunning() || event == null) {
            return false;
        }
        End end = End.of(event);
        task.setExitStatus(end.exitStatus());
        task.setStdout(task.getWorkDir().resolve(TaskRun.CMD_OUTFILE));
        task.setStderr(task.getWorkDir().resolve(TaskRun.CMD_ERRFILE));
        if (end.message() != null) {
            task.setError(new ProcessFailedException("Process `" + task.lazyName() + "` was ended: " + end.message()));
        }
        setStatus(TaskStatus.COMPLETED);
        if (end.endedMs() != 0) {
            setCompleteTimeMillis(end.endedMs());
        }
        return true;
    }

    @Override
    public void kill() {
        isUnwanted = true;
        String known = id;
        if (known != null && event == null) {
            executor.cancel(known);
        }
    }

    @Override
    public TraceRecord getTraceRecord() {
        TraceRecord record = super.getTraceRecord();
        if (id != null) {
            record.put("native_id", id);
        }
        return record;
    }

    @Override
    protected StringBuilder toStringBuilder(StringBuilder text) {
        return super.toStringBuilder(text.append("hpcbatch: ").append(id).append("; "));
    }
}
