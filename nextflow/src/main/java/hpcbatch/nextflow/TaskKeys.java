package hpcbatch.nextflow;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Keys of a task as the engine's API names them (docs/api.md, "A submit"). */
final class TaskKeys {
    /** Says nothing of what a job needs: a process has these from Nextflow. */
    private static final Set<String> NOT_OF_OPTIONS = Set.of(
        "command", "name", "kind", "directory", "env", "environment", "stdin", "stdout", "stderr", "numbered");

    private TaskKeys() {}

    /** What options of sbatch came to: all that is about needs, places and order. */
    static Map<String, Object> ofOptions(Map<String, Object> task) {
        Map<String, Object> kept = new LinkedHashMap<>(task);
        kept.keySet().removeAll(NOT_OF_OPTIONS);
        return kept;
    }

    /** What {@code over} says holds; of tags, each: one KEY=VALUE replaces another of its key. */
    static void add(Map<String, Object> keys, Map<String, Object> over) {
        for (Map.Entry<String, Object> entry : over.entrySet()) {
            if (entry.getKey().equals("tags") && keys.get("tags") instanceof List<?> said) {
                List<Object> tags = new ArrayList<>(said);
                for (Object tag : entry.getValue() instanceof List<?> list ? list : List.of(entry.getValue())) {
                    String key = keyOf(tag);
                    tags.removeIf(other -> other.equals(tag) || (!key.isEmpty() && keyOf(other).equals(key)));
                    tags.add(tag);
                }
                keys.put("tags", tags);
            } else {
                keys.put(entry.getKey(), entry.getValue());
            }
        }
    }

    private static String keyOf(Object tag) {
        String text = tag.toString();
        return text.substring(0, Math.max(0, text.indexOf('=')));
    }
}
