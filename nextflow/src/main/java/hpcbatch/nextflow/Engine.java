package hpcbatch.nextflow;

import groovy.json.JsonGenerator;
import groovy.json.JsonSlurper;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;

/**
 * The user's engine, by its API (docs/api.md). Each thread has a connection of its own. A request waits for an engine that
 * restarts, and starts one that has died.
 */
class Engine {
    private static final Logger log = Log.OF_PLUGIN;
    private static final JsonGenerator WRITER = new JsonGenerator.Options().disableUnicodeEscaping().build();
    /** After so long without an engine its program is asked to start one. */
    private static final long AWAY_MS = 3000;

    private final Program program;
    private final Path socket;
    private final Path home;
    private final ThreadLocal<Connection> connections = new ThreadLocal<>();
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();
    private volatile boolean stopping;

    /** Starts an engine if none runs. */
    Engine(Program program) throws IOException {
        this.program = program;
        socket = program.startEngine();
        home = Path.of((String) get("/v1/engine").get("home"));
    }

    /** Requests that wait end with EngineAway, now and from now on. */
    void stop() {
        stopping = true;
        for (Connection connection : open) {
            close(connection);
        }
    }

    boolean isStopping() {
        return stopping;
    }

    Map<String, Object> get(String target) throws IOException {
        return patiently("GET", target, null);
    }

    Map<String, Object> post(String target, Map<String, ?> body) throws IOException {
        return patiently("POST", target, WRITER.toJson(body).getBytes(StandardCharsets.UTF_8));
    }

    /** Of tasks that have ended already nothing changes. */
    void cancel(Collection<String> ids) throws IOException {
        if (!ids.isEmpty()) {
            post("/v1/tasks/cancel", Map.of("ids", List.copyOf(ids)));
        }
    }

    static String encoded(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8);
    }

    /** Whoever sends a request this way bears that it is sent twice: a submit does by its key. */
    private Map<String, Object> patiently(String method, String target, byte[] body) throws IOException {
        long since = System.currentTimeMillis();
        long pause = 20;
        boolean told = false;
        while (true) {
            try {
                return once(method, target, body);
            } catch (EngineAway away) {
                if (stopping) {
                    throw away;
                }
                if (System.currentTimeMillis() - since > AWAY_MS) {
                    String trouble = revive(away.getMessage());
                    if (trouble != null && !told) {
                        log.warn("Waiting for the engine of hpcbatch: {}", trouble);
                        told = true;
                    }
                    since = System.currentTimeMillis();
                }
            }
            try {
                Thread.sleep(pause);
            } catch (InterruptedException interrupt) {
                Thread.currentThread().interrupt();
                throw new EngineAway("it was interrupted", interrupt);
            }
            pause = Math.min(1000, pause * 2);
        }
    }

    /** Why there is none yet, or null. */
    private String revive(String why) {
        try {
            Path lock = home.resolve("engine.lock");
            // An engine that was stopped has emptied it; one that died could not.
            if (Files.exists(lock) && Files.size(lock) == 0) {
                return "it was stopped; `hpcbatch engine start` starts it again";
            }
            program.startEngine();
            return null;
        } catch (IOException error) {
            return why + "; " + error.getMessage();
        }
    }

    private Map<String, Object> once(String method, String target, byte[] body) throws IOException {
        Connection connection = connections.get();
        boolean isNew = connection == null;
        Connection.Answer answer;
        try {
            if (isNew) {
                connection = new Connection(socket);
                connections.set(connection);
                open.add(connection);
                if (stopping) {
                    throw new IOException("it was interrupted");
                }
            }
            answer = connection.ask(method, target, body);
        } catch (IOException error) {
            connections.remove();
            if (connection != null) {
                open.remove(connection);
                close(connection);
            }
            // One that was idle may be gone since.
            if (!isNew && !stopping) {
                return once(method, target, body);
            }
            throw new EngineAway("cannot reach it at " + socket + ": " + error.getMessage(), error);
        }
        Map<String, Object> said = Program.asMap(new JsonSlurper().parse(answer.body()));
        if (answer.status() == 200) {
            return said;
        }
        String text = String.valueOf(said.get("error"));
        if (answer.status() == 503) {
            throw new EngineAway(text, null);
        }
        throw new Refused(answer.status(), text);
    }

    private static void close(Connection connection) {
        try {
            connection.close();
        } catch (IOException gone) {
            log.debug("Cannot close a connection to the engine", gone);
        }
    }
}
