package hpcbatch.nextflow;

import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import nextflow.executor.res.AcceleratorResource;
import nextflow.processor.TaskConfig;
import nextflow.processor.TaskRun;

/** From a process's directives to a task of the engine's API. Any thread may use it. */
class Requests {
    /** What an array's tasks and single ones run alike: its folder is the one argument. */
    private static final String LAUNCH = "cd \"$1\" && exec bash .command.run > .command.log 2>&1";

    private final Program program;
    private final Set<String> sites;
    private final Map<String, Map<String, Object>> keysOfOptions = new ConcurrentHashMap<>();

    Requests(Engine engine, Program program) throws IOException {
        this.program = program;
        sites = ((List<?>) engine.get("/v1/sites").get("sites")).stream()
            .map(site -> (String) Program.asMap(site).get("name")).collect(Collectors.toSet());
    }

    /** Of one process. Throws IllegalArgumentException where its clusterOptions are refused. */
    Map<String, Object> of(TaskRun task) {
        Map<String, Object> keys = needsOf(task);
        keys.put("name", task.lazyName());
        keys.put("command", commandIn(task.getWorkDir().toString()));
        keys.put("directory", task.getWorkDir().toString());
        return keys;
    }

    /** Of an array with one task for each of the folders; what it needs is what its first process needs. */
    Map<String, Object> ofArray(TaskRun first, String name, List<Path> folders) {
        Map<String, Object> keys = needsOf(first);
        keys.put("name", name);
        keys.put("command", commandIn("{}"));
        keys.put("items", folders.stream().map(Path::toString).toList());
        keys.put("directory", "/");
        return keys;
    }

    private static List<String> commandIn(String folder) {
        return List.of("bash", "-c", LAUNCH, "nextflow", folder);
    }

    private Map<String, Object> needsOf(TaskRun task) {
        TaskConfig config = task.getConfig();
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("kind", task.getProcessor().getName());
        keys.put("cpus", config.getCpus());
        if (config.getMemory() != null) {
            keys.put("memory", config.getMemory().toBytes());
        }
        if (config.getTime() != null) {
            keys.put("time", Math.max(1, (config.getTime().toMillis() + 999) / 1000));
        }
        if (config.getDisk() != null) {
            keys.put("disk", config.getDisk().toBytes());
        }
        AcceleratorResource accelerator = config.getAccelerator();
        if (accelerator != null && accelerator.getRequest() != null) {
            keys.put("gpus", accelerator.getType() == null
                ? accelerator.getRequest() : Map.of(accelerator.getType(), accelerator.getRequest()));
        }
        Object queue = config.get("queue");
        if (queue != null) {
            TaskKeys.add(keys, placeOf(queue.toString(), sites));
        }
        String options = config.getClusterOptionsAsString();
        if (options != null && !options.isBlank()) {
            TaskKeys.add(keys, keysOf(options.strip()));
        }
        if (config.get("ext") instanceof Map<?, ?> ext && ext.get("hpcbatch") instanceof Map<?, ?> more) {
            for (Map.Entry<?, ?> entry : more.entrySet()) {
                TaskKeys.add(keys, Map.of(entry.getKey().toString(), plain(entry.getValue())));
            }
        }
        return keys;
    }

    /** A queue is a site of hpcbatch's configuration, else a partition of whichever site has it. */
    static Map<String, Object> placeOf(String queue, Set<String> sites) {
        return sites.contains(queue) ? Map.of("site", queue) : Map.of("tags", List.of("partition=" + queue));
    }

    private Map<String, Object> keysOf(String options) {
        return keysOfOptions.computeIfAbsent(options, said -> {
            try {
                return program.keysOf(said);
            } catch (IOException error) {
                throw new IllegalArgumentException("clusterOptions '" + said + "': " + error.getMessage(), error);
            }
        });
    }

    /** As JSON has it: Groovy's texts and amounts are read by the engine. */
    private static Object plain(Object value) {
        boolean isPlain = value instanceof Number || value instanceof Boolean || value instanceof Map || value instanceof List;
        return isPlain ? value : value.toString();
    }
}
