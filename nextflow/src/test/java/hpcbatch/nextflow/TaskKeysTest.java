package hpcbatch.nextflow;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TaskKeysTest {
    @Test
    void whatIsSaidLaterHoldsAndTagsAreKept() {
        Map<String, Object> keys = new HashMap<>(Map.of("cpus", 2, "tags", List.of("partition=short", "fast")));
        TaskKeys.add(keys, Map.of("cpus", 4, "tags", List.of("partition=long", "account=lab")));
        assertEquals(4, keys.get("cpus"));
        assertEquals(List.of("fast", "partition=long", "account=lab"), keys.get("tags"));
        TaskKeys.add(keys, Map.of("tags", "fast"));
        assertEquals(List.of("partition=long", "account=lab", "fast"), keys.get("tags"));
    }

    @Test
    void optionsOfSbatchSayWhatIsNeededAndNotWhatRuns() {
        Map<String, Object> task = Map.of("command", List.of("sh"), "env", Map.of("A", "b"), "name", "x", "numbered", true,
            "memory", "2G", "tags", List.of("account=lab"));
        assertEquals(Map.of("memory", "2G", "tags", List.of("account=lab")), TaskKeys.ofOptions(task));
    }

    @Test
    void aQueueIsASiteOrAPartition() {
        assertEquals(Map.of("site", "cluster"), Requests.placeOf("cluster", Set.of("cluster")));
        assertEquals(Map.of("tags", List.of("partition=long")), Requests.placeOf("long", Set.of("cluster")));
    }
}
