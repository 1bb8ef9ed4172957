package hpcbatch.nextflow;

import java.util.Map;

/**
 * How a task ended, as users of Nextflow know it.
 *
 * @param exitStatus what {@code task.exitStatus} is
 * @param message null where the exit status says all
 * @param startedMs milliseconds since 1970; 0: it never started
 * @param endedMs the same of its end
 */
record End(int exitStatus, String message, long startedMs, long endedMs) {
    /** What batch systems and containers give for one that was over its memory: 128 and SIGKILL. */
    static final int OUT_OF_MEMORY = 137;
    /** What Nextflow's wrapper gives under SLURM for one that was over its time: 128 and SIGUSR2. */
    static final int OUT_OF_TIME = 140;

    /** {@code said}: an event of the engine's feed, or a task in full. */
    static End of(Map<String, Object> said) {
        String failure = String.valueOf(said.get("failure"));
        String message = String.valueOf(said.getOrDefault("message", failure));
        long started = millis(said.get("started_at"));
        long ended = millis(said.get("ended_at"));
        int code = said.get("exit_code") instanceof Number number ? number.intValue() : Integer.MAX_VALUE;
        return switch (failure) {
            case "ok", "null", "tool_failed", "tool_signal" -> new End(code, null, started, ended);
            case "oom_task", "oom_gpu" -> new End(OUT_OF_MEMORY, "it was out of memory: " + message, started, ended);
            case "time_task" -> new End(OUT_OF_TIME, "it was out of time: " + message, started, ended);
            case "cancelled" -> new End(code, "it was cancelled", started, ended);
            default -> new End(code == 0 ? Integer.MAX_VALUE : code, message, started, ended);
        };
    }

    private static long millis(Object seconds) {
        return seconds instanceof Number number ? Math.round(number.doubleValue() * 1000) : 0;
    }
}
