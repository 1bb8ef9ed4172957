package hpcbatch.nextflow;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.slf4j.Logger;

/**
 * What has become of tasks, as the engine tells it. An engine that is away is waited for: what ended meanwhile is in its
 * history. Any thread may call {@code watch}.
 */
class Feed {
    /** Hears of one task; both are called on threads of the feed, or on that of {@code watch}. */
    interface Listener {
        void started();

        void ended(Map<String, Object> event);
    }

    private static final Logger log = Log.OF_PLUGIN;
    /** Seconds that the engine may hold an answer that has nothing to tell. */
    private static final int WAIT_S = 20;
    /** Starts are no events: they are asked for, all in one question. */
    private static final long LOOK_MS = 5000;
    private static final int PAGE = 10_000;

    private final Engine engine;
    private final String client;
    private final Runnable heard;
    private final Map<String, Listener> open = new ConcurrentHashMap<>();
    private final Map<String, Map<String, Object>> early = new HashMap<>();
    private Object cursor;

    /** {@code heard} is called after each answer that told of an end or a start. */
    Feed(Engine engine, String client, Runnable heard) throws IOException {
        this.engine = engine;
        this.client = client;
        this.heard = heard;
        cursor = engine.get("/v1/events?after=now").get("cursor");
    }

    void start() {
        daemon("hpcbatch-ends", this::hearEnds);
        daemon("hpcbatch-starts", this::askForStarts);
    }

    static void daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Of a task that was submitted after this feed was made. */
    void watch(String id, Listener listener) {
        Map<String, Object> event;
        synchronized (early) {
            event = early.remove(id);
            if (event == null) {
                open.put(id, listener);
                return;
            }
        }
        listener.ended(event);
        heard.run();
    }

    /** Of a task that was there before: its end may be past. */
    void watchEarlier(String id, Listener listener) throws IOException {
        watch(id, listener);
        look(id);
    }

    private void look(String id) throws IOException {
        Map<String, Object> task;
        try {
            task = engine.get("/v1/tasks/" + id);
        } catch (Refused refused) {
            task = Map.of("state", "failed", "failure", "engine_error", "message", "the engine knows nothing of it any more");
        }
        if (List.of("done", "failed", "cancelled").contains(task.get("state"))) {
            tell(id, task);
        }
    }

    private void tell(String id, Map<String, Object> event) {
        Listener listener;
        synchronized (early) {
            listener = open.remove(id);
            if (listener == null) {
                early.put(id, event);
                return;
            }
        }
        listener.ended(event);
    }

    private void hearEnds() {
        repeat(() -> {
            Map<String, Object> answer = engine.get(
                "/v1/events?client=" + Engine.encoded(client) + "&after=" + cursor + "&wait=" + WAIT_S);
            List<?> events = (List<?>) answer.get("events");
            for (Object one : events) {
                Map<String, Object> event = Program.asMap(one);
                for (String id : Ids.each((String) event.get("id"))) {
                    tell(id, event);
                }
            }
            cursor = answer.get("cursor");
            if (Boolean.TRUE.equals(answer.get("pruned"))) {
                for (String id : List.copyOf(open.keySet())) {
                    look(id);
                }
            }
            if (!events.isEmpty()) {
                heard.run();
            }
        }, 0);
    }

    private void askForStarts() {
        repeat(() -> {
            if (open.isEmpty()) {
                return;
            }
            String question = "/v1/tasks?state=running&apart=1&limit=" + PAGE + "&client=" + Engine.encoded(client);
            for (Object one : (List<?>) engine.get(question).get("tasks")) {
                Listener listener = open.get((String) Program.asMap(one).get("id"));
                if (listener != null) {
                    listener.started();
                }
            }
            heard.run();
        }, LOOK_MS);
    }

    private interface Step {
        void run() throws IOException;
    }

    private void repeat(Step step, long pauseMs) {
        Consumer<Long> pause = ms -> {
            try {
                Thread.sleep(ms);
            } catch (InterruptedException end) {
                engine.stop();
            }
        };
        while (!engine.isStopping()) {
            try {
                step.run();
                pause.accept(pauseMs);
            } catch (IOException | RuntimeException error) {
                if (!engine.isStopping()) {
                    log.warn("The engine of hpcbatch does not say what has ended: {}", error.getMessage());
                    log.debug("The feed", error);
                    pause.accept(1000L);
                }
            }
        }
    }
}
