package hpcbatch.nextflow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

class EndTest {
    @Test
    void itsOwnExitStatusSaysAll() {
        End end = End.of(Map.of("failure", "tool_failed", "exit_code", 7, "started_at", 1000.25, "ended_at", 1001));
        assertEquals(7, end.exitStatus());
        assertNull(end.message());
        assertEquals(1_000_250, end.startedMs());
        assertEquals(1_001_000, end.endedMs());
        assertEquals(0, End.of(Map.of("failure", "ok", "exit_code", 0)).exitStatus());
        assertEquals(0, End.of(Map.of("state", "done", "exit_code", 0)).exitStatus(), "a task in full may say no failure");
    }

    @Test
    void memoryAndTimeHaveTheStatusThatWorkflowsLookFor() {
        End memory = End.of(Map.of("failure", "oom_task", "exit_code", 0, "message", "the limit is 60 MiB"));
        assertEquals(137, memory.exitStatus());
        assertTrue(memory.message().contains("the limit is 60 MiB"), memory.message());
        assertEquals(140, End.of(Map.of("failure", "time_task", "exit_code", 143)).exitStatus());
    }

    @Test
    void whatNeverRanHasNoStatusAndNoStart() {
        End end = End.of(Map.of("failure", "input_missing", "message", "it is not there", "ended_at", 5));
        assertEquals(Integer.MAX_VALUE, end.exitStatus());
        assertEquals("it is not there", end.message());
        assertEquals(0, end.startedMs());
        assertEquals(Integer.MAX_VALUE, End.of(Map.of("failure", "output_missing", "exit_code", 0)).exitStatus());
    }
}
