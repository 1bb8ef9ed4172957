package hpcbatch.nextflow;

import com.google.common.hash.HashCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nextflow.util.HashBuilder;

/**
 * Tasks of a run that was broken off, for the run that resumes it. Nextflow gives a process whose folder it finds in use the
 * next folder of a chain: its hash is that of the folder before and a number. So the chain leads from what an earlier run
 * submitted to what would do the same work again.
 */
class Earlier {
    /** {@code root}: the first folder's hash, by which keys begin. {@code folder}: where it runs or ran. */
    record Task(String id, String root, Path folder, int attempts) {}

    private record Known(String id, String state, Path folder) {}

    /** How often one run may have been broken off or found a folder in use. */
    private static final int LONGEST_CHAIN = 8;
    private static final int PAGE = 10_000;
    private static final Set<String> OPEN = Set.of("waiting", "held", "running", "finishing", "unknown");

    private final Engine engine;
    private final String client;
    private final Map<String, Known> byHash = new HashMap<>();
    private final Map<String, Known> byId = new HashMap<>();
    private final Map<String, List<String>> rootsOf = new HashMap<>();
    private final Set<String> taken = new HashSet<>();

    Earlier(Engine engine, String client) throws IOException {
        this.engine = engine;
        this.client = client;
        String question = "/v1/tasks?apart=1&full=1&limit=" + PAGE + "&client=" + Engine.encoded(client);
        String before = "";
        List<?> page;
        do {
            page = (List<?>) engine.get(question + before).get("tasks");
            for (Object one : page) {
                Map<String, Object> line = Program.asMap(one);
                before = "&before=" + line.get("id");
                Path folder = Path.of(String.valueOf(line.getOrDefault("item", line.get("directory"))));
                Known task = new Known((String) line.get("id"), (String) line.get("state"), folder);
                byId.put(task.id, task);
                byHash.putIfAbsent(hashOf(folder), task);
            }
        } while (page.size() == PAGE);
        for (String hash : byHash.keySet()) {
            for (String next : chainFrom(hash)) {
                rootsOf.computeIfAbsent(next, none -> new ArrayList<>()).add(hash);
            }
        }
    }

    /** The hash by which a work folder is called; empty for another folder. */
    static String hashOf(Path folder) {
        int count = folder.getNameCount();
        String hash = count < 2 ? "" : folder.getName(count - 2).toString() + folder.getName(count - 1);
        return hash.matches("[0-9a-f]{32}") ? hash : "";
    }

    /** Hashes of the folders that Nextflow may take where that one is in use. */
    static List<String> chainFrom(String hash) {
        List<String> found = new ArrayList<>();
        if (hash.isEmpty()) {
            return found;
        }
        for (int first = 2; first <= LONGEST_CHAIN; first++) {
            HashCode code = HashCode.fromString(hash);
            for (int tries = first; tries <= LONGEST_CHAIN; tries++) {
                code = HashBuilder.defaultHasher().putBytes(code.asBytes()).putInt(tries).hash();
                found.add(code.toString());
            }
        }
        return found;
    }

    /** The task that does or has done the work of the folder with that hash; null if none runs, waits or has ended well. */
    synchronized Task of(String hash) throws IOException {
        for (String root : rootsOf.getOrDefault(hash, List.of())) {
            if (taken.contains(root)) {
                continue;
            }
            Known task = byHash.get(root);
            int attempts = 1;
            for (Known next = task; next != null; next = retryOf(root, attempts + 1)) {
                task = next;
                attempts++;
            }
            attempts--;
            boolean isDone = task.state.equals("done") && Files.exists(task.folder.resolve(".exitcode"));
            if (isDone || OPEN.contains(task.state)) {
                taken.add(root);
                return new Task(task.id, root, task.folder, attempts);
            }
        }
        return null;
    }

    private Known retryOf(String root, int attempt) throws IOException {
        try {
            String question = "/v1/keys?client=" + Engine.encoded(client) + "&key=" + Engine.encoded(keyOf(root, attempt));
            return byId.get((String) ((List<?>) engine.get(question).get("ids")).get(0));
        } catch (Refused none) {
            if (none.status != 404) {
                throw none;
            }
            return null;
        }
    }

    /** Of the submit of a process's attempt, from 1. */
    static String keyOf(String root, int attempt) {
        return root + "/" + attempt;
    }
}
